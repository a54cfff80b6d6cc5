// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-refuse-unwritten

// No error: outputs that are not read, and a tensor that slices cover.
func.func @good(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>, tensor<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %h = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %e2 = tensor.empty() : tensor<2x3xf32>
  %y = linalg.exp ins(%x : tensor<2x3xf32>) outs(%e2 : tensor<2x3xf32>) -> tensor<2x3xf32>
  %e3 = tensor.empty() : tensor<4x3xf32>
  %s = tensor.insert_slice %x into %e3[2, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x3xf32>
  %t = tensor.insert_slice %y into %s[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x3xf32>
  return %h, %y, %t : tensor<2x4xf32>, tensor<2x3xf32>, tensor<4x3xf32>
}

// -----

// DOC-BEFORE-BEGIN fsdp-refuse-unwritten
func.func @output(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  // expected-note @+1 {{the tensor is created here}}
  %e = tensor.empty() : tensor<2x4xf32>
  // expected-error @+1 {{'linalg.matmul' reads the initial value of its output, which is not written; fill it with linalg.fill}}
  %h = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %h : tensor<2x4xf32>
}
// DOC-BEFORE-END

// -----

func.func @input(%x: tensor<6xf32>) -> tensor<6xf32> {
  // expected-note @+1 {{the tensor is created here}}
  %e = tensor.empty() : tensor<2x3xf32>
  %v = tensor.collapse_shape %e [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  // expected-error @+1 {{'linalg.add' reads a tensor with unwritten elements; fill it with linalg.fill}}
  %y = linalg.add ins(%x, %v : tensor<6xf32>, tensor<6xf32>) outs(%x : tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

func.func @part(%x: tensor<2x3xf32>) -> tensor<4x3xf32> {
  // expected-note @+1 {{the tensor is created here}}
  %e = tensor.empty() : tensor<4x3xf32>
  %s = tensor.insert_slice %x into %e[2, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x3xf32>
  // Both slices are at the same offset.
  %t = tensor.insert_slice %x into %s[2, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x3xf32>
  // expected-error @+1 {{'func.return' reads a tensor with unwritten elements}}
  return %t : tensor<4x3xf32>
}
