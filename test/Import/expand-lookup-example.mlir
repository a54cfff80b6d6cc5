// The lookup of one number per row becomes a sum over the row, in which a mask selects the number.
// RUN: fsdp-opt %s --fsdp-expand-lookup --canonicalize | FileCheck %s

// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK: arith.addf
// CHECK-NOT: tensor.extract

// DOC-BEFORE-BEGIN fsdp-expand-lookup
func.func @f(%x: tensor<3x5xf32>, %t: tensor<3xi64> {fsdp.limit = 5 : i64}) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%t : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%i, %j] : tensor<3x5xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
// DOC-BEFORE-END
