// A perceptron with unusual parameters: h.0.weight is used in both layers, h.0.spare is unused, h.1.none has no
// elements, h.1.scale has another type.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

func.func @loss(%table: tensor<37x24xf32> {fsdp.param = "embed.weight"},
                %w0: tensor<24x24xf32> {fsdp.param = "h.0.weight"}, %b0: tensor<24xf32> {fsdp.param = "h.0.bias"},
                %spare: tensor<5x7xf32> {fsdp.param = "h.0.spare"}, %none: tensor<0x24xf32> {fsdp.param = "h.1.none"},
                %scale: tensor<24xbf16> {fsdp.param = "h.1.scale", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
                %w1: tensor<24x37xf32> {fsdp.param = "h.1.weight"}, %b1: tensor<37xf32> {fsdp.param = "h.1.bias"},
                %ids: tensor<16xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64},
                %targets: tensor<16xi64> {fsdp.batch = "targets", fsdp.limit = 37 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %x = fsdp.gather_rows %table[%ids] : tensor<37x24xf32>, tensor<16xi64> -> tensor<16x24xf32>
  %e0 = tensor.empty() : tensor<16x24xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x24xf32>) -> tensor<16x24xf32>
  %h0 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%x, %w0 : tensor<16x24xf32>, tensor<24x24xf32>) outs(%z0 : tensor<16x24xf32>) -> tensor<16x24xf32>
  %a0 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h0, %b0 : tensor<16x24xf32>, tensor<24xf32>) outs(%e0 : tensor<16x24xf32>) {
  ^bb0(%h: f32, %b: f32, %o: f32):
    %s = arith.addf %h, %b : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<16x24xf32>
  %h1 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%a0, %w0 : tensor<16x24xf32>, tensor<24x24xf32>) outs(%z0 : tensor<16x24xf32>) -> tensor<16x24xf32>
  %a1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h1, %scale : tensor<16x24xf32>, tensor<24xbf16>) outs(%e0 : tensor<16x24xf32>) {
  ^bb0(%h: f32, %c: bf16, %o: f32):
    %w = arith.extf %c : bf16 to f32
    %s = arith.mulf %h, %w : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<16x24xf32>
  %e1 = tensor.empty() : tensor<16x37xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x37xf32>) -> tensor<16x37xf32>
  %h2 = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%a1, %w1 : tensor<16x24xf32>, tensor<24x37xf32>) outs(%z1 : tensor<16x37xf32>) -> tensor<16x37xf32>
  %logits = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h2, %b1 : tensor<16x37xf32>, tensor<37xf32>) outs(%e1 : tensor<16x37xf32>) {
  ^bb0(%h: f32, %b: f32, %o: f32):
    %s = arith.addf %h, %b : f32
    linalg.yield %s : f32
  } -> tensor<16x37xf32>
  %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<16x37xf32>, tensor<16xi64> -> tensor<f32>, tensor<16xf32>
  return %loss : tensor<f32>
}
