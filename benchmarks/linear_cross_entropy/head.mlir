// The last layer of GPT-2 and its loss: logits of 1024 tokens over 50257 words, cross-entropy, and both gradients.
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func @loss(%x: tensor<1024x768xf32> {fsdp.param = "x"}, %w: tensor<50257x768xf32> {fsdp.param = "w"},
                %targets: tensor<1024xi64> {fsdp.batch = "targets", fsdp.limit = 50257 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024x50257xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024x50257xf32>) -> tensor<1024x50257xf32>
  %logits = linalg.contract indexing_maps = [#mk, #nk, #mn]
      ins(%x, %w : tensor<1024x768xf32>, tensor<50257x768xf32>) outs(%clear : tensor<1024x50257xf32>) -> tensor<1024x50257xf32>
  %loss, %lse = fsdp.cross_entropy %logits, %targets
      : tensor<1024x50257xf32>, tensor<1024xi64> -> tensor<f32>, tensor<1024xf32>
  return %loss : tensor<f32>
}
