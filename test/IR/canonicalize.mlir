// RUN: fsdp-opt %s --canonicalize | FileCheck %s

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x8xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]

// The shard of what was gathered from it.
// CHECK-LABEL: func @round_trip
// CHECK-SAME: (%[[S:.*]]: tensor<16xf32>)
// CHECK-NEXT: return %[[S]]
func.func @round_trip(%s: tensor<16xf32>) -> tensor<16xf32> {
  %w = fsdp.unshard %s @u site 0 : tensor<16xf32> -> tensor<4x8xf32>
  %t = fsdp.shard @u (%w) : (tensor<4x8xf32>) -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// Gathered in a narrower type: a rounding, so it stays.
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
  %c = fsdp.broadcast %b @mesh ["replicate"] root 0 : tensor<8xf32>
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

// An unread operand and a repeated one go; the one that is written over stays.
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
