// A model that compares each token with the output at the token before.
func.func @loss(%w: tensor<37x8xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %ids: tensor<2x8xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %x = fsdp.gather_rows %w[%ids] : tensor<37x8xf32>, tensor<2x8xi64> -> tensor<2x8x8xf32>
  %q = tensor.expand_shape %x [[0, 1], [2], [3]] output_shape [2, 1, 8, 8] : tensor<2x8x8xf32> into tensor<2x1x8x8xf32>
  %o, %l = fsdp.attention %q, %q, %q scale 0.3 : tensor<2x1x8x8xf32>, tensor<2x1x8x8xf32>, tensor<2x1x8x8xf32> -> tensor<2x1x8x8xf32>, tensor<2x1x8xf32>
  %y = tensor.collapse_shape %o [[0, 1], [2], [3]] : tensor<2x1x8x8xf32> into tensor<2x8x8xf32>
  %i = tensor.empty() : tensor<2x7x37xf32>
  %z = linalg.fill ins(%zero : f32) outs(%i : tensor<2x7x37xf32>) -> tensor<2x7x37xf32>
  // The last token has no successor.
  %h = tensor.extract_slice %y[0, 0, 0] [2, 7, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<2x7x8xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, t, v, d) -> (b, t, d)>, affine_map<(b, t, v, d) -> (v, d)>, affine_map<(b, t, v, d) -> (b, t, v)>]
      ins(%h, %w : tensor<2x7x8xf32>, tensor<37x8xf32>) outs(%z : tensor<2x7x37xf32>) -> tensor<2x7x37xf32>
  %logits = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x7x37xf32> into tensor<14x37xf32>
  %next = tensor.extract_slice %ids[0, 1] [2, 7] [1, 1] : tensor<2x8xi64> to tensor<2x7xi64>
  %targets = tensor.collapse_shape %next [[0, 1]] : tensor<2x7xi64> into tensor<14xi64>
  %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<14x37xf32>, tensor<14xi64> -> tensor<f32>, tensor<14xf32>
  return %loss : tensor<f32>
}
