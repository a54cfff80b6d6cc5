// Dropout of attention weights in the forms of exporters: a factor, or a select and a constant factor.
// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log

// CHECK-LABEL: func.func @factor(
// CHECK: fsdp.attention {{.*}} capture(%{{.*}}, %{{.*}}, %{{.*}} : tensor<i64>, tensor<i64>, tensor<i64>)
// CHECK: weight_mod(
// CHECK: %[[F:.*]] = fsdp.random_element bernoulli keep 7.500000e-01 seed %{{.*}} step %{{.*}} sample %{{.*}} element %{{.*}} site 5 : f32
// CHECK-NEXT: fsdp.yield %[[F]]
// CHECK-NOT: linalg.softmax
func.func @factor(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %s: tensor<i64>, %t: tensor<i64>, %n: tensor<i64>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %r = fsdp.random bernoulli keep 0.75 seed %s step %t first %n site 5 : tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6, %r : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.mulf %a1, %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v1 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// A select, and a division by the keep probability; the tensor is one sample.
// CHECK-LABEL: func.func @choice(
// CHECK: weight_mod(
// CHECK: %[[KEEP:.*]] = fsdp.random_element bernoulli keep 7.500000e-01 {{.*}} site 6 : i1
// CHECK: %[[F:.*]] = arith.select %[[KEEP]], %{{.*}}, %{{.*}} : f32
// CHECK-NOT: linalg.softmax
func.func @choice(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %s: tensor<i64>, %t: tensor<i64>, %n: tensor<i64>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %r = fsdp.random bernoulli keep 0.75 seed %s step %t first %n site 6 per_sample 288 : tensor<2x4x6x6xi1>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6, %r : tensor<2x4x6x6xf32>, tensor<2x4x6x6xi1>) outs(%v7 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %z = arith.constant 0.0 : f32
    %p = arith.constant 0.75 : f32
    %w = arith.divf %a0, %p : f32
    %y = arith.select %a1, %w, %z : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v1 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// A comparison of uniform numbers.
// CHECK-LABEL: func.func @compared(
// CHECK: weight_mod(
// CHECK: %[[U:.*]] = fsdp.random_element uniform {{.*}} site 7 : f32
// CHECK: arith.cmpf olt, %[[U]], %{{.*}} : f32
// CHECK-NOT: linalg.softmax
func.func @compared(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %s: tensor<i64>, %t: tensor<i64>, %n: tensor<i64>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %r = fsdp.random uniform seed %s step %t first %n site 7 : tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6, %r : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %p = arith.constant 0.75 : f32
    %c = arith.cmpf olt, %a1, %p : f32
    %y = arith.select %c, %a0, %z : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v1 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// A mask of bits from memory after the softmax.
// CHECK-LABEL: func.func @bits(
// CHECK: weight_mod(
// CHECK: tensor.extract
// CHECK-NOT: linalg.softmax
func.func @bits(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x4x6x6xi1>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6, %m : tensor<2x4x6x6xf32>, tensor<2x4x6x6xi1>) outs(%v7 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %z = arith.constant 0.0 : f32
    %y = arith.select %a1, %a0, %z : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v1 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// Floats from memory are not allowed, because they may have a gradient.
// CHECK-LABEL: func.func @floats(
// CHECK: linalg.softmax
// LOG: remark: softmax between two products not raised to attention: the weights are changed between softmax and product by floats read from memory
func.func @floats(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x4x6x6xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6, %m : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.mulf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v1 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}
