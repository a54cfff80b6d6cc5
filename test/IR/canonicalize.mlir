// RUN: fsdp-opt %s --canonicalize | FileCheck %s

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x8xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]

// shard(unshard(%s)) is %s.
// CHECK-LABEL: func @round_trip
// CHECK-SAME: (%[[S:.*]]: tensor<16xf32>)
// CHECK-NEXT: return %[[S]]
func.func @round_trip(%s: tensor<16xf32>) -> tensor<16xf32> {
  %w = fsdp.unshard %s @u site 0 : tensor<16xf32> -> tensor<4x8xf32>
  %t = fsdp.shard @u (%w) : (tensor<4x8xf32>) -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// An unshard to a narrower type rounds, so it is not folded.
// CHECK-LABEL: func @rounding
// CHECK: fsdp.shard
func.func @rounding(%s: tensor<16xf32>) -> tensor<16xbf16> {
  %w = fsdp.unshard %s @u site 0 : tensor<16xf32> -> tensor<4x8xbf16>
  %t = fsdp.shard @u (%w) : (tensor<4x8xbf16>) -> tensor<16xbf16>
  return %t : tensor<16xbf16>
}

// CHECK-LABEL: func @alone
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @alone(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = fsdp.all_reduce %x @mesh ["replicate"] avg : tensor<8xf32>
  %b = fsdp.all_gather %a @mesh ["replicate"] : tensor<8xf32> -> tensor<8xf32>
  %moved = fsdp.shift %b @mesh ["replicate"] site 0 : tensor<8xf32>
  %c = fsdp.broadcast %moved @mesh ["replicate"] root 0 : tensor<8xf32>
  %d = fsdp.flat_reduce_scatter %c @mesh ["replicate"] avg : tensor<8xf32> -> tensor<8xf32>
  %e = fsdp.own_piece %d @mesh ["replicate"] : tensor<8xf32> -> tensor<8xf32>
  return %e : tensor<8xf32>
}

// CHECK-LABEL: func @together
// CHECK: fsdp.all_reduce
func.func @together(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = fsdp.all_reduce %x @mesh ["shard"] avg : tensor<8xf32>
  return %a : tensor<8xf32>
}

// Unread and repeated operands are erased; an operand in `inplace` is kept.
// CHECK-LABEL: func @operands
// CHECK-SAME: (%[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>, %[[C:.*]]: tensor<8xf32>)
// CHECK: fsdp.dispatch(%[[A]], %[[C]]) inplace [1]
func.func @operands(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  %y = fsdp.dispatch (%b, %a, %a, %c) inplace [3]
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%0: tensor<8xf32>, %1: tensor<8xf32>, %2: tensor<8xf32>, %3: tensor<8xf32>):
    %s = arith.addf %1, %2 : tensor<8xf32>
    fsdp.yield %s : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}

// Identity regions are erased, and then the captured tensors that only they read.
// CHECK-LABEL: func @attention
// CHECK-SAME: %{{.*}}: tensor<1x1x2x4xf32>, %{{.*}}: tensor<2xf32>, %[[D:.*]]: tensor<2xi32>
// CHECK: fsdp.attention {{.*}} capture(%[[D]] : tensor<2xi32>)
// CHECK-NOT: score_mod
// CHECK: mask_mod(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: tensor<2xi32>)
// CHECK: fsdp.attention {{.*}} : tensor
// CHECK-NOT: mask_mod
// CHECK-NOT: weight_mod
// CHECK: return
func.func @attention(%q: tensor<1x1x2x4xf32>, %m: tensor<2xf32>, %d: tensor<2xi32>) -> (tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>) {
  %o, %l = fsdp.attention %q, %q, %q scale 0.5 capture(%m, %d : tensor<2xf32>, tensor<2xi32>)
      : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %x: tensor<2xf32>, %y: tensor<2xi32>) {
    %unused = tensor.extract %x[%i] : tensor<2xf32>
    fsdp.yield %s : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %x: tensor<2xf32>, %y: tensor<2xi32>) {
    %0 = tensor.extract %y[%i] : tensor<2xi32>
    %1 = tensor.extract %y[%j] : tensor<2xi32>
    %same = arith.cmpi eq, %0, %1 : i32
    fsdp.yield %same : i1
  }
  %p, %k = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %true = arith.constant true
    fsdp.yield %true : i1
  } weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %one = arith.constant 1.0 : f32
    fsdp.yield %one : f32
  }
  return %o, %p : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>
}

// bernoulli with keep 0 or 1 is a constant; a reshape of random numbers is moved into the op.
// CHECK-LABEL: func @random
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[NO:.*]] = arith.constant dense<false> : tensor<4xi1>
// CHECK: %[[R:.*]] = fsdp.random uniform seed {{.*}} site 2 per_sample 6 : tensor<24xf32>
// CHECK: return %[[ONE]], %[[NO]], %[[R]]
func.func @random(%k: tensor<i64>) -> (tensor<4xf32>, tensor<4xi1>, tensor<24xf32>) {
  %a = fsdp.random bernoulli keep 1.0 seed %k step %k first %k site 0 : tensor<4xf32>
  %b = fsdp.random bernoulli keep 0.0 seed %k step %k first %k site 1 : tensor<4xi1>
  %c = fsdp.random uniform seed %k step %k first %k site 2 : tensor<4x6xf32>
  %d = tensor.collapse_shape %c [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  return %a, %b, %d : tensor<4xf32>, tensor<4xi1>, tensor<24xf32>
}

// CSE merges random ops of one site, but not random ops of two sites.
// CHECK-LABEL: func @sites
// CHECK: site 0
// CHECK: site 1
func.func @sites(%k: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = fsdp.random uniform seed %k step %k first %k site 0 : tensor<4xf32>
  %b = fsdp.random uniform seed %k step %k first %k site 1 : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// C is replaced by an empty tensor if beta is 0.
// CHECK-LABEL: func @gemm
// CHECK-SAME: %[[A:.*]]: tensor<2x2xf32>, %{{.*}}: tensor<2x2xf32>
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: fsdp.gemm %[[A]], %[[A]] into %[[E]]
func.func @gemm(%a: tensor<2x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %d = fsdp.gemm %a, %a into %c transpose [false, false] alpha 1.0 beta 0.0
      : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  return %d : tensor<2x2xf32>
}
