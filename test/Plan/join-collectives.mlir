// RUN: fsdp-opt %s --fsdp-join-collectives | FileCheck %s
// RUN: fsdp-opt %s --canonicalize --cse | FileCheck %s --check-prefix=STAYS

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"b", tensor<4xf32>, 16, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// A start is directly before its wait: they become one op, which keeps the attributes.
// CHECK-LABEL: func @all
// CHECK-NEXT: %[[W:.*]]:2 = fsdp.unshard %{{.*}} @u site 1 {noted} : tensor<16xf32> -> tensor<4x4xf32>, tensor<4xf32>
// CHECK-NEXT: %[[G:.*]] = fsdp.reduce_scatter @u avg params [0, 1](%[[W]]#0, %[[W]]#1)
// CHECK-NEXT: %[[R:.*]] = fsdp.all_reduce %[[G]] @mesh ["shard"] sum : tensor<16xf32>
// CHECK-NEXT: %[[B:.*]] = fsdp.broadcast %[[R]] @mesh ["shard"] root 1 : tensor<16xf32>
// CHECK-NEXT: %[[S:.*]] = fsdp.shift %[[B]] @mesh ["shard"] site 1 : tensor<16xf32>
// CHECK-NEXT: fsdp.all_gather %[[S]] @mesh ["shard"] : tensor<16xf32> -> tensor<32xf32>
// CHECK-NEXT: return
func.func @all(%s: tensor<16xf32>) -> tensor<32xf32> {
  %0 = fsdp.unshard_start %s @u site 1 channel 1 id 0 {noted} : tensor<16xf32> -> !fsdp.token<tensor<4x4xf32>, tensor<4xf32>>
  %w:2 = fsdp.await %0 : !fsdp.token<tensor<4x4xf32>, tensor<4xf32>>
  %1 = fsdp.reduce_scatter_start @u avg params [0, 1] (%w#0, %w#1) channel 2 id 1
      : (tensor<4x4xf32>, tensor<4xf32>) -> !fsdp.token<tensor<16xf32>>
  %g = fsdp.await %1 : !fsdp.token<tensor<16xf32>>
  %2 = fsdp.all_reduce_start %g @mesh ["shard"] sum channel 1 id 2 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %2 : !fsdp.token<tensor<16xf32>>
  %3 = fsdp.broadcast_start %r @mesh ["shard"] root 1 channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %b = fsdp.await %3 : !fsdp.token<tensor<16xf32>>
  %5 = fsdp.shift_start %b @mesh ["shard"] site 1 channel 1 id 5 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %moved = fsdp.await %5 : !fsdp.token<tensor<16xf32>>
  %4 = fsdp.all_gather_start %moved @mesh ["shard"] channel 1 id 4 : tensor<16xf32> -> !fsdp.token<tensor<32xf32>>
  %a = fsdp.await %4 : !fsdp.token<tensor<32xf32>>
  return %a : tensor<32xf32>
}

// An op is between start and wait: both are unchanged. A collective without readers
// is unchanged, too. Canonicalisation and CSE do not merge, erase or move them.
// CHECK-LABEL: func @overlaps
// CHECK: %[[T:.*]] = fsdp.all_reduce_start
// CHECK-NEXT: arith.addf
// CHECK-NEXT: fsdp.await %[[T]]
// STAYS-LABEL: func @overlaps
// STAYS: fsdp.all_reduce_start {{.*}} id 5
// STAYS: fsdp.await
// STAYS: fsdp.all_reduce_start {{.*}} id 6
// STAYS-NEXT: fsdp.await
func.func @overlaps(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %t = fsdp.all_reduce_start %x @mesh ["shard"] sum channel 1 id 5 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %y = arith.addf %x, %x : tensor<16xf32>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  %u = fsdp.all_reduce_start %x @mesh ["shard"] sum channel 1 id 6 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %q = fsdp.await %u : !fsdp.token<tensor<16xf32>>
  return %y, %r : tensor<16xf32>, tensor<16xf32>
}
