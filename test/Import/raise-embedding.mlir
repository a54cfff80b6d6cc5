// RUN: fsdp-opt %s --fsdp-raise-embedding --canonicalize | FileCheck %s

// DOC-BEFORE-BEGIN fsdp-raise-embedding
#row = affine_map<(n, c) -> (n)>
// DOC-BEFORE-END
// DOC-BEFORE-BEGIN fsdp-raise-embedding
#id = affine_map<(n, c) -> (n, c)>
// DOC-BEFORE-END

// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[W:.*]]: tensor<7x4xf32>, %[[I:.*]]: tensor<3xi32>
// CHECK: %[[R:.*]] = fsdp.gather_rows %[[W]][%[[I]]]
// CHECK-NOT: tensor.extract %
// DOC-BEFORE-BEGIN fsdp-raise-embedding
func.func @rows(%w: tensor<7x4xf32>, %ids: tensor<3xi32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<3xi32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i32, %o: f32):
    %l = arith.extsi %k : i32 to i64
    %i = arith.index_cast %l : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<7x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// DOC-BEFORE-END

// Rows of one number; rows that are matrices; a table with a leading dimension of 1.
// CHECK-LABEL: func.func @ranks(
// CHECK-DAG: tensor.expand_shape %{{.*}} {{\[}}[0, 1]] output_shape [7, 1]
// CHECK-DAG: fsdp.gather_rows %{{.*}} : tensor<7x1xf32>, tensor<3xi64> -> tensor<3x1xf32>
// CHECK-DAG: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : tensor<7x2x4xf32> into tensor<7x8xf32>
// CHECK-DAG: fsdp.gather_rows %{{.*}} : tensor<7x8xf32>, tensor<3xi64> -> tensor<3x8xf32>
// CHECK-DAG: tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2]] output_shape [3, 2, 4]
// CHECK-DAG: tensor.extract_slice %{{.*}} : tensor<1x7x4xf32> to tensor<7x4xf32>
// CHECK-NOT: tensor.extract %
func.func @ranks(%a: tensor<7xf32>, %b: tensor<7x2x4xf32>, %c: tensor<1x7x4xf32>, %ids: tensor<3xi64>) -> tensor<3x2x4xf32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<3x2x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, p, q) -> (n)>, affine_map<(n, p, q) -> (n, p, q)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<3xi64>) outs(%e : tensor<3x2x4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %p = linalg.index 1 : index
    %q = linalg.index 2 : index
    %x = tensor.extract %a[%i] : tensor<7xf32>
    %y = tensor.extract %b[%i, %p, %q] : tensor<7x2x4xf32>
    %z = tensor.extract %c[%c0, %i, %q] : tensor<1x7x4xf32>
    %s = arith.addf %x, %y : f32
    %t = arith.mulf %s, %z : f32
    linalg.yield %t : f32
  } -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}

// A computed index becomes an op before the lookup.
// CHECK-LABEL: func.func @offset(
// CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3xi64>)
// CHECK: arith.addi
// CHECK: fsdp.gather_rows %{{.*}}[%[[P]]]
func.func @offset(%w: tensor<7x4xf32>, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %two = arith.constant 2 : i64
  %r = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %l = arith.addi %k, %two : i64
    %i = arith.index_cast %l : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<7x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// A lookup in the last dimension is not raised.
// CHECK-LABEL: func.func @columns(
// CHECK-NOT: gather_rows
func.func @columns(%w: tensor<3x7xf32>, %ids: tensor<3xi64>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%ids : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %j = linalg.index 0 : index
    %v = tensor.extract %w[%j, %i] : tensor<3x7xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
