// One weight of 4 heads of queries, a head of keys and a head of values, as in Falcon.
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#weight = affine_map<(d0, d1, d2) -> (d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
#heads = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @loss(%table: tensor<61x32xf32> {fsdp.param = "table", fsdp.init = #fsdp.init<normal, 0.0, 0.3>},
    %qkv: tensor<48x32xf32> {fsdp.param = "qkv.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.3>},
    %w: tensor<32x32xf32> {fsdp.param = "o.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.3>},
    %head: tensor<61x32xf32> {fsdp.param = "head.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.3>},
    %ids: tensor<2x8xi64> {fsdp.batch = "ids"}, %targets: tensor<2x8xi64> {fsdp.batch = "targets"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %ids [[0, 1]] : tensor<2x8xi64> into tensor<16xi64>
  %x = fsdp.gather_rows %table[%flat] : tensor<61x32xf32>, tensor<16xi64> -> tensor<16x32xf32>
  %e = tensor.empty() : tensor<16x48xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x48xf32>) -> tensor<16x48xf32>
  %y = linalg.contract indexing_maps = [#rows, #weight, #out] ins(%x, %qkv : tensor<16x32xf32>, tensor<48x32xf32>) outs(%z : tensor<16x48xf32>) -> tensor<16x48xf32>
  %fused = tensor.expand_shape %y [[0, 1], [2, 3]] output_shape [2, 8, 6, 8] : tensor<16x48xf32> into tensor<2x8x6x8xf32>
  %q0 = tensor.extract_slice %fused[0, 0, 0, 0] [2, 8, 4, 8] [1, 1, 1, 1] : tensor<2x8x6x8xf32> to tensor<2x8x4x8xf32>
  %k0 = tensor.extract_slice %fused[0, 0, 4, 0] [2, 8, 1, 8] [1, 1, 1, 1] : tensor<2x8x6x8xf32> to tensor<2x8x1x8xf32>
  %v0 = tensor.extract_slice %fused[0, 0, 5, 0] [2, 8, 1, 8] [1, 1, 1, 1] : tensor<2x8x6x8xf32> to tensor<2x8x1x8xf32>
  %eq = tensor.empty() : tensor<2x4x8x8xf32>
  %ek = tensor.empty() : tensor<2x1x8x8xf32>
  %q = linalg.generic {indexing_maps = [#heads, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<2x8x4x8xf32>) outs(%eq : tensor<2x4x8x8xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<2x4x8x8xf32>
  %k = linalg.generic {indexing_maps = [#heads, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<2x8x1x8xf32>) outs(%ek : tensor<2x1x8x8xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<2x1x8x8xf32>
  %v = linalg.generic {indexing_maps = [#heads, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<2x8x1x8xf32>) outs(%ek : tensor<2x1x8x8xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<2x1x8x8xf32>
  %a, %lse = fsdp.attention %q, %k, %v scale 0.35 : tensor<2x4x8x8xf32>, tensor<2x1x8x8xf32>, tensor<2x1x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %keep = arith.cmpi sge, %i, %j : index
    fsdp.yield %keep : i1
  }
  %ea = tensor.empty() : tensor<2x8x4x8xf32>
  %back = linalg.generic {indexing_maps = [#heads, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%a : tensor<2x4x8x8xf32>) outs(%ea : tensor<2x8x4x8xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<2x8x4x8xf32>
  %joined = tensor.collapse_shape %back [[0, 1], [2, 3]] : tensor<2x8x4x8xf32> into tensor<16x32xf32>
  %eo = tensor.empty() : tensor<16x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<16x32xf32>) -> tensor<16x32xf32>
  %p = linalg.contract indexing_maps = [#rows, #weight, #out] ins(%joined, %w : tensor<16x32xf32>, tensor<32x32xf32>) outs(%zo : tensor<16x32xf32>) -> tensor<16x32xf32>
  %r = linalg.add ins(%x, %p : tensor<16x32xf32>, tensor<16x32xf32>) outs(%eo : tensor<16x32xf32>) -> tensor<16x32xf32>
  %el = tensor.empty() : tensor<16x61xf32>
  %zl = linalg.fill ins(%zero : f32) outs(%el : tensor<16x61xf32>) -> tensor<16x61xf32>
  %logits = linalg.contract indexing_maps = [#rows, #weight, #out] ins(%r, %head : tensor<16x32xf32>, tensor<61x32xf32>) outs(%zl : tensor<16x61xf32>) -> tensor<16x61xf32>
  %classes = tensor.collapse_shape %targets [[0, 1]] : tensor<2x8xi64> into tensor<16xi64>
  %loss, %sums = fsdp.cross_entropy %logits, %classes : tensor<16x61xf32>, tensor<16xi64> -> tensor<f32>, tensor<16xf32>
  return %loss : tensor<f32>
}
