// One attention layer with an output projection, ALiBi-like learned slopes, grouped heads, a causal mask.
func.func @loss(%wo: tensor<16x16xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "h.0.o.weight"}, %wte: tensor<37x16xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "wte.weight"}, %wq: tensor<16x16xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "h.0.q.weight"},
                %wk: tensor<16x8xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "h.0.k.weight"}, %wv: tensor<16x8xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "h.0.v.weight"},
                %slope: tensor<4xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "h.0.slope"}, %table: tensor<16xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "h.0.table"},
                %head: tensor<16x37xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 5.000000e-01>, fsdp.param = "lm_head.weight"},
                %ids: tensor<2x8xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64},
                %tgt: tensor<2x8xi64> {fsdp.batch = "targets", fsdp.limit = 37 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = fsdp.gather_rows %wte[%ids] : tensor<37x16xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
  %x = tensor.collapse_shape %e [[0, 1], [2]] : tensor<2x8x16xf32> into tensor<16x16xf32>
  %i16 = tensor.empty() : tensor<16x16xf32>
  %z16 = linalg.fill ins(%zero : f32) outs(%i16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %i8 = tensor.empty() : tensor<16x8xf32>
  %z8 = linalg.fill ins(%zero : f32) outs(%i8 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %q0 = linalg.matmul ins(%x, %wq : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %k0 = linalg.matmul ins(%x, %wk : tensor<16x16xf32>, tensor<16x8xf32>) outs(%z8 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %v0 = linalg.matmul ins(%x, %wv : tensor<16x16xf32>, tensor<16x8xf32>) outs(%z8 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %q1 = tensor.expand_shape %q0 [[0, 1], [2, 3]] output_shape [2, 8, 4, 4] : tensor<16x16xf32> into tensor<2x8x4x4xf32>
  %k1 = tensor.expand_shape %k0 [[0, 1], [2, 3]] output_shape [2, 8, 2, 4] : tensor<16x8xf32> into tensor<2x8x2x4xf32>
  %v1 = tensor.expand_shape %v0 [[0, 1], [2, 3]] output_shape [2, 8, 2, 4] : tensor<16x8xf32> into tensor<2x8x2x4xf32>
  %qe = tensor.empty() : tensor<2x4x8x4xf32>
  %ke = tensor.empty() : tensor<2x2x8x4xf32>
  %q = linalg.transpose ins(%q1 : tensor<2x8x4x4xf32>) outs(%qe : tensor<2x4x8x4xf32>) permutation = [0, 2, 1, 3]
  %k = linalg.transpose ins(%k1 : tensor<2x8x2x4xf32>) outs(%ke : tensor<2x2x8x4xf32>) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%v1 : tensor<2x8x2x4xf32>) outs(%ke : tensor<2x2x8x4xf32>) permutation = [0, 2, 1, 3]
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 capture(%slope, %table : tensor<4xf32>, tensor<16xf32>)
      : tensor<2x4x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x4x8x4xf32>, tensor<2x4x8xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %t: tensor<16xf32>) {
    %c8 = arith.constant 8 : index
    %slope_h = tensor.extract %m[%h] : tensor<4xf32>
    %d = arith.subi %j, %i : index
    %at = arith.addi %d, %c8 : index
    %learned = tensor.extract %t[%at] : tensor<16xf32>
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f32
    %bias = arith.mulf %slope_h, %distance : f32
    %r = arith.addf %s, %bias : f32
    %r2 = arith.addf %r, %learned : f32
    fsdp.yield %r2 : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %t: tensor<16xf32>) {
    %keep = arith.cmpi sge, %i, %j : index
    fsdp.yield %keep : i1
  }
  %oe = tensor.empty() : tensor<2x8x4x4xf32>
  %o1 = linalg.transpose ins(%o : tensor<2x4x8x4xf32>) outs(%oe : tensor<2x8x4x4xf32>) permutation = [0, 2, 1, 3]
  %o2 = tensor.collapse_shape %o1 [[0, 1], [2, 3]] : tensor<2x8x4x4xf32> into tensor<16x16xf32>
  %o3 = linalg.matmul ins(%o2, %wo : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = linalg.add ins(%x, %o3 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%i16 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %il = tensor.empty() : tensor<16x37xf32>
  %zl = linalg.fill ins(%zero : f32) outs(%il : tensor<16x37xf32>) -> tensor<16x37xf32>
  %logits = linalg.matmul ins(%y, %head : tensor<16x16xf32>, tensor<16x37xf32>) outs(%zl : tensor<16x37xf32>) -> tensor<16x37xf32>
  %t = tensor.collapse_shape %tgt [[0, 1]] : tensor<2x8xi64> into tensor<16xi64>
  %loss, %l = fsdp.cross_entropy %logits, %t : tensor<16x37xf32>, tensor<16xi64> -> tensor<f32>, tensor<16xf32>
  return %loss : tensor<f32>
}
