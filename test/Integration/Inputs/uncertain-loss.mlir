// Attention whose loss has a learned scale: loss * exp(-g) + g. The cotangent of g is a tensor of rank 0.
func.func @loss(%p0: tensor<11x8xf64> {fsdp.param="h.0.p0", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p1: tensor<8x8xf64> {fsdp.param="h.1.p1", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p2: tensor<8xf64> {fsdp.param="h.0.p2", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p3: tensor<8xf64> {fsdp.param="h.1.p3", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p4: tensor<8x8xf64> {fsdp.param="h.0.p4", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p5: tensor<8x8xf64> {fsdp.param="h.1.p5", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p6: tensor<8x8xf64> {fsdp.param="h.0.p6", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p7: tensor<8x11xf64> {fsdp.param="h.1.p7", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %p8: tensor<f64> {fsdp.param="h.0.p8", fsdp.init = #fsdp.init<normal, 0.0, 0.4>}, %ids: tensor<2x8xi64> {fsdp.batch="tokens", fsdp.limit=11 : i64}, %tg: tensor<2x8xi64> {fsdp.batch="targets", fsdp.limit=11 : i64}, %wt: tensor<2x8xf64> {fsdp.batch="weights"}) -> tensor<f64> {
  %v0 = fsdp.gather_rows %p0[%ids] : tensor<11x8xf64>, tensor<2x8xi64> -> tensor<2x8x8xf64>
  %c1 = tensor.empty() : tensor<2x8x8xf64>
  %v2 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%v0,%p1:tensor<2x8x8xf64>,tensor<8x8xf64>) outs(%c1:tensor<2x8x8xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %r=arith.addf %a0,%a1 : f64
    linalg.yield %r : f64
  } -> tensor<2x8x8xf64>
  %c3 = arith.constant 0.0 : f64
  %c4 = tensor.empty() : tensor<2x8x8xf64>
  %c5 = linalg.fill ins(%c3 : f64) outs(%c4 : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %v6 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d3)>,affine_map<(d0,d1,d2,d3)->(d3,d2)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel","reduction"]} ins(%v2,%p4:tensor<2x8x8xf64>,tensor<8x8xf64>) outs(%c5:tensor<2x8x8xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %m=arith.mulf %a0,%a1 : f64
    %r=arith.addf %o,%m : f64
    linalg.yield %r : f64
  } -> tensor<2x8x8xf64>
  %v7 = tensor.expand_shape %v6 [[0],[1],[2,3]] output_shape [2,8,2,4] : tensor<2x8x8xf64> into tensor<2x8x2x4xf64>
  %c8 = tensor.empty() : tensor<2x2x8x4xf64>
  %v9 = linalg.transpose ins(%v7:tensor<2x8x2x4xf64>) outs(%c8:tensor<2x2x8x4xf64>) permutation = [0, 2, 1, 3]
  %c10 = arith.constant 0.0 : f64
  %c11 = tensor.empty() : tensor<2x8x8xf64>
  %c12 = linalg.fill ins(%c10 : f64) outs(%c11 : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %v13 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d3)>,affine_map<(d0,d1,d2,d3)->(d3,d2)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel","reduction"]} ins(%v2,%p5:tensor<2x8x8xf64>,tensor<8x8xf64>) outs(%c12:tensor<2x8x8xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %m=arith.mulf %a0,%a1 : f64
    %r=arith.addf %o,%m : f64
    linalg.yield %r : f64
  } -> tensor<2x8x8xf64>
  %v14 = tensor.expand_shape %v13 [[0],[1],[2,3]] output_shape [2,8,2,4] : tensor<2x8x8xf64> into tensor<2x8x2x4xf64>
  %c15 = tensor.empty() : tensor<2x2x8x4xf64>
  %v16 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d2,d1,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>],iterator_types=["parallel","parallel","parallel","parallel"]} ins(%v14:tensor<2x8x2x4xf64>) outs(%c15:tensor<2x2x8x4xf64>) {
  ^bb0(%a0: f64,%o: f64):
    linalg.yield %a0 : f64
  } -> tensor<2x2x8x4xf64>
  %c17 = arith.constant 0.0 : f64
  %c18 = tensor.empty() : tensor<2x8x8xf64>
  %c19 = linalg.fill ins(%c17 : f64) outs(%c18 : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %v20 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d3)>,affine_map<(d0,d1,d2,d3)->(d3,d2)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel","reduction"]} ins(%v2,%p6:tensor<2x8x8xf64>,tensor<8x8xf64>) outs(%c19:tensor<2x8x8xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %m=arith.mulf %a0,%a1 : f64
    %r=arith.addf %o,%m : f64
    linalg.yield %r : f64
  } -> tensor<2x8x8xf64>
  %v21 = tensor.expand_shape %v20 [[0],[1],[2,3]] output_shape [2,8,2,4] : tensor<2x8x8xf64> into tensor<2x8x2x4xf64>
  %c22 = tensor.empty() : tensor<2x2x8x4xf64>
  %v23 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d2,d1,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>],iterator_types=["parallel","parallel","parallel","parallel"]} ins(%v21:tensor<2x8x2x4xf64>) outs(%c22:tensor<2x2x8x4xf64>) {
  ^bb0(%a0: f64,%o: f64):
    linalg.yield %a0 : f64
  } -> tensor<2x2x8x4xf64>
  %o24, %l24 = fsdp.attention %v9, %v16, %v23 scale 0.5  : tensor<2x2x8x4xf64>, tensor<2x2x8x4xf64>, tensor<2x2x8x4xf64> -> tensor<2x2x8x4xf64>, tensor<2x2x8xf64> mask_mod(%b: index, %h: index, %i: index, %j: index) {
 %keep = arith.cmpi sge, %i, %j : index
 fsdp.yield %keep : i1
 }
  %c25 = tensor.empty() : tensor<2x8x2x4xf64>
  %v26 = linalg.transpose ins(%o24:tensor<2x2x8x4xf64>) outs(%c25:tensor<2x8x2x4xf64>) permutation = [0, 2, 1, 3]
  %v27 = tensor.collapse_shape %v26 [[0],[1],[2,3]] : tensor<2x8x2x4xf64> into tensor<2x8x8xf64>
  %c28 = tensor.empty() : tensor<2x8x8xf64>
  %v29 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%v2,%v27:tensor<2x8x8xf64>,tensor<2x8x8xf64>) outs(%c28:tensor<2x8x8xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %r=arith.addf %a0,%a1 : f64
    linalg.yield %r : f64
  } -> tensor<2x8x8xf64>
  %c30 = arith.constant 0.0 : f64
  %c31 = tensor.empty() : tensor<2x8x11xf64>
  %c32 = linalg.fill ins(%c30 : f64) outs(%c31 : tensor<2x8x11xf64>) -> tensor<2x8x11xf64>
  %v33 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d3)>,affine_map<(d0,d1,d2,d3)->(d3,d2)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel","reduction"]} ins(%v29,%p7:tensor<2x8x8xf64>,tensor<8x11xf64>) outs(%c32:tensor<2x8x11xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %m=arith.mulf %a0,%a1 : f64
    %r=arith.addf %o,%m : f64
    linalg.yield %r : f64
  } -> tensor<2x8x11xf64>
  %v34 = tensor.collapse_shape %v33 [[0,1],[2]] : tensor<2x8x11xf64> into tensor<16x11xf64>
  %ct35 = tensor.collapse_shape %tg [[0,1]] : tensor<2x8xi64> into tensor<16xi64>
  %lo35, %le35 = fsdp.cross_entropy %v34, %ct35  : tensor<16x11xf64>, tensor<16xi64> -> tensor<f64>, tensor<16xf64>
  %c36 = tensor.empty() : tensor<f64>
  %v37 = linalg.generic {indexing_maps=[affine_map<()->()>,affine_map<()->()>,affine_map<()->()>],iterator_types=[]} ins(%lo35,%p8:tensor<f64>,tensor<f64>) outs(%c36:tensor<f64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %n=arith.negf %a1 : f64
    %x=math.exp %n : f64
    %q=arith.mulf %a0,%x : f64
    %r=arith.addf %q,%a1 : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  return %v37 : tensor<f64>
}
