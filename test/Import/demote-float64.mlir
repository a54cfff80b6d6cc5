// RUN: fsdp-opt %s --split-input-file --fsdp-demote-float64 | FileCheck %s

// The variance of a LayerNorm that torch computes in f64.
// CHECK-LABEL: func.func @island
// CHECK-NOT: f64
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x6xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK-NOT: f64
// CHECK: arith.constant 9.99999974E-6 : f32
// CHECK-NOT: f64
func.func @island(%g: tensor<6xf32> {fsdp.param = "g"}, %x: tensor<4x6xf32>) -> tensor<4xf32> {
  %z = arith.constant 0.0 : f64
  %n = arith.constant 6.0 : f64
  %e64 = tensor.empty() : tensor<4x6xf64>
  %e1 = tensor.empty() : tensor<4xf64>
  %e32 = tensor.empty() : tensor<4xf32>
  %w = arith.extf %x : tensor<4x6xf32> to tensor<4x6xf64>
  %i = linalg.fill ins(%z : f64) outs(%e1 : tensor<4xf64>) -> tensor<4xf64>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<4x6xf64>) outs(%i : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %q = arith.mulf %a, %a : f64
    %0 = arith.addf %q, %o : f64
    linalg.yield %0 : f64
  } -> tensor<4xf64>
  %eps = arith.constant 1.0e-5 : f64
  %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%s : tensor<4xf64>) outs(%e32 : tensor<4xf32>) {
  ^bb0(%a: f64, %o: f32):
    %0 = arith.divf %a, %n : f64
    %t = arith.truncf %0 : f64 to f32
    %ep = arith.truncf %eps : f64 to f32
    %1 = arith.addf %t, %ep : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// -----

// A bf16 model keeps its casts; its f64 parts become f32.
// CHECK-LABEL: func.func @half
// CHECK: arith.extf %{{.*}} : tensor<4xbf16> to tensor<4xf32>
// CHECK: arith.truncf %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// DOC-BEFORE-BEGIN fsdp-demote-float64
func.func @half(%g: tensor<4xbf16> {fsdp.param = "g"}) -> tensor<4xbf16> {
  %w = arith.extf %g : tensor<4xbf16> to tensor<4xf64>
  %s = arith.mulf %w, %w : tensor<4xf64>
  %r = arith.truncf %s : tensor<4xf64> to tensor<4xbf16>
  return %r : tensor<4xbf16>
}
// DOC-BEFORE-END

// -----

// A model with f64 parameters is not changed.
// CHECK-LABEL: func.func @double
// CHECK: arith.constant 1.000000e-05 : f64
// CHECK: arith.mulf {{.*}} : tensor<4xf64>
func.func @double(%g: tensor<4xf64> {fsdp.param = "g"}, %x: tensor<4xf64>) -> (tensor<4xf64>, f64) {
  %c = arith.constant 1.0e-5 : f64
  %0 = arith.mulf %g, %x : tensor<4xf64>
  return %0, %c : tensor<4xf64>, f64
}

// -----

// One f64 parameter is enough; integer parameters do not count.
// CHECK-LABEL: func.func @mixed
// CHECK: arith.mulf {{.*}} : tensor<4xf64>
func.func @mixed(%g: tensor<4xf64> {fsdp.param = "g"}, %h: tensor<4xf32> {fsdp.param = "h"}) -> tensor<4xf64> {
  %0 = arith.extf %h : tensor<4xf32> to tensor<4xf64>
  %1 = arith.mulf %g, %0 : tensor<4xf64>
  return %1 : tensor<4xf64>
}

// -----

// CHECK-LABEL: func.func @table
// CHECK-NOT: f64
// CHECK: return
func.func @table(%q: tensor<4xi8> {fsdp.param = "q", fsdp.frozen}, %h: tensor<4xf32> {fsdp.param = "h"}) -> tensor<4xf32> {
  %0 = arith.extf %h : tensor<4xf32> to tensor<4xf64>
  %1 = arith.truncf %0 : tensor<4xf64> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
