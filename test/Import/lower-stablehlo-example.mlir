// The matrix product becomes a `linalg.generic`, and the sum becomes an op of `arith` on tensors.
// RUN: fsdp-opt %s --fsdp-lower-stablehlo 2>/dev/null | FileCheck %s

// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: arith.addf {{.*}} : tensor<2x4xf32>
// CHECK-NOT: stablehlo

// DOC-BEFORE-BEGIN fsdp-lower-stablehlo
func.func @f(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// DOC-BEFORE-END
