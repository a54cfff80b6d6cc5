// An elementwise op of TOSA becomes a `linalg.generic`.
// RUN: fsdp-opt %s --fsdp-lower-tosa | FileCheck %s

// CHECK: linalg.generic
// CHECK: math.exp
// CHECK-NOT: tosa.

// DOC-BEFORE-BEGIN fsdp-lower-tosa
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// DOC-BEFORE-END
