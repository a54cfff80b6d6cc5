// The scale is read as a scalar, whose cotangent no op adds over the ranks.
func.func @loss(%scale: tensor<f32> {fsdp.param = "scale"}, %x: tensor<4x8xf32> {fsdp.batch = "x"}) -> tensor<f32> {
  %s = tensor.extract %scale[] : tensor<f32>
  %e = tensor.empty() : tensor<f32>
  %loss = linalg.fill ins(%s : f32) outs(%e : tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
