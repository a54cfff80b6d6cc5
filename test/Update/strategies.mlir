// RUN: fsdp-opt %s --fsdp-update="optimizer=sgd weight-decay=0" --split-input-file | FileCheck %s

// zero1: the reduce-scatter splits gradients like the optimizer state. A
// rank updates its shard of the parameters and gathers the other shards.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 2 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<5x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
  placement <parameters = [], gradients = [], optimizer = ["shard"]>

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[P:[a-z0-9]+]]: tensor<128xf32> {fsdp.state = "parameter", fsdp.unit = @u}
// CHECK:         %[[W:.*]] = fsdp.unshard %[[P]] @u site 0 : tensor<128xf32> -> tensor<5x4xf32>
// CHECK:         fsdp.reduce_scatter @u avg params [0](%{{.*}}) : (tensor<5x4xf32>) -> tensor<64xf32>
// CHECK:         %[[OWN:.*]] = fsdp.own_piece %[[P]] @mesh ["shard"] : tensor<128xf32> -> tensor<64xf32>
// CHECK:         %[[NEW:.*]] = linalg.generic {{.*}} outs(%[[OWN]] : tensor<64xf32>)
// CHECK:         %[[ALL:.*]] = fsdp.all_gather %[[NEW]] @mesh ["shard"] : tensor<64xf32> -> tensor<128xf32>
// CHECK:         return %[[ALL]],
func.func @step(%s: tensor<128xf32> {fsdp.unit = @u}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<128xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %w = fsdp.unshard %s @u site 0 : tensor<128xf32> -> tensor<5x4xf32>
  %d = linalg.mul ins(%w, %x : tensor<5x4xf32>, tensor<5x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>
  %l = tensor.extract_slice %w[0, 0] [1, 1] [1, 1] : tensor<5x4xf32> to tensor<f32>
  %g = fsdp.reduce_scatter @u avg params [0] (%d) : (tensor<5x4xf32>) -> tensor<128xf32>
  return %l, %g : tensor<f32>, tensor<128xf32>
}
func.func @eval(%s: tensor<128xf32> {fsdp.unit = @u}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> tensor<f32> attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  %w = fsdp.unshard %s @u site 0 : tensor<128xf32> -> tensor<5x4xf32>
  %l = tensor.extract_slice %w[0, 0] [1, 1] [1, 1] : tensor<5x4xf32> to tensor<f32>
  return %l : tensor<f32>
}
func.func @reference(%s: tensor<128xf32> {fsdp.unit = @u}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<128xf32>) attributes {fsdp.program = "reference", fsdp.mesh = @solo, fsdp.micro_batches = 2 : i64} {
  %w = fsdp.unshard %s @u site 0 : tensor<128xf32> -> tensor<5x4xf32>
  %d = linalg.mul ins(%w, %x : tensor<5x4xf32>, tensor<5x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>
  %l = tensor.extract_slice %w[0, 0] [1, 1] [1, 1] : tensor<5x4xf32> to tensor<f32>
  %g = fsdp.reduce_scatter @u avg params [0] (%d) : (tensor<5x4xf32>) -> tensor<128xf32>
  return %l, %g : tensor<f32>, tensor<128xf32>
}

// -----

// hfsdp with no_sync: whole gradients are summed over micro-batches and reduced over ranks once,
// axis by axis, in smaller and smaller shards. The gather of a hoisted unit is before the loop.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 2 x 128 : f32 reshard false hoisted [
  #fsdp.param<"w", tensor<5x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
  placement <parameters = ["shard"], gradients = ["shard"], optimizer = ["shard", "replicate"]>

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[P:[a-z0-9]+]]: tensor<128xf32> {fsdp.state = "parameter", fsdp.unit = @u}
// CHECK:         fsdp.unshard %[[P]] @u site 0
// CHECK:         %[[SUM:.*]]:2 = scf.for
// CHECK-NOT:       fsdp.unshard
// CHECK:           fsdp.reduce_scatter @u avg params [0](%{{.*}}) : (tensor<5x4xf32>) -> tensor<256xf32>
// CHECK-NOT:       fsdp.all_reduce
// CHECK:           scf.yield
// CHECK:         %[[S:.*]] = fsdp.flat_reduce_scatter %{{.*}} @mesh ["shard"] avg : tensor<256xf32> -> tensor<128xf32>
// CHECK:         fsdp.flat_reduce_scatter %[[S]] @mesh ["replicate"] avg : tensor<128xf32> -> tensor<64xf32>
// CHECK:         fsdp.all_reduce %{{.*}} @mesh ["replicate"] sum
// CHECK:         fsdp.all_reduce %{{.*}} @mesh ["shard"] sum
// CHECK:         %[[OWN:.*]] = fsdp.own_piece %[[P]] @mesh ["replicate"] : tensor<128xf32> -> tensor<64xf32>
// CHECK:         %[[NEW:.*]] = linalg.generic {{.*}} outs(%[[OWN]] : tensor<64xf32>)
// CHECK:         fsdp.all_gather %[[NEW]] @mesh ["replicate"] : tensor<64xf32> -> tensor<128xf32>
func.func @step(%s: tensor<128xf32> {fsdp.unit = @u}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<128xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 2 : i64, fsdp.no_sync} {
  %w = fsdp.unshard %s @u site 0 : tensor<128xf32> -> tensor<5x4xf32>
  %d = linalg.mul ins(%w, %x : tensor<5x4xf32>, tensor<5x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>
  %l = tensor.extract_slice %w[0, 0] [1, 1] [1, 1] : tensor<5x4xf32> to tensor<f32>
  %g = fsdp.reduce_scatter @u avg params [0] (%d) : (tensor<5x4xf32>) -> tensor<128xf32>
  return %l, %g : tensor<f32>, tensor<128xf32>
}
func.func @eval(%s: tensor<128xf32> {fsdp.unit = @u}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> tensor<f32> attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  %w = fsdp.unshard %s @u site 0 : tensor<128xf32> -> tensor<5x4xf32>
  %l = tensor.extract_slice %w[0, 0] [1, 1] [1, 1] : tensor<5x4xf32> to tensor<f32>
  return %l : tensor<f32>
}

// In the reference, micro-batches are the innermost loop.
// CHECK-LABEL: func.func @reference(
// CHECK:         scf.for %[[R:.*]] = %c0 to %c2 step %c1
// CHECK:           %[[RI:.*]] = arith.muli %[[R]], %c4
// CHECK:           scf.for %[[S:.*]] = %c0 to %c2 step %c1
// CHECK:             %[[SI:.*]] = arith.muli %[[S]], %c2
// CHECK:             scf.for
func.func @reference(%s: tensor<256xf32> {fsdp.unit = @u}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<256xf32>) attributes {fsdp.program = "reference", fsdp.mesh = @solo, fsdp.micro_batches = 8 : i64, fsdp.no_sync} {
  %w = fsdp.unshard %s @u site 0 : tensor<256xf32> -> tensor<5x4xf32>
  %d = linalg.mul ins(%w, %x : tensor<5x4xf32>, tensor<5x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>
  %l = tensor.extract_slice %w[0, 0] [1, 1] [1, 1] : tensor<5x4xf32> to tensor<f32>
  %g = fsdp.reduce_scatter @u avg params [0] (%d) : (tensor<5x4xf32>) -> tensor<256xf32>
  return %l, %g : tensor<f32>, tensor<256xf32>
}
