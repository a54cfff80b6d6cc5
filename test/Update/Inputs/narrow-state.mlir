// State that is narrower than f32.
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard true [#fsdp.param<"w", tensor<128xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %m: tensor<64xbf16> {fsdp.unit = @u, fsdp.state = "momentum"},
                %block: tensor<16xf32> {fsdp.block})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<64xbf16> {fsdp.updates = 1 : i64}, tensor<16xf32> {fsdp.updates = 2 : i64})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %p, %m, %block : tensor<64xf32>, tensor<64xbf16>, tensor<16xf32>
}
