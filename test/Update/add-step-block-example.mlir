// The function stores the loss and the norm of the gradient in the step block.
// RUN: fsdp-opt %s --fsdp-add-step-block --cse | FileCheck %s

// CHECK: func.func @step(
// CHECK: fsdp.all_reduce
// CHECK: math.sqrt
// CHECK: return %{{.*}}, %{{.*}} : tensor<16xf32>, tensor<64xf32>

// DOC-BEFORE-BEGIN fsdp-add-step-block
// DOC-AFTER: @step
// DOC-LINES: 32
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 2 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<100xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %t: tensor<3x5xi64> {fsdp.batch = "tokens"}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %l, %s : tensor<f32>, tensor<64xf32>
}
// DOC-BEFORE-END
