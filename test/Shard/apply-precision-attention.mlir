// Attention reads narrow queries, keys, values and captured activations. Its log-sum-exp and a captured
// table stay f32. --keep-f32 keeps parameters, the products that read them, and attention in f32.
// RUN: fsdp-opt %s --fsdp-apply-precision=param-dtype=bf16 | FileCheck %s
// RUN: fsdp-opt %s "--fsdp-apply-precision=param-dtype=bf16 keep-f32=attention,bias" | FileCheck %s --check-prefix=KEEP
// RUN: not fsdp-opt %s "--fsdp-apply-precision=param-dtype=bf16 keep-f32=head" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: keep-f32: pattern 'head' matches no parameter; names look like 'q' and 'w'

// CHECK: fsdp.kept_wide = {"read by the loss" = array<i64: 1, 24>, statistic = array<i64: 1, 12>, table = array<i64: 1, 16>}
// KEEP: fsdp.kept_wide = {"by --keep-f32" = array<i64: 1, 3>, "read by the loss" = array<i64: 1, 24>, statistic = array<i64: 1, 12>, table = array<i64: 1, 16>}

// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<3xbf16> {fsdp.master_dtype = f32, fsdp.param = "bias"}
// KEEP-LABEL: func.func @loss(
// KEEP-SAME: %[[BIAS:[a-z0-9]+]]: tensor<3xf32> {fsdp.param = "bias"}
func.func @loss(%q: tensor<1x3x4x8xf32> {fsdp.param = "q"}, %bias: tensor<3xf32> {fsdp.param = "bias"},
                %w: tensor<8x2xf32> {fsdp.param = "w"}, %x: tensor<1x3x4x8xf32> {fsdp.batch = "x"})
    -> tensor<1x3x4x2xf32> {
  %table = arith.constant dense<[[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0]]> : tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%table : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<4x4xf32>
  // The batch input is narrowed for the product, the table is not.
  // CHECK: %[[X:[0-9]+]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<1x3x4x8xf32>) outs({{.*}} : tensor<1x3x4x8xbf16>)
  // CHECK: %[[O:[a-z0-9]+]]:2 = fsdp.attention %{{.*}}, %[[X]], %[[X]] scale 5.000000e-01 capture(%[[BIAS]], %{{.*}} : tensor<3xbf16>, tensor<4x4xf32>)
  // CHECK-SAME: : tensor<1x3x4x8xbf16>, tensor<1x3x4x8xbf16>, tensor<1x3x4x8xbf16> -> tensor<1x3x4x8xbf16>, tensor<1x3x4xf32>
  // CHECK: %[[B:.*]] = tensor.extract %{{.*}}[%{{.*}}] : tensor<3xbf16>
  // CHECK-NEXT: arith.extf %[[B]] : bf16 to f32
  // KEEP: %[[Q:[0-9]+]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<1x3x4x8xbf16>) outs({{.*}} : tensor<1x3x4x8xf32>)
  // KEEP: fsdp.attention %[[Q]], {{.*}} capture(%[[BIAS]], %{{.*}} : tensor<3xf32>, tensor<4x4xf32>) {fsdp.keep_f32}
  // KEEP-SAME: -> tensor<1x3x4x8xf32>, tensor<1x3x4xf32>
  %o, %lse = fsdp.attention %q, %x, %x scale 0.5 capture(%bias, %scaled : tensor<3xf32>, tensor<4x4xf32>)
      : tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32> -> tensor<1x3x4x8xf32>, tensor<1x3x4xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<3xf32>, %t: tensor<4x4xf32>) {
    %c = tensor.extract %m[%h] : tensor<3xf32>
    %d = tensor.extract %t[%i, %j] : tensor<4x4xf32>
    %u = arith.addf %s, %c : f32
    %v = arith.addf %u, %d : f32
    fsdp.yield %v : f32
  }
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<1x3x4x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
  // CHECK: linalg.contract {{.*}} ins(%[[O]]#0, %{{.*}} : tensor<1x3x4x8xbf16>, tensor<8x2xbf16>)
  %y = linalg.contract indexing_maps = [affine_map<(b, h, i, j, k) -> (b, h, i, k)>, affine_map<(b, h, i, j, k) -> (k, j)>, affine_map<(b, h, i, j, k) -> (b, h, i, j)>]
      ins(%o, %w : tensor<1x3x4x8xf32>, tensor<8x2xf32>) outs(%f : tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
  return %y : tensor<1x3x4x2xf32>
}
