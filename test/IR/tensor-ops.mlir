// RUN: fsdp-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @random
// CHECK: fsdp.random uniform seed %{{.*}} step %{{.*}} first %{{.*}} site 3 : tensor<4x8x16xf32>
// CHECK: fsdp.random bernoulli keep 9.000000e-01 seed %{{.*}} step %{{.*}} first %{{.*}} site 4 per_sample 128 : tensor<32x16xbf16>
// CHECK: fsdp.random bernoulli keep 5.000000e-01 {{.*}} : tensor<4xi1>
func.func @random(%seed: tensor<i64>, %step: tensor<i64>, %first: tensor<i64>) -> (tensor<4x8x16xf32>, tensor<32x16xbf16>, tensor<4xi1>) {
  %u = fsdp.random uniform seed %seed step %step first %first site 3 : tensor<4x8x16xf32>
  %m = fsdp.random bernoulli keep 0.9 seed %seed step %step first %first site 4 per_sample 128 : tensor<32x16xbf16>
  %k = fsdp.random bernoulli keep 0.5 seed %seed step %step first %first site 5 : tensor<4xi1>
  return %u, %m, %k : tensor<4x8x16xf32>, tensor<32x16xbf16>, tensor<4xi1>
}

// CHECK-LABEL: func @gemm
// CHECK: fsdp.gemm %{{.*}}, %{{.*}} into %{{.*}} transpose[false, true] alpha 1.000000e+00 beta 0.000000e+00 bias %{{.*}} epilogue gelu_tanh
// CHECK-SAME: : tensor<64x32xbf16>, tensor<16x32xbf16>, tensor<64x16xbf16>, tensor<16xbf16> -> tensor<64x16xbf16>
// CHECK: fsdp.gemm %{{.*}}, %{{.*}} into %{{.*}} transpose[true, false] alpha 5.000000e-01 beta 1.000000e+00 : tensor<2x4x3xf32>
func.func @gemm(%a: tensor<64x32xbf16>, %b: tensor<16x32xbf16>, %c: tensor<64x16xbf16>, %e: tensor<16xbf16>,
                %x: tensor<2x4x3xf32>, %y: tensor<2x4x5xf32>, %z: tensor<2x3x5xf32>) -> (tensor<64x16xbf16>, tensor<2x3x5xf32>) {
  %d = fsdp.gemm %a, %b into %c transpose [false, true] alpha 1.0 beta 0.0 bias %e epilogue gelu_tanh
      : tensor<64x32xbf16>, tensor<16x32xbf16>, tensor<64x16xbf16>, tensor<16xbf16> -> tensor<64x16xbf16>
  %f = fsdp.gemm %x, %y into %z transpose [true, false] alpha 0.5 beta 1.0
      : tensor<2x4x3xf32>, tensor<2x4x5xf32>, tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  return %d, %f : tensor<64x16xbf16>, tensor<2x3x5xf32>
}
