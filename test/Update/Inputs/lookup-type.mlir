fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @a shards 2 x 64 : f32 reshard false [#fsdp.param<"a", tensor<100xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%a: tensor<64xf32> {fsdp.unit = @a}) -> (tensor<f32>, tensor<64xf32>, tensor<i32> {fsdp.lookup = {extent = 8 : i64}})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f32>
  %g = tensor.empty() : tensor<64xf32>
  %c = tensor.empty() : tensor<i32>
  return %l, %g, %c : tensor<f32>, tensor<64xf32>, tensor<i32>
}
