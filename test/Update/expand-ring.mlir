// Blocks of keys and values travel by shifts, and results of blocks are merged by their log-sum-exp.
// RUN: fsdp-opt %s --fsdp-expand-ring --canonicalize --cse --verify-roundtrip --split-input-file --verify-diagnostics | FileCheck %s

// Step j has the block of rank (c - j) mod 3. Its functions read the index of a key in the whole sequence.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x4x8xbf16>, %[[K:.*]]: tensor<1x1x4x8xbf16>, %[[V:.*]]: tensor<1x1x4x8xbf16>, %[[PART:.*]]: tensor<i64>
// CHECK: %[[TWO:.*]] = linalg.generic {{.*}} ins(%[[PART]] : tensor<i64>)
// CHECK: arith.addi %{{.*}}, %c1_i64 : i64
// CHECK-NEXT: arith.remui %{{.*}}, %c3_i64 : i64
// CHECK: %[[ONE:.*]] = linalg.generic {{.*}} ins(%[[PART]] : tensor<i64>)
// CHECK: arith.addi %{{.*}}, %c2_i64 : i64
// CHECK: %[[R0:.*]]:2 = fsdp.attention %[[Q]], %[[K]], %[[V]] scale 5.000000e-01 capture(%[[PART]], %[[PART]] : tensor<i64>, tensor<i64>)
// CHECK: %[[K1:.*]] = fsdp.shift %[[K]] @mesh ["context"] site 0 : tensor<1x1x4x8xbf16>
// CHECK-NEXT: %[[V1:.*]] = fsdp.shift %[[V]] @mesh ["context"] site 0
// CHECK-NEXT: %[[R1:.*]]:2 = fsdp.attention %[[Q]], %[[K1]], %[[V1]] {{.*}} capture(%[[PART]], %[[ONE]] : tensor<i64>, tensor<i64>)
// CHECK: %[[AT:.*]] = tensor.extract %arg5[] : tensor<i64>
// CHECK-NEXT: %[[INDEX:.*]] = arith.index_cast %[[AT]] : i64 to index
// CHECK-NEXT: %[[RANK:.*]] = arith.remui %[[INDEX]], %c3 : index
// CHECK-NEXT: %[[FIRST:.*]] = arith.muli %j, %c3 : index
// CHECK-NEXT: %[[KEY:.*]] = arith.addi %[[RANK]], %[[FIRST]] : index
// CHECK: arith.cmpi sge, %{{.*}}, %[[KEY]] : index
// Sums stay f32 until the last merge.
// CHECK: %[[LSE:.*]]:3 = linalg.generic {{.*}} ins(%[[R0]]#1, %[[R1]]#1 : tensor<1x2x4xf32>, tensor<1x2x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[R0]]#0, %[[R1]]#0, %[[LSE]]#1, %[[LSE]]#2 : {{.*}}) outs(%{{.*}} : tensor<1x2x4x8xf32>)
// CHECK: %[[K2:.*]] = fsdp.shift %[[K1]] @mesh ["context"] site 0
// CHECK-NEXT: %[[V2:.*]] = fsdp.shift %[[V1]] @mesh ["context"] site 0
// CHECK-NEXT: fsdp.attention %[[Q]], %[[K2]], %[[V2]] {{.*}} capture(%[[PART]], %[[TWO]] : tensor<i64>, tensor<i64>)
// CHECK-NOT: fsdp.shift
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: return
fsdp.mesh @mesh [#fsdp.axis<"shard", [3]>] context 3
func.func @forward(%q: tensor<1x2x4x8xbf16>, %k: tensor<1x1x4x8xbf16>, %v: tensor<1x1x4x8xbf16>,
                   %part: tensor<i64>) -> tensor<1x2x4x8xbf16> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 ring 3 striped capture(%part : tensor<i64>)
      : tensor<1x2x4x8xbf16>, tensor<1x1x4x8xbf16>, tensor<1x1x4x8xbf16> -> tensor<1x2x4x8xbf16>, tensor<1x2x4xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index, %c: tensor<i64>) {
    %c3 = arith.constant 3 : index
    %own = tensor.extract %c[] : tensor<i64>
    %index = arith.index_cast %own : i64 to index
    %rank = arith.remui %index, %c3 : index
    %first = arith.muli %i, %c3 : index
    %row = arith.addi %first, %rank : index
    %keep = arith.cmpi sge, %row, %j : index
    fsdp.yield %keep : i1
  }
  return %o : tensor<1x2x4x8xbf16>
}

// -----

// The sums of gradients travel behind the blocks, and end at the ranks that have the blocks.
// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x4x8xf32>, %[[K:.*]]: tensor<1x1x4x8xf32>, %[[V:.*]]: tensor<1x1x4x8xf32>
// CHECK: %[[G0:.*]]:3 = fsdp.attention_grad %[[Q]], %[[K]], %[[V]]
// CHECK-NEXT: %[[K1:.*]] = fsdp.shift %[[K]] @mesh ["context"] site 1
// CHECK-NEXT: %[[V1:.*]] = fsdp.shift %[[V]] @mesh ["context"] site 1
// CHECK-NEXT: %[[G1:.*]]:3 = fsdp.attention_grad %[[Q]], %[[K1]], %[[V1]]
// CHECK: linalg.generic {{.*}} ins(%[[G0]]#0, %[[G1]]#0 :
// CHECK: %[[K2:.*]] = fsdp.shift %[[K1]] @mesh ["context"] site 1
// CHECK-NEXT: %[[V2:.*]] = fsdp.shift %[[V1]] @mesh ["context"] site 1
// CHECK-NEXT: %[[G2:.*]]:3 = fsdp.attention_grad %[[Q]], %[[K2]], %[[V2]]
// CHECK: %[[SUM:.*]] = fsdp.shift %[[G1]]#1 @mesh ["context"] site 1
// CHECK: %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %[[G2]]#1 :
// CHECK: %[[LAST:.*]] = fsdp.shift %[[NEXT]] @mesh ["context"] site 1
// CHECK: linalg.generic {{.*}} ins(%[[LAST]], %[[G0]]#1 :
// CHECK: return
// DOC-BEFORE-BEGIN fsdp-expand-ring
// DOC-ARGS: --fsdp-expand-ring --canonicalize --cse
// DOC-LINES: 60
fsdp.mesh @mesh [#fsdp.axis<"shard", [3]>] context 3
func.func @backward(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>, %o: tensor<1x2x4x8xf32>,
                    %lse: tensor<1x2x4xf32>, %g: tensor<1x2x4x8xf32>)
    -> (tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) {
  %dq, %dk, %dv = fsdp.attention_grad %q, %k, %v, %o, %lse, %g scale 0.5 ring 3
      : tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>
      -> tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
  return %dq, %dk, %dv : tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
}
// DOC-BEFORE-END

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>] context 2
func.func @no_coordinate(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  // expected-error @below {{has functions that read the index of a key; expected the last captured tensor to be a tensor<i64> with the coordinate of the rank}}
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5 ring 2
      : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %c3 = arith.constant 3 : index
    %keep = arith.cmpi sge, %c3, %j : index
    fsdp.yield %keep : i1
  }
  return %o : tensor<1x2x4x8xf32>
}
