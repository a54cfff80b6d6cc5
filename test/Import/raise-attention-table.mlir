// The mask is every second row of a constant table, with finite numbers. Each row provably keeps a key only if
// those rows do.
// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log

// CHECK-LABEL: @even_rows_have_keys(
// CHECK: fsdp.attention
func.func @even_rows_have_keys(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false]]> : tensor<12x6xi1>
  %slice = tensor.extract_slice %table[0, 0] [6, 6] [2, 1] : tensor<12x6xi1> to tensor<6x6xi1>
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %slice : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %big = arith.constant -1.0e9 : f32
    %y = arith.select %a1, %a0, %big : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// LOG: the mask uses finite numbers, and a row may be masked completely
// LOG-NOT: a row may be masked completely
// CHECK-LABEL: @an_even_row_has_none(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @an_even_row_has_none(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false]]> : tensor<12x6xi1>
  %slice = tensor.extract_slice %table[0, 0] [6, 6] [2, 1] : tensor<12x6xi1> to tensor<6x6xi1>
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %slice : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %big = arith.constant -1.0e9 : f32
    %y = arith.select %a1, %a0, %big : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}
