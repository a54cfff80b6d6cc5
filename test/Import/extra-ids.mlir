// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-drop-asserts --canonicalize | FileCheck %s

#id = affine_map<(n) -> (n)>

// The lookup is not conditional, but its result is not used if the target is -100, so the
// index gets a guard.
// CHECK-LABEL: func.func @thrown_away(
// CHECK-SAME: tensor<3xi64> {fsdp.extra_ids = array<i64: -100>, fsdp.limit = 4 : i64}
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK: %[[BAD:.*]] = arith.cmpi eq, %[[I]], %c-100
// CHECK: %[[S:.*]] = arith.select %[[BAD]], %c0, %[[I]]
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %[[S]]]
func.func @thrown_away(%w: tensor<3x4xf32>, %t: tensor<3xi64>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant -100 : i64
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    %m = arith.negf %v : f32
    %c = arith.cmpi ne, %k, %no : i64
    %s = arith.select %c, %m, %zero : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

#id = affine_map<(n) -> (n)>

// Another op replaces the extra ids, one of them above the limit, before the lookup. The checks allow both.
// CHECK-LABEL: func.func @replaced(
// CHECK-SAME: tensor<3xi64> {fsdp.extra_ids = array<i64: 9>, fsdp.limit = 4 : i64}
// CHECK: arith.cmpi eq, %{{.*}}, %c9
// CHECK-NOT: cf.assert
// CHECK-NOT: cmpi
func.func @replaced(%w: tensor<3x4xf32>, %t: tensor<3xi64>) -> tensor<3xf32> {
  %no = arith.constant 9 : i64
  %c0 = arith.constant 0 : i64
  %c4 = arith.constant 4 : i64
  %ei = tensor.empty() : tensor<3xi64>
  %safe = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : tensor<3xi64>) outs(%ei : tensor<3xi64>) {
  ^bb0(%k: i64, %o: i64):
    %c = arith.cmpi eq, %k, %no : i64
    %s = arith.select %c, %c0, %k : i64
    linalg.yield %s : i64
  } -> tensor<3xi64>
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%safe : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %negative = arith.cmpi slt, %k, %c0 : i64
    %plus = arith.addi %k, %c4 : i64
    %wrapped = arith.select %negative, %plus, %k : i64
    %small = arith.cmpi slt, %wrapped, %c4 : i64
    cf.assert %small, "index must be smaller than dim size"
    %i = arith.index_cast %wrapped : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

#id = affine_map<(n) -> (n)>

// The loss masks the target, but the lookup wraps it as in jax: -2 is still row 2.
// CHECK-LABEL: func.func @wrapped(
// CHECK-SAME: tensor<3xi64> {fsdp.extra_ids = array<i64: -2>, fsdp.limit = 4 : i64}
// CHECK: %[[N:.*]] = arith.cmpi slt, %[[K:.*]], %c0
// CHECK: %[[P:.*]] = arith.addi %[[K]], %c4
// CHECK: arith.select %[[N]], %[[P]], %[[K]]
func.func @wrapped(%w: tensor<3x4xf32>, %t: tensor<3xi64>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant -2 : i64
  %c0 = arith.constant 0 : i64
  %c4 = arith.constant 4 : i64
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %negative = arith.cmpi slt, %k, %c0 : i64
    %plus = arith.addi %k, %c4 : i64
    %wrap = arith.select %negative, %plus, %k : i64
    %i = arith.index_cast %wrap : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    %c = arith.cmpi eq, %k, %no : i64
    %s = arith.select %c, %zero, %v : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

#id = affine_map<(n) -> (n)>

// The id is compared, but the lookup and its result do not depend on the comparison; a mask of one element does not guard another element.
// CHECK-LABEL: func.func @not_handled(
// CHECK-SAME: tensor<4xi64> {fsdp.limit = 4 : i64}, %{{.*}}: tensor<4xi64> {fsdp.limit = 4 : i64}
func.func @not_handled(%w: tensor<3x4xf32>, %t: tensor<4xi64>, %u: tensor<4xi64>) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant -100 : i64
  %e = tensor.empty() : tensor<3xf32>
  %t0 = tensor.extract_slice %t[0] [3] [1] : tensor<4xi64> to tensor<3xi64>
  %t1 = tensor.extract_slice %t[1] [3] [1] : tensor<4xi64> to tensor<3xi64>
  %u0 = tensor.extract_slice %u[0] [3] [1] : tensor<4xi64> to tensor<3xi64>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%t0, %t1 : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %next: i64, %o: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    %c = arith.cmpi eq, %next, %no : i64
    %s = arith.select %c, %zero, %v : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%u0 : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    %c = arith.cmpi eq, %k, %no : i64
    %s = arith.select %c, %zero, %v : f32
    %z = arith.addf %s, %v : f32
    linalg.yield %z : f32
  } -> tensor<3xf32>
  return %r, %q : tensor<3xf32>, tensor<3xf32>
}

// -----

#id = affine_map<(n) -> (n)>

// The extra id fails torch's check, and the file lists an extra id that the model does not handle.
// expected-error @+1 {{argument 2 lists the extra id -1, which the model looks up; expected an id that the model replaces or ignores}}
func.func @claims(%w: tensor<3x4xf32>, %t: tensor<3xi64>, %u: tensor<3xi64> {fsdp.extra_ids = array<i64: -1>}) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant -100 : i64
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%u : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r, %q : tensor<3xf32>, tensor<3xf32>
}
