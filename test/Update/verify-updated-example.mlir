// The module lacks the programs `eval` and `reference`, which is an error.
// RUN: not fsdp-opt %s --fsdp-verify-updated 2>&1 | FileCheck %s

// CHECK: error: after Update: expected one function of program 'eval'
// CHECK: error: after Update: expected one function of program 'reference'

// DOC-BEFORE-BEGIN fsdp-verify-updated
fsdp.unit @u shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block},
                %rank: tensor<8xi64> {fsdp.rank})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 1 : i64}) attributes {fsdp.program = "step"} {
  return %p, %block : tensor<64xf32>, tensor<16xf32>
}
// DOC-BEFORE-END
