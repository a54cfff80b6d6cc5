// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// random (C1)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected elements of f16, bf16, f32 or f64 for distribution 'uniform', found 'tensor<4xi1>'}}
  %r = fsdp.random uniform seed %s step %s first %s site 0 : tensor<4xi1>
  return
}

// -----

// random (C1)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected a result of static shape, found 'tensor<?xf32>'}}
  %r = fsdp.random uniform seed %s step %s first %s site 0 : tensor<?xf32>
  return
}

// -----

// random (C2)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected a site from 0 to 2^32 - 1, found -1}}
  %r = fsdp.random uniform seed %s step %s first %s site -1 : tensor<4xf32>
  return
}

// -----

// random (C3)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected 'per_sample' to be a positive divisor of the number of elements, 4, found 3}}
  %r = fsdp.random uniform seed %s step %s first %s site 0 per_sample 3 : tensor<4xf32>
  return
}

// -----

// random (C3)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected samples of at most 2^33 elements, found 8589934593}}
  %r = fsdp.random uniform seed %s step %s first %s site 0 : tensor<1x8589934593xf32>
  return
}

// -----

// random (C4)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected no 'keep' after 'uniform', found 'keep' 5}}
  %r = fsdp.random uniform keep 0.5 seed %s step %s first %s site 0 : tensor<4xf32>
  return
}

// -----

// random (C4)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected 'keep' after 'bernoulli', found none}}
  %r = fsdp.random bernoulli seed %s step %s first %s site 0 : tensor<4xf32>
  return
}

// -----

// random (C4)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected 'keep' to be a probability, from 0 to 1, found}}
  %r = fsdp.random bernoulli keep 1.5 seed %s step %s first %s site 0 : tensor<4xf32>
  return
}

// -----

// gemm (C1)
func.func @f(%a: tensor<4xf32>, %b: tensor<4x2xf32>, %c: tensor<4x2xf32>) {
  // expected-error @below {{expected A, B and C to have the same number of dimensions, at least 2; found 1 (A), 2 (B) and 2 (C)}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 : tensor<4xf32>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

// gemm (C2)
func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<3x4x5xf32>, %c: tensor<2x3x5xf32>) {
  // expected-error @below {{expected A, B and C to be equal in all dimensions but the last two, found}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 : tensor<2x3x4xf32>, tensor<3x4x5xf32>, tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

// gemm (C3)
func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) {
  // expected-error @below {{expected A, B and C to be matrices of M x K, K x N and M x N after 'transpose', found 4 x 3, 4 x 5 and 3 x 5}}
  %r = fsdp.gemm %a, %b into %c transpose [true, false] alpha 1.0 beta 0.0 : tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32> -> tensor<3x5xf32>
  return
}

// -----

// gemm (C4)
func.func @f(%a: tensor<3x4xbf16>, %b: tensor<4x5xbf16>, %c: tensor<3x5xf64>) {
  // expected-error @below {{expected C to have the element type 'bf16' (that of A and B) or 'f32', found 'f64'}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 : tensor<3x4xbf16>, tensor<4x5xbf16>, tensor<3x5xf64> -> tensor<3x5xf64>
  return
}

// -----

// gemm (C5)
func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) {
  // expected-error @below {{expected a result of type 'tensor<3x5xf32>', found 'tensor<3x6xf32>'}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 : tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32> -> tensor<3x6xf32>
  return
}

// -----

// gemm (C6)
func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>, %d: tensor<4xf32>) {
  // expected-error @below {{expected a bias of 5 elements of 'f32', found 'tensor<4xf32>'}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 bias %d : tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32>, tensor<4xf32> -> tensor<3x5xf32>
  return
}

// -----

// gemm (C7)
func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) {
  // expected-error @below {{expected a finite beta, found nan}}
  %s = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0x7FF8000000000000 : tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32> -> tensor<3x5xf32>
  return
}

// -----

// gemm (C7)
func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) {
  // expected-error @below {{expected a finite alpha, found inf}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 0x7FF0000000000000 beta 0.0 : tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32> -> tensor<3x5xf32>
  return
}
