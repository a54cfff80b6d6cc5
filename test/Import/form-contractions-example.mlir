// A sum of products with loops over m, n and k becomes a `linalg.contract`.
// RUN: fsdp-opt %s --fsdp-form-contractions | FileCheck %s

// CHECK: linalg.contract
// CHECK-NOT: linalg.generic

// DOC-BEFORE-BEGIN fsdp-form-contractions
func.func @f(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>, %f: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x5xf32>
  return %p : tensor<4x5xf32>
}
// DOC-BEFORE-END
