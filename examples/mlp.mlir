// A two-layer perceptron on token ids: the model of docs/tutorials/tour.md.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

func.func @loss(%table: tensor<64x32xf32> {fsdp.param = "embed.weight"},
                %w0: tensor<32x32xf32> {fsdp.param = "h.0.weight"}, %b0: tensor<32xf32> {fsdp.param = "h.0.bias"},
                %w1: tensor<32x64xf32> {fsdp.param = "h.1.weight"}, %b1: tensor<64xf32> {fsdp.param = "h.1.bias"},
                %ids: tensor<16xi64> {fsdp.batch = "tokens", fsdp.limit = 64 : i64},
                %targets: tensor<16xi64> {fsdp.batch = "targets", fsdp.limit = 64 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %x = fsdp.gather_rows %table[%ids] : tensor<64x32xf32>, tensor<16xi64> -> tensor<16x32xf32>
  %e0 = tensor.empty() : tensor<16x32xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %h0 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%x, %w0 : tensor<16x32xf32>, tensor<32x32xf32>) outs(%z0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %a0 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h0, %b0 : tensor<16x32xf32>, tensor<32xf32>) outs(%e0 : tensor<16x32xf32>) {
  ^bb0(%h: f32, %b: f32, %o: f32):
    %s = arith.addf %h, %b : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16x64xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x64xf32>) -> tensor<16x64xf32>
  %h1 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%a0, %w1 : tensor<16x32xf32>, tensor<32x64xf32>) outs(%z1 : tensor<16x64xf32>) -> tensor<16x64xf32>
  %logits = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h1, %b1 : tensor<16x64xf32>, tensor<64xf32>) outs(%e1 : tensor<16x64xf32>) {
  ^bb0(%h: f32, %b: f32, %o: f32):
    %s = arith.addf %h, %b : f32
    linalg.yield %s : f32
  } -> tensor<16x64xf32>
  %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<16x64xf32>, tensor<16xi64> -> tensor<f32>, tensor<16xf32>
  return %loss : tensor<f32>
}
