// Dropout that exporters mark becomes fsdp.random and a product. Each call gets a new site, beside the existing sites.
// RUN: fsdp-opt %s --inline --symbol-dce --fsdp-read-dropout-markers --split-input-file --mlir-print-local-scope | FileCheck %s

// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[W:.*]]: tensor<8x4xf32> {fsdp.param = "w"}, %[[X:.*]]: tensor<2x6x4xf32> {fsdp.batch = "x"}, %[[STEP:.*]]: tensor<i64> {fsdp.key = "step"},
// CHECK-SAME: %[[SEED:[a-z0-9]*]]: tensor<i64> {fsdp.key = "seed"}, %[[SAMPLE:.*]]: tensor<i64> {fsdp.key = "sample"})
func.func private @fsdp.dropout(tensor<2x6x4xf32>) -> tensor<2x6x4xf32> attributes {fsdp.dropout = 0.25 : f64}
func.func private @fsdp.dropout.1(tensor<12x4xbf16>) -> tensor<12x4xbf16> attributes {fsdp.dropout = 0.5 : f32}
func.func private @held(tensor<2x6x4xf32>) -> tensor<2x6x4xf32> attributes {fsdp.dropout = 0.0 : f64}
func.func private @fsdp.dropout_f64(tensor<2x6x4xf64>) -> tensor<2x6x4xf64> attributes {fsdp.dropout = 0.25 : f64}
func.func private @twice(%x: tensor<2x6x4xf32>) -> tensor<2x6x4xf32> {
  %a = call @fsdp.dropout(%x) : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  return %a : tensor<2x6x4xf32>
}
func.func @loss(%w: tensor<8x4xf32> {fsdp.param = "w"}, %x: tensor<2x6x4xf32> {fsdp.batch = "x"}, %step: tensor<i64> {fsdp.key = "step"})
    -> (tensor<2x6x4xf32>, tensor<12x4xbf16>, tensor<2x6x4xf64>, tensor<2x6x4xf32>, tensor<2x6x4xf32>) {
  // CHECK: fsdp.random uniform {{.*}} site 1 :
  %u = fsdp.random uniform seed %step step %step first %step site 1 : tensor<2x6x4xf32>
  // CHECK: %[[F:.*]] = fsdp.random bernoulli keep 7.500000e-01 seed %[[SEED]] step %[[STEP]] first %[[SAMPLE]] site 0 per_sample 24 : tensor<2x6x4xf32>
  // CHECK: %[[A:.*]] = linalg.generic {{.*}}"parallel", "parallel", "parallel"]} ins(%[[X]], %[[F]] : tensor<2x6x4xf32>, tensor<2x6x4xf32>)
  // CHECK: arith.mulf
  %a = call @twice(%x) : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  // CHECK: %[[G:.*]] = fsdp.random bernoulli keep 7.500000e-01 {{.*}} site 2 per_sample 24 : tensor<2x6x4xf32>
  // CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[G]] :
  %b = call @twice(%a) : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  // With probability 0 the result is the operand, and no site is added.
  %h = call @held(%b) : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  %flat = tensor.collapse_shape %h [[0, 1], [2]] : tensor<2x6x4xf32> into tensor<12x4xf32>
  // CHECK: %[[N:.*]] = arith.truncf
  %n = arith.truncf %flat : tensor<12x4xf32> to tensor<12x4xbf16>
  // CHECK: %[[H:.*]] = fsdp.random bernoulli keep 5.000000e-01 {{.*}} site 3 per_sample 24 : tensor<12x4xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[N]], %[[H]] : tensor<12x4xbf16>, tensor<12x4xf32>)
  // CHECK: arith.extf
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: arith.truncf
  %c = call @fsdp.dropout.1(%n) : (tensor<12x4xbf16>) -> tensor<12x4xbf16>
  %e = arith.extf %x : tensor<2x6x4xf32> to tensor<2x6x4xf64>
  // CHECK: fsdp.random bernoulli keep 7.500000e-01 {{.*}} site 4 per_sample 24 : tensor<2x6x4xf64>
  %d = call @fsdp.dropout_f64(%e) : (tensor<2x6x4xf64>) -> tensor<2x6x4xf64>
  // CHECK: return %[[B]], %{{.*}}, %{{.*}}, %[[B]], %{{.*}} :
  return %b, %c, %d, %h, %u : tensor<2x6x4xf32>, tensor<12x4xbf16>, tensor<2x6x4xf64>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
}

// -----

// The samples are followed through a transposition and back, a product, a lookup, a slice and a concatenation.
// CHECK-LABEL: func.func @followed(
// CHECK-COUNT-4: fsdp.random bernoulli
#bth = affine_map<(b, t, h, c) -> (b, t, h, c)>
#bht = affine_map<(b, t, h, c) -> (b, h, t, c)>
#ij = affine_map<(i, j) -> (i)>
#out = affine_map<(i, j) -> (i, j)>
func.func private @fsdp.dropout.0(tensor<6x3x8xf32>) -> tensor<6x3x8xf32> attributes {fsdp.dropout = 0.25 : f64}
func.func private @fsdp.dropout.1(tensor<18x8xf32>) -> tensor<18x8xf32> attributes {fsdp.dropout = 0.25 : f64}
func.func private @fsdp.dropout.2(tensor<6x3x8xf32>) -> tensor<6x3x8xf32> attributes {fsdp.dropout = 0.25 : f64}
func.func @followed(%w: tensor<8x8xf32> {fsdp.param = "w"}, %ids: tensor<2x9xi64> {fsdp.batch = "tokens"}, %table: tensor<9xf32> {fsdp.batch = "scale"}) -> tensor<6x3x8xf32> {
  %n = tensor.collapse_shape %ids [[0, 1]] : tensor<2x9xi64> into tensor<18xi64>
  %e = tensor.empty() : tensor<18x8xf32>
  %rows = linalg.generic {indexing_maps = [#ij, #out], iterator_types = ["parallel", "parallel"]} ins(%n : tensor<18xi64>) outs(%e : tensor<18x8xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %w[%i, %c] : tensor<8x8xf32>
    linalg.yield %v : f32
  } -> tensor<18x8xf32>
  %r0 = call @fsdp.dropout.1(%rows) : (tensor<18x8xf32>) -> tensor<18x8xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<18x8xf32>) -> tensor<18x8xf32>
  %p = linalg.matmul ins(%r0, %w : tensor<18x8xf32>, tensor<8x8xf32>) outs(%f : tensor<18x8xf32>) -> tensor<18x8xf32>
  %heads = tensor.expand_shape %p [[0, 1], [2, 3]] output_shape [2, 9, 2, 4] : tensor<18x8xf32> into tensor<2x9x2x4xf32>
  %te = tensor.empty() : tensor<9x2x2x4xf32>
  %late = linalg.transpose ins(%heads : tensor<2x9x2x4xf32>) outs(%te : tensor<9x2x2x4xf32>) permutation = [1, 0, 2, 3]
  %be = tensor.empty() : tensor<2x9x2x4xf32>
  %back = linalg.transpose ins(%late : tensor<9x2x2x4xf32>) outs(%be : tensor<2x9x2x4xf32>) permutation = [1, 0, 2, 3]
  %merged = tensor.collapse_shape %back [[0, 1], [2, 3]] : tensor<2x9x2x4xf32> into tensor<18x8xf32>
  %r1 = call @fsdp.dropout.1(%merged) : (tensor<18x8xf32>) -> tensor<18x8xf32>
  %split = tensor.expand_shape %r1 [[0, 1], [2]] output_shape [6, 3, 8] : tensor<18x8xf32> into tensor<6x3x8xf32>
  %r2 = call @fsdp.dropout.0(%split) : (tensor<6x3x8xf32>) -> tensor<6x3x8xf32>
  %a = tensor.extract_slice %r2[0, 0, 0] [6, 1, 8] [1, 1, 1] : tensor<6x3x8xf32> to tensor<6x1x8xf32>
  %b = tensor.extract_slice %r2[0, 1, 0] [6, 2, 8] [1, 1, 1] : tensor<6x3x8xf32> to tensor<6x2x8xf32>
  %joined = tensor.concat dim(1) %b, %a : (tensor<6x2x8xf32>, tensor<6x1x8xf32>) -> tensor<6x3x8xf32>
  %r3 = call @fsdp.dropout.2(%joined) : (tensor<6x3x8xf32>) -> tensor<6x3x8xf32>
  return %r3 : tensor<6x3x8xf32>
}

// -----

// Nothing is dropped, so that no batch is needed.
// CHECK-LABEL: func.func @nothing(
// CHECK-SAME: %[[W:.*]]: tensor<8xf32> {fsdp.param = "w"}) ->
// CHECK-NEXT: return %[[W]]
func.func private @fsdp.dropout.0(tensor<8xf32>) -> tensor<8xf32> attributes {fsdp.dropout = 0.0 : f64}
func.func @nothing(%w: tensor<8xf32> {fsdp.param = "w"}) -> tensor<8xf32> {
  %0 = call @fsdp.dropout.0(%w) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The samples are the first of five dimensions that one dimension is divided into.
// CHECK-LABEL: func.func @divided(
// CHECK: fsdp.random bernoulli {{.*}} per_sample 12 : tensor<2x1x3x2x2xf32>
func.func private @fsdp.dropout.0(tensor<2x1x3x2x2xf32>) -> tensor<2x1x3x2x2xf32> attributes {fsdp.dropout = 0.25 : f64}
func.func @divided(%w: tensor<8xf32> {fsdp.param = "w"}, %x: tensor<2x12xf32> {fsdp.batch = "x"}) -> tensor<2x1x3x2x2xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x12xf32> into tensor<24xf32>
  %wide = tensor.expand_shape %flat [[0, 1, 2, 3, 4]] output_shape [2, 1, 3, 2, 2] : tensor<24xf32> into tensor<2x1x3x2x2xf32>
  %0 = call @fsdp.dropout.0(%wide) : (tensor<2x1x3x2x2xf32>) -> tensor<2x1x3x2x2xf32>
  return %0 : tensor<2x1x3x2x2xf32>
}
