// Softmaxes between two products in the forms of models. The second run checks that the values do not change.
// RUN: fsdp-opt %s --fsdp-raise-attention=assume-keys=true --canonicalize --cse | FileCheck %s
// RUN: %python %S/Inputs/attention-model.py %s > %t.mlir
// RUN: %python %S/Inputs/same-values.py %t.mlir raise-attention=assume-keys

// a factor after the product, causal by index
// CHECK-LABEL: @causal(
// CHECK: fsdp.attention {{.*}} scale 2.500000e-01 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index) {
// CHECK-NEXT: %{{.*}} = arith.cmpi sle, %j, %i : index
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @causal(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %t = arith.constant 0.25 : f32
    %x = arith.mulf %a0, %t : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %c, %x, %ninf : f32
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

// factors on Q and K, nothing masked
// CHECK-LABEL: @scaled_operands(
// CHECK: fsdp.attention {{.*}} scale 1.250000e-01 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
func.func @scaled_operands(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = tensor.empty() : tensor<2x4x6x8xf32>
  %v2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : tensor<2x4x6x8xf32>) outs(%v1 : tensor<2x4x6x8xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %t = arith.constant 0.5 : f32
    %y = arith.mulf %a0, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x8xf32>
  %v3 = tensor.empty() : tensor<2x4x6x8xf32>
  %v4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x8xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %t = arith.constant 4.0 : f32
    %y = arith.divf %a0, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x8xf32>
  %v5 = arith.constant 0.0 : f32
  %v6 = tensor.empty() : tensor<2x4x6x6xf32>
  %v7 = linalg.fill ins(%v5 : f32) outs(%v6 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v8 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%v2, %v4 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xf32>
  %v10 = linalg.softmax dimension(3) ins(%v8 : tensor<2x4x6x6xf32>) outs(%v9 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v11 = arith.constant 0.0 : f32
  %v12 = tensor.empty() : tensor<2x4x6x8xf32>
  %v13 = linalg.fill ins(%v11 : f32) outs(%v12 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v14 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v10, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v13 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v14 : tensor<2x4x6x8xf32>
}

// causal by adding 0 or -inf, and a window with finite numbers that leaves a key in every row
// CHECK-LABEL: @additive(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index) {
// CHECK-NEXT: %c3 = arith.constant 3 : index
// CHECK-NEXT: %{{.*}} = arith.subi %i, %j : index
// CHECK-NEXT: %{{.*}} = arith.cmpi slt, %{{.*}}, %c3 : index
// CHECK-NEXT: %{{.*}} = arith.cmpi sle, %j, %i : index
// CHECK-NEXT: %{{.*}} = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @additive(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %z = arith.constant 0.0 : f32
    %ninf = arith.constant 0xFF800000 : f32
    %big = arith.constant -3.4e38 : f32
    %x = arith.select %c, %z, %ninf : f32
    %y = arith.addf %a0, %x : f32
    %d = arith.subi %i, %j : index
    %w = arith.constant 3 : index
    %far = arith.cmpi sge, %d, %w : index
    %u = arith.select %far, %big, %y : f32
    linalg.yield %u : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// a table of bits with -inf: rows without a key are 0
// CHECK-LABEL: @table(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 capture(%{{.*}} : tensor<6x6xi1>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<6x6xi1>) {
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%i, %j] : tensor<6x6xi1>
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @table(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask: tensor<6x6xi1>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %mask : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %a1, %a0, %ninf : f32
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

// a table of bits with finite numbers: a row without a key is a mean over V, so the mask stays in score_mod
// CHECK-LABEL: @finite_table(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 capture(%{{.*}} : tensor<6x6xi1>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<6x6xi1>) {
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%i, %j] : tensor<6x6xi1>
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @finite_table(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask: tensor<6x6xi1>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %mask : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
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

// added numbers from a batch of ids, clamped
// CHECK-LABEL: @padding(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 capture(%{{.*}} : tensor<2x6xi64>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<2x6xi64>) {
// CHECK-NEXT: %{{.*}} = arith.constant -3.400000e+38 : f32
// CHECK-NEXT: %c1_i64 = arith.constant 1 : i64
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%b, %j] : tensor<2x6xi64>
// CHECK-NEXT: %{{.*}} = arith.subi %c1_i64, %{{.*}} : i64
// CHECK-NEXT: %{{.*}} = arith.sitofp %{{.*}} : i64 to f32
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %{{.*}} = arith.addf %s, %{{.*}} : f32
// CHECK-NEXT: fsdp.yield %{{.*}} : f32
// CHECK-NEXT: }
func.func @padding(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %pad: tensor<2x6xi64>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %pad : tensor<2x4x6x6xf32>, tensor<2x6xi64>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i64, %out: f32):
    %one = arith.constant 1 : i64
    %big = arith.constant -3.4e38 : f32
    %n = arith.subi %one, %a1 : i64
    %x = arith.sitofp %n : i64 to f32
    %m = arith.mulf %x, %big : f32
    %y = arith.addf %a0, %m : f32
    %z = arith.maximumf %y, %big : f32
    linalg.yield %z : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// a bias per head, row and key, between a factor and a mask
// CHECK-LABEL: @bias(
// CHECK: fsdp.attention {{.*}} scale 2.500000e-01 capture(%{{.*}} : tensor<4x6x6xf32>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<4x6x6xf32>) {
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%h, %i, %j] : tensor<4x6x6xf32>
// CHECK-NEXT: %{{.*}} = arith.addf %s, %{{.*}} : f32
// CHECK-NEXT: fsdp.yield %{{.*}} : f32
// CHECK-NEXT: } mask_mod(%b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<4x6x6xf32>) {
// CHECK-NEXT: %{{.*}} = arith.cmpi sle, %j, %i : index
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @bias(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %bias: tensor<4x6x6xf32> {fsdp.param = "bias"}) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %bias : tensor<2x4x6x6xf32>, tensor<4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %t = arith.constant 0.25 : f32
    %x = arith.mulf %a0, %t : f32
    %y = arith.addf %x, %a1 : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %ninf = arith.constant 0xFF800000 : f32
    %z = arith.select %c, %y, %ninf : f32
    linalg.yield %z : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// softcap, then slopes times the distance
// CHECK-LABEL: @softcap_alibi(
// CHECK: fsdp.attention {{.*}} scale 0.10000000149011612 capture(%{{.*}} : tensor<4xf32>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<4xf32>) {
// CHECK-NEXT: %{{.*}} = arith.constant 1.000000e+01 : f32
// CHECK-NEXT: %{{.*}} = math.tanh %s : f32
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%h] : tensor<4xf32>
// CHECK-NEXT: %{{.*}} = arith.subi %j, %i : index
// CHECK-NEXT: %{{.*}} = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT: %{{.*}} = arith.sitofp %{{.*}} : i32 to f32
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: fsdp.yield %{{.*}} : f32
// CHECK-NEXT: } mask_mod(%b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<4xf32>) {
// CHECK-NEXT: %{{.*}} = arith.cmpi sle, %j, %i : index
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @softcap_alibi(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %slopes: tensor<4xf32> {fsdp.param = "slopes"}) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %slopes : tensor<2x4x6x6xf32>, tensor<4xf32>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %t = arith.constant 0.1 : f32
    %cap = arith.constant 10.0 : f32
    %x = arith.mulf %a0, %t : f32
    %h = math.tanh %x : f32
    %y = arith.mulf %h, %cap : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %d = arith.subi %j, %i : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %b = arith.mulf %a1, %df : f32
    %s = arith.addf %y, %b : f32
    %ninf = arith.constant 0xFF800000 : f32
    %z = arith.select %c, %s, %ninf : f32
    linalg.yield %z : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// a table by distance that score_mod reads
// CHECK-LABEL: @relative(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 capture(%{{.*}} : tensor<4x11xf32>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<4x11xf32>) {
// CHECK-NEXT: %c5 = arith.constant 5 : index
// CHECK-NEXT: %{{.*}} = arith.subi %j, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %{{.*}}, %c5 : index
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%h, %{{.*}}] : tensor<4x11xf32>
// CHECK-NEXT: %{{.*}} = arith.addf %s, %{{.*}} : f32
// CHECK-NEXT: fsdp.yield %{{.*}} : f32
// CHECK-NEXT: }
func.func @relative(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %table: tensor<4x11xf32> {fsdp.param = "table"}) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %h = linalg.index 1 : index
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %d = arith.subi %j, %i : index
    %five = arith.constant 5 : index
    %at = arith.addi %d, %five : index
    %b = tensor.extract %table[%h, %at] : tensor<4x11xf32>
    %y = arith.addf %a0, %b : f32
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

// grouped heads: K and V are repeated and merged, all in flat batches
// CHECK-LABEL: @grouped(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index) {
// CHECK-NEXT: %{{.*}} = arith.cmpi sle, %j, %i : index
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @grouped(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = tensor.empty() : tensor<2x2x2x6x8xf32>
  %v2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x2x6x8xf32>) outs(%v1 : tensor<2x2x2x6x8xf32>) {
  ^bb0(%a0: f32, %out: f32):
    linalg.yield %a0 : f32
  } -> tensor<2x2x2x6x8xf32>
  %v3 = tensor.collapse_shape %v2 [[0, 1, 2], [3], [4]] : tensor<2x2x2x6x8xf32> into tensor<8x6x8xf32>
  %v4 = tensor.empty() : tensor<2x2x2x6x8xf32>
  %v5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<2x2x6x8xf32>) outs(%v4 : tensor<2x2x2x6x8xf32>) {
  ^bb0(%a0: f32, %out: f32):
    linalg.yield %a0 : f32
  } -> tensor<2x2x2x6x8xf32>
  %v6 = tensor.collapse_shape %v5 [[0, 1, 2], [3], [4]] : tensor<2x2x2x6x8xf32> into tensor<8x6x8xf32>
  %v7 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %v8 = arith.constant 0.0 : f32
  %v9 = tensor.empty() : tensor<8x6x6xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %v11 = linalg.contract indexing_maps = [affine_map<(b, d, m, n) -> (b, m, d)>, affine_map<(b, d, m, n) -> (b, n, d)>, affine_map<(b, d, m, n) -> (b, m, n)>] ins(%v7, %v3 : tensor<8x6x8xf32>, tensor<8x6x8xf32>) outs(%v10 : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %v12 = tensor.expand_shape %v11 [[0, 1], [2], [3]] output_shape [2, 4, 6, 6] : tensor<8x6x6xf32> into tensor<2x4x6x6xf32>
  %v13 = tensor.empty() : tensor<2x4x6x6xf32>
  %v14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v12 : tensor<2x4x6x6xf32>) outs(%v13 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %c, %a0, %ninf : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v15 = tensor.empty() : tensor<2x4x6x6xf32>
  %v16 = linalg.softmax dimension(3) ins(%v14 : tensor<2x4x6x6xf32>) outs(%v15 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v17 = tensor.collapse_shape %v16 [[0, 1], [2], [3]] : tensor<2x4x6x6xf32> into tensor<8x6x6xf32>
  %v18 = arith.constant 0.0 : f32
  %v19 = tensor.empty() : tensor<8x6x8xf32>
  %v20 = linalg.fill ins(%v18 : f32) outs(%v19 : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %v21 = linalg.contract indexing_maps = [affine_map<(b, d, m, n) -> (b, m, n)>, affine_map<(b, d, m, n) -> (b, n, d)>, affine_map<(b, d, m, n) -> (b, m, d)>] ins(%v17, %v6 : tensor<8x6x6xf32>, tensor<8x6x8xf32>) outs(%v20 : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %v22 = tensor.expand_shape %v21 [[0, 1], [2], [3]] output_shape [2, 4, 6, 8] : tensor<8x6x8xf32> into tensor<2x4x6x8xf32>
  return %v22 : tensor<2x4x6x8xf32>
}

// one head of keys for all
// CHECK-LABEL: @one_kv_head(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 : tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x1x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index) {
// CHECK-NEXT: %{{.*}} = arith.cmpi sle, %j, %i : index
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @one_kv_head(%q: tensor<2x4x6x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %c, %a0, %ninf : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// heads as views of features, fewer rows than keys, causal mask aligned to the end
// CHECK-LABEL: @rows_of_features(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 : tensor<2x4x3x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index) {
// CHECK-NEXT: %c3 = arith.constant 3 : index
// CHECK-NEXT: %{{.*}} = arith.addi %i, %c3 : index
// CHECK-NEXT: %{{.*}} = arith.cmpi ule, %j, %{{.*}} : index
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @rows_of_features(%q: tensor<2x3x32xf32>, %k: tensor<2x6x32xf32>, %v: tensor<2x6x32xf32>) -> tensor<2x3x32xf32> {
  %v1 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 3, 4, 8] : tensor<2x3x32xf32> into tensor<2x3x4x8xf32>
  %v2 = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, 6, 4, 8] : tensor<2x6x32xf32> into tensor<2x6x4x8xf32>
  %v3 = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, 6, 4, 8] : tensor<2x6x32xf32> into tensor<2x6x4x8xf32>
  %v4 = arith.constant 0.0 : f32
  %v5 = tensor.empty() : tensor<2x4x3x6xf32>
  %v6 = linalg.fill ins(%v4 : f32) outs(%v5 : tensor<2x4x3x6xf32>) -> tensor<2x4x3x6xf32>
  %v7 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, m, h, d)>, affine_map<(b, d, h, m, n) -> (b, n, h, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%v1, %v2 : tensor<2x3x4x8xf32>, tensor<2x6x4x8xf32>) outs(%v6 : tensor<2x4x3x6xf32>) -> tensor<2x4x3x6xf32>
  %v8 = tensor.empty() : tensor<2x4x3x6xf32>
  %v9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v7 : tensor<2x4x3x6xf32>) outs(%v8 : tensor<2x4x3x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %i0 = linalg.index 2 : index
    %j = linalg.index 3 : index
    %three = arith.constant 3 : index
    %i = arith.addi %i0, %three : index
    %c = arith.cmpi ugt, %j, %i : index
    %ninf = arith.constant 0xFF800000 : f32
    %y = arith.select %c, %ninf, %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x3x6xf32>
  %v10 = tensor.empty() : tensor<2x4x3x6xf32>
  %v11 = linalg.softmax dimension(3) ins(%v9 : tensor<2x4x3x6xf32>) outs(%v10 : tensor<2x4x3x6xf32>) -> tensor<2x4x3x6xf32>
  %v12 = arith.constant 0.0 : f32
  %v13 = tensor.empty() : tensor<2x3x4x8xf32>
  %v14 = linalg.fill ins(%v12 : f32) outs(%v13 : tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %v15 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, n, h, d)>, affine_map<(b, d, h, m, n) -> (b, m, h, d)>] ins(%v11, %v3 : tensor<2x4x3x6xf32>, tensor<2x6x4x8xf32>) outs(%v14 : tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %v16 = tensor.collapse_shape %v15 [[0], [1], [2, 3]] : tensor<2x3x4x8xf32> into tensor<2x3x32xf32>
  return %v16 : tensor<2x3x32xf32>
}

// rows of -inf are set to 0 after the softmax
// CHECK-LABEL: @guarded(
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 capture(%{{.*}} : tensor<6x6xi1>) : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
// CHECK-SAME: mask_mod(%b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<6x6xi1>) {
// CHECK-NEXT: %{{.*}} = tensor.extract %{{.*}}[%i, %j] : tensor<6x6xi1>
// CHECK-NEXT: fsdp.yield %{{.*}} : i1
// CHECK-NEXT: }
func.func @guarded(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask2: tensor<6x6xi1>) -> tensor<2x4x6x8xf32> {
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
  %v11 = arith.constant true
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

// a factor on V is not a factor of the scores
// CHECK-LABEL: @scaled_values(
// CHECK: %[[V:.*]] = linalg.generic
// CHECK: arith.divf
// CHECK: fsdp.attention %{{.*}}, %{{.*}}, %[[V]] scale 5.000000e-01 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>, tensor<2x4x6xf32>
func.func @scaled_values(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
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
  %v11 = arith.constant 0.0 : f32
  %v12 = tensor.empty() : tensor<2x4x6x8xf32>
  %v13 = linalg.fill ins(%v11 : f32) outs(%v12 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v14 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v10, %v4 : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v13 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v14 : tensor<2x4x6x8xf32>
}
