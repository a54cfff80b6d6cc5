// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// random (C1)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected a static shape and elements of f16, bf16, f32 or f64, or of i1 with bernoulli}}
  %r = fsdp.random uniform seed %s step %s first %s site 0 : tensor<4xi1>
  return
}

// -----

// random (C1)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected a static shape and elements of f16, bf16, f32 or f64}}
  %r = fsdp.random uniform seed %s step %s first %s site 0 : tensor<?xf32>
  return
}

// -----

// random (C2)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected a site in [0, 2^32), found -1}}
  %r = fsdp.random uniform seed %s step %s first %s site -1 : tensor<4xf32>
  return
}

// -----

// random (C3)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected the number of elements of a sample to divide 4, found 3}}
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
  // expected-error @below {{'uniform' takes no attribute 'keep'}}
  %r = fsdp.random uniform keep 0.5 seed %s step %s first %s site 0 : tensor<4xf32>
  return
}

// -----

// random (C4)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{'bernoulli' requires the attribute 'keep'}}
  %r = fsdp.random bernoulli seed %s step %s first %s site 0 : tensor<4xf32>
  return
}

// -----

// random (C4)
func.func @f(%s: tensor<i64>) {
  // expected-error @below {{expected 'keep' in [0, 1], found}}
  %r = fsdp.random bernoulli keep 1.5 seed %s step %s first %s site 0 : tensor<4xf32>
  return
}

// -----

// gemm (C1)
func.func @f(%a: tensor<4xf32>, %b: tensor<4x2xf32>, %c: tensor<4x2xf32>) {
  // expected-error @below {{expected A, B and C of static shape with equal numbers of dimensions, at least 2; found}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 : tensor<4xf32>, tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

// gemm (C2)
func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<3x4x5xf32>, %c: tensor<2x3x5xf32>) {
  // expected-error @below {{expected equal batches}}
  %r = fsdp.gemm %a, %b into %c transpose [false, false] alpha 1.0 beta 0.0 : tensor<2x3x4xf32>, tensor<3x4x5xf32>, tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

// gemm (C3)
func.func @f(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) {
  // expected-error @below {{expected matrices A, B and C of M x K, K x N and M x N, after 'transpose' found 4 x 3, 4 x 5 and 3 x 5}}
  %r = fsdp.gemm %a, %b into %c transpose [true, false] alpha 1.0 beta 0.0 : tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32> -> tensor<3x5xf32>
  return
}

// -----

// gemm (C4)
func.func @f(%a: tensor<3x4xbf16>, %b: tensor<4x5xbf16>, %c: tensor<3x5xf64>) {
  // expected-error @below {{expected A and B of one element type, and C of that type or 'f32'}}
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
