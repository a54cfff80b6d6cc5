// A slice of a product that a softmax and, permuted, a reduction read. Its kernels must not depend on each other in a cycle.
func.func @loss(%p0: tensor<2x6x8xf64> {fsdp.param="h.0.p0"}, %p1: tensor<2x6x8xf64> {fsdp.param="h.1.p1"}, %b: tensor<1xf64> {fsdp.batch="x"}) -> tensor<f64> {
  %c0 = tensor.empty() : tensor<2x6x8xf64>
  %v1 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%p0,%p0:tensor<2x6x8xf64>,tensor<2x6x8xf64>) outs(%c0:tensor<2x6x8xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %r=arith.mulf %a0,%a1 : f64
    linalg.yield %r : f64
  } -> tensor<2x6x8xf64>
  %v4 = tensor.extract_slice %v1[0, 0, 4] [2, 6, 4] [1, 1, 1] : tensor<2x6x8xf64> to tensor<2x6x4xf64>
  %c5 = tensor.empty() : tensor<2x6x4xf64>
  %v6 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%v4:tensor<2x6x4xf64>) outs(%c5:tensor<2x6x4xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %h=arith.constant 0.5 : f64
    %r=arith.mulf %a0,%h : f64
    linalg.yield %r : f64
  } -> tensor<2x6x4xf64>
  %c10 = tensor.empty() : tensor<2x6x4xf64>
  %v11 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%v6:tensor<2x6x4xf64>) outs(%c10:tensor<2x6x4xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %h=arith.constant 0.5 : f64
    %r=arith.mulf %a0,%h : f64
    linalg.yield %r : f64
  } -> tensor<2x6x4xf64>
  %v13 = tensor.expand_shape %v11 [[0], [1, 2], [3]] output_shape [2, 2, 3, 4] : tensor<2x6x4xf64> into tensor<2x2x3x4xf64>
  %c14 = tensor.empty() : tensor<4x6x2xf64>
  %v15 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d2,d1,d0)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%v11:tensor<2x6x4xf64>) outs(%c14:tensor<4x6x2xf64>) {
  ^bb0(%a0: f64,%o: f64):
    linalg.yield %a0 : f64
  } -> tensor<4x6x2xf64>
  %c16 = arith.constant -1.0e30 : f64
  %c17 = tensor.empty() : tensor<2x2x3xf64>
  %c18 = linalg.fill ins(%c16 : f64) outs(%c17 : tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  %v19 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel","reduction"]} ins(%v13:tensor<2x2x3x4xf64>) outs(%c18:tensor<2x2x3xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %r=arith.maximumf %o,%a0 : f64
    linalg.yield %r : f64
  } -> tensor<2x2x3xf64>
  %c20 = tensor.empty() : tensor<2x2x3x4xf64>
  %v21 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>],iterator_types=["parallel","parallel","parallel","parallel"]} ins(%v13,%v19:tensor<2x2x3x4xf64>,tensor<2x2x3xf64>) outs(%c20:tensor<2x2x3x4xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %d=arith.subf %a0,%a1 : f64
    %r=math.exp %d : f64
    linalg.yield %r : f64
  } -> tensor<2x2x3x4xf64>
  %c22 = arith.constant 0.0 : f64
  %c23 = tensor.empty() : tensor<2x2x3xf64>
  %c24 = linalg.fill ins(%c22 : f64) outs(%c23 : tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  %v25 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel","reduction"]} ins(%v21:tensor<2x2x3x4xf64>) outs(%c24:tensor<2x2x3xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %r=arith.addf %o,%a0 : f64
    linalg.yield %r : f64
  } -> tensor<2x2x3xf64>
  %c26 = tensor.empty() : tensor<2x2x3x4xf64>
  %v27 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>],iterator_types=["parallel","parallel","parallel","parallel"]} ins(%v21,%v25:tensor<2x2x3x4xf64>,tensor<2x2x3xf64>) outs(%c26:tensor<2x2x3x4xf64>) {
  ^bb0(%a0: f64,%a1: f64,%o: f64):
    %r=arith.divf %a0,%a1 : f64
    linalg.yield %r : f64
  } -> tensor<2x2x3x4xf64>
  %c58 = tensor.empty() : tensor<4x6x2xf64>
  %v59 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d0,d1,d2)>],iterator_types=["parallel","parallel","parallel"]} ins(%v15:tensor<4x6x2xf64>) outs(%c58:tensor<4x6x2xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %q=arith.mulf %a0,%a0 : f64
 %h=arith.constant 0.25 : f64
  %w=arith.mulf %q,%h : f64
  %r=arith.addf %w,%a0 : f64
  linalg.yield %r : f64
  } -> tensor<4x6x2xf64>
  %c60 = arith.constant 0.0 : f64
  %c61 = tensor.empty() : tensor<6x2xf64>
  %c62 = linalg.fill ins(%c60 : f64) outs(%c61 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %v63 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d1,d2)>,affine_map<(d0,d1,d2)->(d1,d2)>],iterator_types=["reduction","parallel","parallel"]} ins(%v59:tensor<4x6x2xf64>) outs(%c62:tensor<6x2xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %r=arith.addf %o,%a0 : f64
    linalg.yield %r : f64
  } -> tensor<6x2xf64>
  %c64 = arith.constant 0.0 : f64
  %c65 = tensor.empty() : tensor<f64>
  %c66 = linalg.fill ins(%c64 : f64) outs(%c65 : tensor<f64>) -> tensor<f64>
  %v67 = linalg.generic {indexing_maps=[affine_map<(d0,d1)->(d0,d1)>,affine_map<(d0,d1)->()>],iterator_types=["reduction","reduction"]} ins(%v63:tensor<6x2xf64>) outs(%c66:tensor<f64>) {
  ^bb0(%a0: f64,%o: f64):
    %r=arith.addf %o,%a0 : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  %c68 = tensor.empty() : tensor<2x2x3x4xf64>
  %v69 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>],iterator_types=["parallel","parallel","parallel","parallel"]} ins(%v27:tensor<2x2x3x4xf64>) outs(%c68:tensor<2x2x3x4xf64>) {
  ^bb0(%a0: f64,%o: f64):
    %q=arith.mulf %a0,%a0 : f64
 %h=arith.constant 0.25 : f64
  %w=arith.mulf %q,%h : f64
  %r=arith.addf %w,%a0 : f64
  linalg.yield %r : f64
  } -> tensor<2x2x3x4xf64>
  %c70 = arith.constant 0.0 : f64
  %c71 = tensor.empty() : tensor<f64>
  %c72 = linalg.fill ins(%c70 : f64) outs(%c71 : tensor<f64>) -> tensor<f64>
  %v73 = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>,affine_map<(d0,d1,d2,d3)->()>],iterator_types=["reduction","reduction","reduction","reduction"]} ins(%v69:tensor<2x2x3x4xf64>) outs(%c72:tensor<f64>) {
  ^bb0(%a0: f64,%o: f64):
    %r=arith.addf %o,%a0 : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  %x0=tensor.empty() : tensor<f64>
  %y0 = linalg.add ins(%v67,%v73:tensor<f64>,tensor<f64>) outs(%x0:tensor<f64>) -> tensor<f64>
  return %y0 : tensor<f64>
}
