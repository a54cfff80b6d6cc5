// Both elementwise ops use the shape of the rows, so that no view between the two ops is left.
// RUN: fsdp-opt %s --fsdp-fold-reshapes --canonicalize | FileCheck %s

// CHECK: tensor.collapse_shape
// CHECK: linalg.generic
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<6x4xf32>)
// CHECK: tensor.expand_shape

// DOC-BEFORE-BEGIN fsdp-fold-reshapes
#v = affine_map<(i) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %a = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %g : tensor<6x4xf32>, tensor<4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<6x4xf32>
  %b = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %f = tensor.empty() : tensor<2x3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b : tensor<2x3x4xf32>) outs(%f : tensor<2x3x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}
// DOC-BEFORE-END
