// SGD without momentum and weight decay computes p -= lr * g if the step is finite.
// RUN: fsdp-opt %s '--fsdp-apply-optimizer=optimizer=sgd weight-decay=0' --cse | FileCheck %s

// CHECK: %[[P:.*]]: tensor<64xf32> {fsdp.state = "parameter", fsdp.unit = @u}
// CHECK: outs(%[[P]] : tensor<64xf32>)
// CHECK: arith.subf
// CHECK: arith.select

// DOC-BEFORE-BEGIN fsdp-apply-optimizer
// DOC-AFTER: @step
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 2 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<100xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank},
                %g: tensor<64xf32>) -> (tensor<16xf32> {fsdp.updates = 1 : i64}, tensor<64xf32>)
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %block, %g : tensor<16xf32>, tensor<64xf32>
}
// DOC-BEFORE-END
