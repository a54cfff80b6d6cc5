// Rotary pairs of neighbouring features (slices with a stride), as in GPT-J, and keys of which one part is the same for all heads, as in
// DeepSeek-V2. Both are computed whole on each rank, or in parts.
#row = affine_map<(b, h, s, d) -> (b, h, s, d)>
#pe = affine_map<(b, h, s, d) -> (b, s, d)>
#first = affine_map<(b, s, d) -> (b, s, 0, d)>
#out = affine_map<(b, s, d) -> (b, s, d)>
func.func @loss(%wte: tensor<36x16xf32> {fsdp.param = "wte.weight"}, %wq: tensor<16x16xf32> {fsdp.param = "h.0.q.weight"},
                %wk: tensor<16x8xf32> {fsdp.param = "h.0.k.weight"}, %wp: tensor<16x4xf32> {fsdp.param = "h.0.position.weight"},
                %wv: tensor<16x16xf32> {fsdp.param = "h.0.v.weight"}, %wo: tensor<16x16xf32> {fsdp.param = "h.0.o.weight"},
                %head: tensor<16x36xf32> {fsdp.param = "lm_head.weight"},
                %ids: tensor<2x8xi64> {fsdp.batch = "tokens", fsdp.limit = 36 : i64},
                %tgt: tensor<2x8xi64> {fsdp.batch = "targets", fsdp.limit = 36 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = fsdp.gather_rows %wte[%ids] : tensor<36x16xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
  %x = tensor.collapse_shape %e [[0, 1], [2]] : tensor<2x8x16xf32> into tensor<16x16xf32>
  %i16 = tensor.empty() : tensor<16x16xf32>
  %z16 = linalg.fill ins(%zero : f32) outs(%i16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %i8 = tensor.empty() : tensor<16x8xf32>
  %z8 = linalg.fill ins(%zero : f32) outs(%i8 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %i4 = tensor.empty() : tensor<16x4xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%i4 : tensor<16x4xf32>) -> tensor<16x4xf32>
  %q0 = linalg.matmul ins(%x, %wq : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %k0 = linalg.matmul ins(%x, %wk : tensor<16x16xf32>, tensor<16x8xf32>) outs(%z8 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %p0 = linalg.matmul ins(%x, %wp : tensor<16x16xf32>, tensor<16x4xf32>) outs(%z4 : tensor<16x4xf32>) -> tensor<16x4xf32>
  %v0 = linalg.matmul ins(%x, %wv : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %q1 = tensor.expand_shape %q0 [[0, 1], [2, 3]] output_shape [2, 8, 4, 4] : tensor<16x16xf32> into tensor<2x8x4x4xf32>
  %k1 = tensor.expand_shape %k0 [[0, 1], [2, 3]] output_shape [2, 8, 4, 2] : tensor<16x8xf32> into tensor<2x8x4x2xf32>
  %v1 = tensor.expand_shape %v0 [[0, 1], [2, 3]] output_shape [2, 8, 4, 4] : tensor<16x16xf32> into tensor<2x8x4x4xf32>
  %e4 = tensor.empty() : tensor<2x4x8x4xf32>
  %e2 = tensor.empty() : tensor<2x4x8x2xf32>
  %q2 = linalg.transpose ins(%q1 : tensor<2x8x4x4xf32>) outs(%e4 : tensor<2x4x8x4xf32>) permutation = [0, 2, 1, 3]
  %k2 = linalg.transpose ins(%k1 : tensor<2x8x4x2xf32>) outs(%e2 : tensor<2x4x8x2xf32>) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%v1 : tensor<2x8x4x4xf32>) outs(%e4 : tensor<2x4x8x4xf32>) permutation = [0, 2, 1, 3]
  // The pairs of queries: (a, b) becomes (-b, a).
  %a = tensor.extract_slice %q2[0, 0, 0, 0] [2, 4, 8, 2] [1, 1, 1, 2] : tensor<2x4x8x4xf32> to tensor<2x4x8x2xf32>
  %b = tensor.extract_slice %q2[0, 0, 0, 1] [2, 4, 8, 2] [1, 1, 1, 2] : tensor<2x4x8x4xf32> to tensor<2x4x8x2xf32>
  %n = linalg.negf ins(%b : tensor<2x4x8x2xf32>) outs(%e2 : tensor<2x4x8x2xf32>) -> tensor<2x4x8x2xf32>
  %q = tensor.concat dim(3) %n, %a : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) -> tensor<2x4x8x4xf32>
  // The part of the keys that all heads have: the first of two rows of features.
  %p1 = tensor.expand_shape %p0 [[0, 1], [2, 3]] output_shape [2, 8, 2, 2] : tensor<16x4xf32> into tensor<2x8x2x2xf32>
  %ep = tensor.empty() : tensor<2x8x2xf32>
  %p2 = linalg.generic {indexing_maps = [#first, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p1 : tensor<2x8x2x2xf32>) outs(%ep : tensor<2x8x2xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<2x8x2xf32>
  %p = linalg.generic {indexing_maps = [#pe, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%p2 : tensor<2x8x2xf32>) outs(%e2 : tensor<2x4x8x2xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<2x4x8x2xf32>
  %k = tensor.concat dim(3) %k2, %p : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) -> tensor<2x4x8x4xf32>
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32> -> tensor<2x4x8x4xf32>, tensor<2x4x8xf32>
      mask_mod(%bb: index, %h: index, %i: index, %j: index) {
    %keep = arith.cmpi sge, %i, %j : index
    fsdp.yield %keep : i1
  }
  %oe = tensor.empty() : tensor<2x8x4x4xf32>
  %o1 = linalg.transpose ins(%o : tensor<2x4x8x4xf32>) outs(%oe : tensor<2x8x4x4xf32>) permutation = [0, 2, 1, 3]
  %o2 = tensor.collapse_shape %o1 [[0, 1], [2, 3]] : tensor<2x8x4x4xf32> into tensor<16x16xf32>
  %o3 = linalg.matmul ins(%o2, %wo : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = linalg.add ins(%x, %o3 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%i16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %il = tensor.empty() : tensor<16x36xf32>
  %zl = linalg.fill ins(%zero : f32) outs(%il : tensor<16x36xf32>) -> tensor<16x36xf32>
  %logits = linalg.matmul ins(%y, %head : tensor<16x16xf32>, tensor<16x36xf32>) outs(%zl : tensor<16x36xf32>) -> tensor<16x36xf32>
  %t = tensor.collapse_shape %tgt [[0, 1]] : tensor<2x8xi64> into tensor<16xi64>
  %loss, %l = fsdp.cross_entropy %logits, %t : tensor<16x36xf32>, tensor<16xi64> -> tensor<f32>, tensor<16xf32>
  return %loss : tensor<f32>
}
