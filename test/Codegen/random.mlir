// Random numbers of kernel and oracle are equal: every rounding is exact.
// RUN: fsdp-opt %s --fsdp-decompose-named-ops | fsdp-kernel-test - --also-cpu=x86-64-v3 --tolerance=0 | FileCheck %s

// CHECK: @uniform_f32: {{.*}} ok
func.func private @uniform_f32(%s: tensor<i64> {fsdp.limit = 1000 : i64}, %t: tensor<i64> {fsdp.limit = 1000 : i64},
    %f: tensor<i64> {fsdp.limit = 1000 : i64}, %y: tensor<3x5x7xf32> {fsdp.out = 0}) -> tensor<3x5x7xf32> attributes {fsdp.kernel} {
  %r = fsdp.random uniform seed %s step %t first %f site 5 : tensor<3x5x7xf32>
  return %r : tensor<3x5x7xf32>
}

// CHECK: @uniform_f64: {{.*}} ok
func.func private @uniform_f64(%s: tensor<i64> {fsdp.limit = 1000 : i64}, %t: tensor<i64> {fsdp.limit = 1000 : i64},
    %f: tensor<i64> {fsdp.limit = 1000 : i64}, %y: tensor<3x35xf64> {fsdp.out = 0}) -> tensor<3x35xf64> attributes {fsdp.kernel} {
  %r = fsdp.random uniform seed %s step %t first %f site 5 : tensor<3x35xf64>
  return %r : tensor<3x35xf64>
}

// CHECK: @dropout: {{.*}} ok
func.func private @dropout(%x: tensor<64x33xf32>, %s: tensor<i64> {fsdp.limit = 1000 : i64}, %t: tensor<i64> {fsdp.limit = 1000 : i64},
    %f: tensor<i64> {fsdp.limit = 1000 : i64}, %y: tensor<64x33xf32> {fsdp.out = 0}) -> tensor<64x33xf32> attributes {fsdp.kernel} {
  %m = fsdp.random bernoulli keep 0.75 seed %s step %t first %f site 1 per_sample 528 : tensor<64x33xf32>
  %e = tensor.empty() : tensor<64x33xf32>
  %r = linalg.mul ins(%x, %m : tensor<64x33xf32>, tensor<64x33xf32>) outs(%e : tensor<64x33xf32>) -> tensor<64x33xf32>
  return %r : tensor<64x33xf32>
}
