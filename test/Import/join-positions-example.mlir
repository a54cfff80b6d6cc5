// The two computed indices of a lookup are combined into one computed index.
// RUN: fsdp-opt %s --fsdp-join-positions | FileCheck %s

// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<3x4x5xf32> into tensor<12x5xf32>
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<12x5xf32>

// DOC-BEFORE-BEGIN fsdp-join-positions
func.func @f(%x: tensor<3x4x5xf32>, %rows: tensor<2xi64> {fsdp.limit = 3 : i64},
             %columns: tensor<2xi64> {fsdp.limit = 4 : i64}) -> tensor<2x5xf32> {
  %e = tensor.empty() : tensor<2x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, c) -> (i)>, affine_map<(i, c) -> (i)>, affine_map<(i, c) -> (i, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows, %columns : tensor<2xi64>, tensor<2xi64>) outs(%e : tensor<2x5xf32>) {
  ^bb0(%a: i64, %b: i64, %o: f32):
    %c = linalg.index 1 : index
    %y = arith.index_cast %a : i64 to index
    %z = arith.index_cast %b : i64 to index
    %v = tensor.extract %x[%y, %z, %c] : tensor<3x4x5xf32>
    linalg.yield %v : f32
  } -> tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}
// DOC-BEFORE-END
