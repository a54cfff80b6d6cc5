// RUN: fsdp-opt %s --verify-roundtrip | FileCheck %s

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"b", tensor<4xf32>, 16, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// CHECK-LABEL: func @f
func.func @f(%s: tensor<16xf32>) -> tensor<32xf32> {
  // CHECK: %[[T:.*]] = fsdp.unshard_start %{{.*}} @u site 1 channel 1 id 0 : tensor<16xf32> -> !fsdp.token<tensor<4x4xf32>, tensor<4xf32>>
  %0 = fsdp.unshard_start %s @u site 1 channel 1 id 0 : tensor<16xf32> -> !fsdp.token<tensor<4x4xf32>, tensor<4xf32>>
  // CHECK: %[[W:.*]]:2 = fsdp.await %[[T]] : !fsdp.token<tensor<4x4xf32>, tensor<4xf32>>
  %w:2 = fsdp.await %0 : !fsdp.token<tensor<4x4xf32>, tensor<4xf32>>
  // CHECK: fsdp.reduce_scatter_start @u avg params [0](%[[W]]#0) channel 2 id 1 : (tensor<4x4xf32>) -> !fsdp.token<tensor<16xf32>>
  %1 = fsdp.reduce_scatter_start @u avg params [0] (%w#0) channel 2 id 1 : (tensor<4x4xf32>) -> !fsdp.token<tensor<16xf32>>
  %g = fsdp.await %1 : !fsdp.token<tensor<16xf32>>
  // CHECK: fsdp.all_reduce_start %{{.*}} @mesh ["shard"] sum channel 1 id 2 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %2 = fsdp.all_reduce_start %g @mesh ["shard"] sum channel 1 id 2 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %2 : !fsdp.token<tensor<16xf32>>
  // CHECK: fsdp.broadcast_start %{{.*}} @mesh ["shard"] root 1 channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %3 = fsdp.broadcast_start %r @mesh ["shard"] root 1 channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %b = fsdp.await %3 : !fsdp.token<tensor<16xf32>>
  // CHECK: fsdp.shift_start %{{.*}} @mesh ["shard"] site 0 channel 1 id 5 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %5 = fsdp.shift_start %b @mesh ["shard"] site 0 channel 1 id 5 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %moved = fsdp.await %5 : !fsdp.token<tensor<16xf32>>
  // CHECK: fsdp.all_gather_start %{{.*}} @mesh ["shard"] channel 1 id 4 : tensor<16xf32> -> !fsdp.token<tensor<32xf32>>
  %4 = fsdp.all_gather_start %b @mesh ["shard"] channel 1 id 4 : tensor<16xf32> -> !fsdp.token<tensor<32xf32>>
  %a = fsdp.await %4 : !fsdp.token<tensor<32xf32>>
  return %a : tensor<32xf32>
}
