// Parameters of 2^46 elements: a rank alone needs 2^48 bytes for them and as much for their gradients and moments.
func.func @loss(%x: tensor<2x8388608xf32> {fsdp.batch = "x"}, %w: tensor<8388608x8388608xf32> {fsdp.param = "w"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8388608xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8388608xf32>) -> tensor<2x8388608xf32>
  %y = linalg.matmul ins(%x, %w : tensor<2x8388608xf32>, tensor<8388608x8388608xf32>) outs(%f : tensor<2x8388608xf32>) -> tensor<2x8388608xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<2x8388608xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
