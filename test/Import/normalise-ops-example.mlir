// The named op becomes a `linalg.generic`, whose body uses the constant as a scalar.
// RUN: fsdp-opt %s --fsdp-normalise-ops | FileCheck %s

// CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4xf32>)
// CHECK: arith.mulf %{{.*}}, %[[TWO]]

// DOC-BEFORE-BEGIN fsdp-normalise-ops
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = arith.constant dense<2.0> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.mul ins(%x, %two : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// DOC-BEFORE-END
