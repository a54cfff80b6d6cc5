// One attention over 8 tokens, whose outputs are added over the sequence, and a classifier of the sums.
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @loss(%embed: tensor<37x16xf32> {fsdp.param = "embed", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %positions: tensor<8x16xf32> {fsdp.param = "positions", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %head: tensor<16x5xf32> {fsdp.param = "head", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %bias: tensor<5xf32> {fsdp.param = "bias"},
                %ids: tensor<3x8xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64},
                %class: tensor<3xi64> {fsdp.batch = "targets", fsdp.limit = 5 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = fsdp.gather_rows %embed[%ids] : tensor<37x16xf32>, tensor<3x8xi64> -> tensor<3x8x16xf32>
  %i3 = tensor.empty() : tensor<3x8x16xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1, d2) -> (d1, d2)>, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %positions : tensor<3x8x16xf32>, tensor<8x16xf32>) outs(%i3 : tensor<3x8x16xf32>) {
  ^bb0(%a: f32, %p: f32, %o: f32):
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x8x16xf32>
  %heads = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [3, 8, 2, 8] : tensor<3x8x16xf32> into tensor<3x8x2x8xf32>
  %i4 = tensor.empty() : tensor<3x2x8x8xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%heads : tensor<3x8x2x8xf32>) outs(%i4 : tensor<3x2x8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x8x8xf32>
  %out, %lse = fsdp.attention %q, %q, %q scale 0.3 : tensor<3x2x8x8xf32>, tensor<3x2x8x8xf32>, tensor<3x2x8x8xf32> -> tensor<3x2x8x8xf32>, tensor<3x2x8xf32>
  %i2 = tensor.empty() : tensor<3x2x8xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%i2 : tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>],
                         iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%out : tensor<3x2x8x8xf32>) outs(%z2 : tensor<3x2x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<3x2x8xf32>
  %pooled = tensor.collapse_shape %sum [[0], [1, 2]] : tensor<3x2x8xf32> into tensor<3x16xf32>
  %il = tensor.empty() : tensor<3x5xf32>
  %zl = linalg.fill ins(%zero : f32) outs(%il : tensor<3x5xf32>) -> tensor<3x5xf32>
  %product = linalg.matmul ins(%pooled, %head : tensor<3x16xf32>, tensor<16x5xf32>) outs(%zl : tensor<3x5xf32>) -> tensor<3x5xf32>
  %logits = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<3x5xf32>, tensor<5xf32>) outs(%il : tensor<3x5xf32>) {
  ^bb0(%a: f32, %p: f32, %o: f32):
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %loss, %rows = fsdp.cross_entropy %logits, %class : tensor<3x5xf32>, tensor<3xi64> -> tensor<f32>, tensor<3xf32>
  return %loss : tensor<f32>
}
