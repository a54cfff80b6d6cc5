// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse | FileCheck %s

// softmax in f32 in a model of bf16
// CHECK-LABEL: @type_bf16(
// CHECK: fsdp.attention {{.*}} scale 2.500000e-01 : tensor<2x4x6x8xbf16>, tensor<2x4x6x8xbf16>, tensor<2x4x6x8xbf16> -> tensor<2x4x6x8xbf16>, tensor<2x4x6xf32>
func.func @type_bf16(%q: tensor<2x4x6x8xbf16>, %k: tensor<2x4x6x8xbf16>, %v: tensor<2x4x6x8xbf16>) -> tensor<2x4x6x8xbf16> {
  %v1 = arith.constant 0.0 : bf16
  %v2 = tensor.empty() : tensor<2x4x6x6xbf16>
  %v3 = linalg.fill ins(%v1 : bf16) outs(%v2 : tensor<2x4x6x6xbf16>) -> tensor<2x4x6x6xbf16>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xbf16>, tensor<2x4x6x8xbf16>) outs(%v3 : tensor<2x4x6x6xbf16>) -> tensor<2x4x6x6xbf16>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xbf16>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: bf16, %out: f32):
    %t = arith.constant 0.25 : bf16
    %x = arith.mulf %a0, %t : bf16
    %y = arith.extf %x : bf16 to f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xbf16>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v8 : tensor<2x4x6x6xf32>) outs(%v9 : tensor<2x4x6x6xbf16>) {
  ^bb0(%a0: f32, %out: bf16):
    %y = arith.truncf %a0 : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<2x4x6x6xbf16>
  %v11 = arith.constant 0.0 : bf16
  %v12 = tensor.empty() : tensor<2x4x6x8xbf16>
  %v13 = linalg.fill ins(%v11 : bf16) outs(%v12 : tensor<2x4x6x8xbf16>) -> tensor<2x4x6x8xbf16>
  %v14 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v10, %v : tensor<2x4x6x6xbf16>, tensor<2x4x6x8xbf16>) outs(%v13 : tensor<2x4x6x8xbf16>) -> tensor<2x4x6x8xbf16>
  return %v14 : tensor<2x4x6x8xbf16>
}

// softmax in f32 in a model of f16
// CHECK-LABEL: @type_f16(
// CHECK: fsdp.attention {{.*}} scale 2.500000e-01 : tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16> -> tensor<2x4x6x8xf16>, tensor<2x4x6xf32>
func.func @type_f16(%q: tensor<2x4x6x8xf16>, %k: tensor<2x4x6x8xf16>, %v: tensor<2x4x6x8xf16>) -> tensor<2x4x6x8xf16> {
  %v1 = arith.constant 0.0 : f16
  %v2 = tensor.empty() : tensor<2x4x6x6xf16>
  %v3 = linalg.fill ins(%v1 : f16) outs(%v2 : tensor<2x4x6x6xf16>) -> tensor<2x4x6x6xf16>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>) outs(%v3 : tensor<2x4x6x6xf16>) -> tensor<2x4x6x6xf16>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xf16>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f16, %out: f32):
    %t = arith.constant 0.25 : f16
    %x = arith.mulf %a0, %t : f16
    %y = arith.extf %x : f16 to f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xf16>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v8 : tensor<2x4x6x6xf32>) outs(%v9 : tensor<2x4x6x6xf16>) {
  ^bb0(%a0: f32, %out: f16):
    %y = arith.truncf %a0 : f32 to f16
    linalg.yield %y : f16
  } -> tensor<2x4x6x6xf16>
  %v11 = arith.constant 0.0 : f16
  %v12 = tensor.empty() : tensor<2x4x6x8xf16>
  %v13 = linalg.fill ins(%v11 : f16) outs(%v12 : tensor<2x4x6x8xf16>) -> tensor<2x4x6x8xf16>
  %v14 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v10, %v : tensor<2x4x6x6xf16>, tensor<2x4x6x8xf16>) outs(%v13 : tensor<2x4x6x8xf16>) -> tensor<2x4x6x8xf16>
  return %v14 : tensor<2x4x6x8xf16>
}

// softmax in f64 in a model of f64
// CHECK-LABEL: @type_f64(
// CHECK: fsdp.attention {{.*}} scale 2.500000e-01 : tensor<2x4x6x8xf64>, tensor<2x4x6x8xf64>, tensor<2x4x6x8xf64> -> tensor<2x4x6x8xf64>, tensor<2x4x6xf64>
func.func @type_f64(%q: tensor<2x4x6x8xf64>, %k: tensor<2x4x6x8xf64>, %v: tensor<2x4x6x8xf64>) -> tensor<2x4x6x8xf64> {
  %v1 = arith.constant 0.0 : f64
  %v2 = tensor.empty() : tensor<2x4x6x6xf64>
  %v3 = linalg.fill ins(%v1 : f64) outs(%v2 : tensor<2x4x6x6xf64>) -> tensor<2x4x6x6xf64>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf64>, tensor<2x4x6x8xf64>) outs(%v3 : tensor<2x4x6x6xf64>) -> tensor<2x4x6x6xf64>
  %v5 = tensor.empty() : tensor<2x4x6x6xf64>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xf64>) outs(%v5 : tensor<2x4x6x6xf64>) {
  ^bb0(%a0: f64, %out: f64):
    %t = arith.constant 0.25 : f64
    %x = arith.mulf %a0, %t : f64
    linalg.yield %x : f64
  } -> tensor<2x4x6x6xf64>
  %v7 = tensor.empty() : tensor<2x4x6x6xf64>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf64>) outs(%v7 : tensor<2x4x6x6xf64>) -> tensor<2x4x6x6xf64>
  %v9 = arith.constant 0.0 : f64
  %v10 = tensor.empty() : tensor<2x4x6x8xf64>
  %v11 = linalg.fill ins(%v9 : f64) outs(%v10 : tensor<2x4x6x8xf64>) -> tensor<2x4x6x8xf64>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf64>, tensor<2x4x6x8xf64>) outs(%v11 : tensor<2x4x6x8xf64>) -> tensor<2x4x6x8xf64>
  return %v12 : tensor<2x4x6x8xf64>
}
