// RUN: fsdp-opt %s --fsdp-fold-copies --mlir-print-local-scope | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>

// A transpose into a product and a transpose after it.
// CHECK-LABEL: func.func @product(
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d0)>]
// CHECK-SAME: outs(%{{.*}} : tensor<5x4xf32>)
// CHECK-NOT: linalg.generic
func.func @product(%x: tensor<4x6xf32>, %w: tensor<5x6xf32>) -> tensor<5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %ew = tensor.empty() : tensor<6x5xf32>
  %wt = linalg.generic {indexing_maps = [#id, #t], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<5x6xf32>) outs(%ew : tensor<6x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<6x5xf32>
  %e = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wt : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %et = tensor.empty() : tensor<5x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #t], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<4x5xf32>) outs(%et : tensor<5x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// A sum over the broadcast dimension keeps its copy, which determines the extent of the loop.
// CHECK-LABEL: func.func @sum(
// CHECK-COUNT-2: linalg.generic
func.func @sum(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %b = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%b : tensor<4x6xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}
