// RUN: fsdp-opt %s --fsdp-verify-fused --split-input-file --verify-diagnostics

// DOC-BEFORE-BEGIN fsdp-verify-fused
func.func @outside(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'tensor.empty' is outside a dispatch after the stage Fuse}}
  %e = tensor.empty() : tensor<8xf32>
  return %e : tensor<8xf32>
}
// DOC-BEFORE-END

// -----

// Kernels cannot bind a slice that is not one range of bytes, or whose offset is no multiple of 64 bytes.
func.func @views(%x: tensor<8x32xf32>) -> (tensor<1x32xf32>, tensor<8x16xf32>, tensor<1x8xf32>) {
  %a = tensor.extract_slice %x[3, 0] [1, 32] [1, 1] : tensor<8x32xf32> to tensor<1x32xf32>
  // expected-error @below {{'tensor.extract_slice' is outside a dispatch after the stage Fuse}}
  %b = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  // expected-error @below {{'tensor.extract_slice' is outside a dispatch after the stage Fuse}}
  %c = tensor.extract_slice %x[0, 8] [1, 8] [1, 1] : tensor<8x32xf32> to tensor<1x8xf32>
  return %a, %b, %c : tensor<1x32xf32>, tensor<8x16xf32>, tensor<1x8xf32>
}

// -----

func.func @two_scatters(%u: tensor<4x8xf32>, %i: tensor<4xi64>) -> tensor<8x8xf32> {
  // expected-error @below {{expected at most one contraction or scatter, found 2}}
  %y = fsdp.dispatch (%u, %i) inplace [-1] : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4xi64>):
    %1 = fsdp.scatter_add_rows %a at %b : tensor<4x8xf32>, tensor<4xi64> -> tensor<8x8xf32>
    %2 = fsdp.scatter_add_rows %a at %b into %1 (tensor<8x8xf32>) : tensor<4x8xf32>, tensor<4xi64> -> tensor<8x8xf32>
    fsdp.yield %2 : tensor<8x8xf32>
  }
  return %y : tensor<8x8xf32>
}

// -----

// Attention may only be beside ops that move elements.
func.func @scaled(%q: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  // expected-error @below {{expected attention to be the only op of its dispatch that computes, found 2 such ops}}
  %o = fsdp.dispatch(%q) inplace [-1] : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%a: tensor<2x4x8x8xf32>):
    %e = tensor.empty() : tensor<2x4x8x8xf32>
    %x = linalg.exp ins(%a : tensor<2x4x8x8xf32>) outs(%e : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    %0:2 = fsdp.attention %x, %a, %a scale 0.25
        : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
    fsdp.yield %0#0 : tensor<2x4x8x8xf32>
  }
  return %o : tensor<2x4x8x8xf32>
}
