// Ops between a softmax and its product with V that resemble a guard or a factor.
// RUN: fsdp-opt %s --fsdp-raise-attention=assume-keys=true --canonicalize --cse 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log

// The condition "all scores are -inf" is a reduction of constant false. It is not a guard of rows without keys, but a factor that drops nothing.
// CHECK-LABEL: @no_guard(
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}}outs(%{{.*}} : tensor<2x4x6xi1>)
// CHECK: fsdp.attention {{.*}} capture(%{{.*}}, %[[ALL]] : tensor<6x6xi1>, tensor<2x4x6xi1>)
// CHECK: weight_mod(
// CHECK: %[[DROP:.*]] = tensor.extract
// CHECK: arith.select %[[DROP]], %{{.*}}, %{{.*}} : f32
func.func @no_guard(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask2: tensor<6x6xi1>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %mask2 : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %a1, %a0, %ninf : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xi1>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6 : tensor<2x4x6x6xf32>) outs(%v9 : tensor<2x4x6x6xi1>) {
  ^bb0(%a0: f32, %out: i1):
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.cmpf oeq, %a0, %ninf : f32
    linalg.yield %y : i1
  } -> tensor<2x4x6x6xi1>
  %v11 = arith.constant false
  %v12 = tensor.empty() : tensor<2x4x6xi1>
  %v13 = linalg.fill ins(%v11 : i1) outs(%v12 : tensor<2x4x6xi1>) -> tensor<2x4x6xi1>
  %v14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v10 : tensor<2x4x6x6xi1>) outs(%v13 : tensor<2x4x6xi1>) {
  ^bb0(%a0: i1, %out: i1):
    %y = arith.andi %a0, %out : i1
    linalg.yield %y : i1
  } -> tensor<2x4x6xi1>
  %v15 = tensor.empty() : tensor<2x4x6x6xf32>
  %v16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v14, %v8 : tensor<2x4x6xi1>, tensor<2x4x6x6xf32>) outs(%v15 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: i1, %a1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %y = arith.select %a0, %z, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v17 = arith.constant 0.0 : f32
  %v18 = tensor.empty() : tensor<2x4x6x8xf32>
  %v19 = linalg.fill ins(%v17 : f32) outs(%v18 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v20 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v16, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v19 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v20 : tensor<2x4x6x8xf32>
}

// A number divided by the weights is not a factor of them.
// LOG: remark: softmax between two products not raised to attention: the weights are changed between softmax and product
// LOG: note: prevented by this 'arith.divf'
// CHECK-LABEL: @reciprocal_weights(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @reciprocal_weights(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = tensor.empty() : tensor<2x4x6x8xf32>
  %v2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : tensor<2x4x6x8xf32>) outs(%v1 : tensor<2x4x6x8xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %t = arith.constant 0.5 : f32
    %y = arith.mulf %a0, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x8xf32>
  %v3 = tensor.empty() : tensor<2x4x6x8xf32>
  %v4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x8xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %t = arith.constant 4.0 : f32
    %y = arith.divf %a0, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x8xf32>
  %v5 = arith.constant 0.0 : f32
  %v6 = tensor.empty() : tensor<2x4x6x6xf32>
  %v7 = linalg.fill ins(%v5 : f32) outs(%v6 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v8 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%v2, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xf32>
  %v10 = linalg.softmax dimension(3) ins(%v8 : tensor<2x4x6x6xf32>) outs(%v9 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %w0 = tensor.empty() : tensor<2x4x6x6xf32>
  %w1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v10 : tensor<2x4x6x6xf32>) outs(%w0 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %t = arith.constant 2.0 : f32
    %y = arith.divf %t, %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v11 = arith.constant 0.0 : f32
  %v12 = tensor.empty() : tensor<2x4x6x8xf32>
  %v13 = linalg.fill ins(%v11 : f32) outs(%v12 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v14 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%w1, %v4 : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v13 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v14 : tensor<2x4x6x8xf32>
}
