// The transpose becomes a part of the indexing map of the elementwise op that reads it.
// RUN: fsdp-opt %s --fsdp-fold-copies | FileCheck %s

// CHECK: linalg.generic {{.*}} ins(%[[X:.*]], %{{.*}} : tensor<5x6xf32>, tensor<6x5xf32>)
// CHECK-NOT: linalg.generic

// DOC-BEFORE-BEGIN fsdp-fold-copies
#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
func.func @f(%x: tensor<5x6xf32>, %y: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %e = tensor.empty() : tensor<6x5xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x6xf32>) outs(%e : tensor<6x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<6x5xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t, %y : tensor<6x5xf32>, tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<6x5xf32>
  return %s : tensor<6x5xf32>
}
// DOC-BEFORE-END
