// The gradient is reduced over ranks in bf16, but `reduce-dtype` is f32, which is an error.
// RUN: not fsdp-opt %s --fsdp-verify-dtypes 2>&1 | FileCheck %s

// CHECK: error: gradient reduction over ranks: expected 'f32' or wider, found 'bf16'

// DOC-BEFORE-BEGIN fsdp-verify-dtypes
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<128xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %g: tensor<128xbf16>)
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %s = fsdp.reduce_scatter @u avg params [0] (%g) : (tensor<128xbf16>) -> tensor<64xf32>
  %new = linalg.sub ins(%p, %s : tensor<64xf32>, tensor<64xf32>) outs(%p : tensor<64xf32>) -> tensor<64xf32>
  return %new : tensor<64xf32>
}
// DOC-BEFORE-END
