// RUN: fsdp-opt %s --fsdp-add-step-block --fsdp-apply-optimizer -verify-diagnostics -split-input-file
// RUN: not fsdp-opt %s --fsdp-apply-optimizer -split-input-file 2>&1 | FileCheck %s
// CHECK: error: expected an argument with 'fsdp.block' (the step block), found none; run fsdp-add-step-block first

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected the first result to be the loss, a float tensor of rank 0, found 'tensor<2xf32>'}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<2xf32>) -> (tensor<2xf32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %l, %s : tensor<2xf32>, tensor<64xf32>
}
