// Contractions that are one call of cuBLASLt including the epilogue, and contractions that are not.
// RUN: fsdp-kernel-test %s --target=sm_90a --gemm=cublaslt --emit=ptx | FileCheck %s
// RUN: not fsdp-kernel-test %s --gemm=cublaslt 2>&1 | FileCheck %s --check-prefix=USAGE
// USAGE: --gemm=cublaslt: expected nvptx, or cublaslt together with --emit

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
#bmk = affine_map<(b, m, n, k) -> (b, m, k)>
#bnk = affine_map<(b, m, n, k) -> (b, n, k)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK: @plain: 3 bindings, 33554432 bytes of scratch
// CHECK-NEXT: cublasLtMatmul plain: 16 x 24 x 32, 1 time{{$}}
func.func private @plain(%x: tensor<16x32xbf16>, %w: tensor<32x24xbf16>, %y: tensor<16x24xf32> {fsdp.out = 0}) -> tensor<16x24xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<32x24xbf16>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %p : tensor<16x24xf32>
}

// A column-major result: the factors are exchanged.
// CHECK: cublasLtMatmul columns: 24 x 16 x 32, 1 time, lhs transposed, rhs transposed{{$}}
func.func private @columns(%x: tensor<16x32xbf16>, %w: tensor<32x24xbf16>, %y: tensor<24x16xf32> {fsdp.out = 0}) -> tensor<24x16xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<24x16xf32>) -> tensor<24x16xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #nm] ins(%x, %w : tensor<16x32xbf16>, tensor<32x24xbf16>) outs(%init : tensor<24x16xf32>) -> tensor<24x16xf32>
  return %p : tensor<24x16xf32>
}

// The gradient of a weight, added to an existing value.
// CHECK: cublasLtMatmul accumulate: 16 x 24 x 32, 1 time, lhs transposed, added{{$}}
func.func private @accumulate(%x: tensor<32x16xbf16>, %w: tensor<32x24xbf16>, %y: tensor<16x24xf32> {fsdp.inout = 0}) -> tensor<16x24xf32> attributes {fsdp.kernel} {
  %p = linalg.contract indexing_maps = [#km, #kn, #mn] ins(%x, %w : tensor<32x16xbf16>, tensor<32x24xbf16>) outs(%y : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %p : tensor<16x24xf32>
}

// A bias and a residual; rounding between the sums and the result is omitted.
// CHECK: cublasLtMatmul residual: 16 x 24 x 32, 1 time, rhs transposed, added, bias{{$}}
func.func private @residual(%x: tensor<16x32xbf16>, %w: tensor<24x32xbf16>, %b: tensor<24xbf16>, %r: tensor<16x24xbf16> {fsdp.inout = 0}) -> tensor<16x24xbf16> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<24x32xbf16>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  %o = tensor.empty() : tensor<16x24xbf16>
  %h = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<16x24xf32>) outs(%o : tensor<16x24xbf16>) {
  ^bb0(%s: f32, %out: bf16):
    %1 = arith.truncf %s : f32 to bf16
    linalg.yield %1 : bf16
  } -> tensor<16x24xbf16>
  %y = linalg.generic {indexing_maps = [#ij, #j, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%h, %b, %r : tensor<16x24xbf16>, tensor<24xbf16>, tensor<16x24xbf16>) outs(%o : tensor<16x24xbf16>) {
  ^bb0(%s: bf16, %c: bf16, %d: bf16, %out: bf16):
    %1 = arith.extf %s : bf16 to f32
    %2 = arith.extf %c : bf16 to f32
    %3 = arith.extf %d : bf16 to f32
    %4 = arith.addf %1, %2 : f32
    %5 = arith.addf %3, %4 : f32
    %6 = arith.truncf %5 : f32 to bf16
    linalg.yield %6 : bf16
  } -> tensor<16x24xbf16>
  return %y : tensor<16x24xbf16>
}

// GELU of the sum and a bias; the argument of GELU is stored, too.
// CHECK: cublasLtMatmul gelu: 16 x 24 x 32, 1 time, bias, gelu, its argument{{$}}
func.func private @gelu(%x: tensor<16x32xbf16>, %w: tensor<32x24xbf16>, %b: tensor<24xbf16>, %a: tensor<16x24xbf16> {fsdp.out = 0}, %y: tensor<16x24xbf16> {fsdp.out = 1}) -> (tensor<16x24xbf16>, tensor<16x24xbf16>) attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %cube = arith.constant 0.044715 : f32
  %scale = arith.constant 0.797884583 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<32x24xbf16>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  %o = tensor.empty() : tensor<16x24xbf16>
  %r:2 = linalg.generic {indexing_maps = [#ij, #j, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<16x24xf32>, tensor<24xbf16>) outs(%o, %o : tensor<16x24xbf16>, tensor<16x24xbf16>) {
  ^bb0(%s: f32, %c: bf16, %out: bf16, %out2: bf16):
    %1 = arith.extf %c : bf16 to f32
    %2 = arith.addf %s, %1 : f32
    %3 = arith.mulf %2, %half : f32
    %4 = arith.mulf %2, %2 : f32
    %5 = arith.mulf %4, %2 : f32
    %6 = math.fma %5, %cube, %2 : f32
    %7 = arith.mulf %6, %scale : f32
    %8 = math.tanh %7 : f32
    %9 = arith.addf %8, %one : f32
    %10 = arith.mulf %3, %9 : f32
    %11 = arith.truncf %2 : f32 to bf16
    %12 = arith.truncf %10 : f32 to bf16
    linalg.yield %11, %12 : bf16, bf16
  } -> (tensor<16x24xbf16>, tensor<16x24xbf16>)
  return %r#0, %r#1 : tensor<16x24xbf16>, tensor<16x24xbf16>
}

// Product with the derivative of GELU at a stored value.
// CHECK: cublasLtMatmul slope: 16 x 24 x 32, 1 time, rhs transposed, derivative of gelu, its argument{{$}}
func.func private @slope(%x: tensor<16x32xbf16>, %w: tensor<24x32xbf16>, %a: tensor<16x24xbf16>, %y: tensor<16x24xbf16> {fsdp.out = 0}) -> tensor<16x24xbf16> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %cube = arith.constant 0.044715 : f32
  %cube3 = arith.constant 0.134145 : f32
  %scale = arith.constant 0.797884583 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<24x32xbf16>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  %o = tensor.empty() : tensor<16x24xbf16>
  %r = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%p, %a : tensor<16x24xf32>, tensor<16x24xbf16>) outs(%o : tensor<16x24xbf16>) {
  ^bb0(%s: f32, %c: bf16, %out: bf16):
    %1 = arith.extf %c : bf16 to f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.mulf %2, %cube : f32
    %4 = arith.addf %3, %one : f32
    %5 = arith.mulf %4, %1 : f32
    %6 = arith.mulf %5, %scale : f32
    %7 = math.tanh %6 : f32
    %8 = arith.mulf %7, %7 : f32
    %9 = arith.subf %one, %8 : f32
    %10 = math.fma %2, %cube3, %one : f32
    %11 = arith.mulf %10, %scale : f32
    %12 = arith.mulf %11, %1 : f32
    %13 = math.fma %12, %9, %7 : f32
    %14 = arith.addf %13, %one : f32
    %15 = arith.mulf %14, %half : f32
    %16 = arith.mulf %15, %s : f32
    %17 = arith.truncf %16 : f32 to bf16
    linalg.yield %17 : bf16
  } -> tensor<16x24xbf16>
  return %r : tensor<16x24xbf16>
}

// CHECK: cublasLtMatmul batches: 16 x 24 x 32, 3 times, rhs transposed{{$}}
func.func private @batches(%x: tensor<3x16x32xf32>, %w: tensor<3x24x32xf32>, %y: tensor<3x16x24xf32> {fsdp.out = 0}) -> tensor<3x16x24xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x16x24xf32>) -> tensor<3x16x24xf32>
  %p = linalg.contract indexing_maps = [#bmk, #bnk, #bmn] ins(%x, %w : tensor<3x16x32xf32>, tensor<3x24x32xf32>) outs(%init : tensor<3x16x24xf32>) -> tensor<3x16x24xf32>
  return %p : tensor<3x16x24xf32>
}

// The library has no epilogue that squares the sums.
// CHECK: launch square
func.func private @square(%x: tensor<16x32xbf16>, %w: tensor<32x24xbf16>, %y: tensor<16x24xf32> {fsdp.out = 0}) -> tensor<16x24xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<32x24xbf16>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) {
  ^bb0(%s: f32, %out: f32):
    %1 = arith.mulf %s, %s : f32
    linalg.yield %1 : f32
  } -> tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}

// No supported epilogue clamps the sums at 0.
// CHECK: launch relu
func.func private @relu(%x: tensor<16x32xbf16>, %w: tensor<32x24xbf16>, %y: tensor<16x24xf32> {fsdp.out = 0}) -> tensor<16x24xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<32x24xbf16>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) {
  ^bb0(%s: f32, %out: f32):
    %1 = arith.maximumf %s, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}

// The library does not support factors of two types, or f64.
// CHECK: launch mixed
func.func private @mixed(%x: tensor<16x32xbf16>, %w: tensor<32x24xf32>, %y: tensor<16x24xf32> {fsdp.out = 0}) -> tensor<16x24xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<16x32xbf16>, tensor<32x24xf32>) outs(%init : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %p : tensor<16x24xf32>
}
