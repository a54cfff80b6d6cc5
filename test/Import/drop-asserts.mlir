// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-drop-asserts --canonicalize | FileCheck %s

#row = affine_map<(n, c) -> (n)>
#id = affine_map<(n, c) -> (n, c)>

// The table's extent becomes the limit; torch's checks are decided by it.
// CHECK-LABEL: func.func @checked(
// CHECK-SAME: tensor<3xi64> {fsdp.limit = 7 : i64}
// CHECK-NOT: cf.assert
// CHECK-NOT: cmpi
func.func @checked(%w: tensor<7x4xf32>, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %c7 = arith.constant 7 : index
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %j = linalg.index 1 : index
    %a = arith.cmpi slt, %i, %c7 : index
    cf.assert %a, "index must be smaller than dim size"
    %b = arith.cmpi sge, %k, %c0 : i64
    cf.assert %b, "index must be larger or equal to 0"
    %v = tensor.extract %w[%i, %j] : tensor<7x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

#row = affine_map<(n, c) -> (n)>
#id = affine_map<(n, c) -> (n, c)>

// A smaller limit that is given stays; two tables take the smaller one.
// CHECK-LABEL: func.func @least(
// CHECK-SAME: tensor<3xi64> {fsdp.limit = 5 : i64}, %{{.*}}: tensor<3xi32> {fsdp.limit = 6 : i64}
func.func @least(%w: tensor<7x4xf32>, %u: tensor<6x4xf32>, %ids: tensor<3xi64> {fsdp.limit = 5 : i64}, %other: tensor<3xi32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [#row, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids, %other : tensor<3xi64>, tensor<3xi32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %l: i32, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %h = arith.index_cast %l : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<7x4xf32>
    %x = tensor.extract %w[%h, %j] : tensor<7x4xf32>
    %y = tensor.extract %u[%h, %j] : tensor<6x4xf32>
    %s = arith.addf %v, %x : f32
    %t = arith.addf %s, %y : f32
    linalg.yield %t : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// A comparison with a value that is no id is no check of the lookup's.
// CHECK-LABEL: func.func @ignore(
// CHECK-SAME: {fsdp.extra_ids = array<i64: -100>, fsdp.limit = 4 : i64}
// CHECK: arith.cmpi ne, %{{.*}}, %c-100
func.func @ignore(%w: tensor<3x4xf32>, %t: tensor<3xi64>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant -100 : i64
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%t : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %o: f32):
    %n = linalg.index 0 : index
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%n, %i] : tensor<3x4xf32>
    %c = arith.cmpi ne, %k, %no : i64
    %s = arith.select %c, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// A check that is about something else.
func.func @other(%x: tensor<i1>) -> tensor<i1> {
  %c = tensor.extract %x[] : tensor<i1>
  // expected-remark @+1 {{dropped the check 'x must hold'; nothing in the step repeats it}}
  cf.assert %c, "x must hold"
  return %x : tensor<i1>
}

// -----

// expected-note @+1 {{the ids come from argument 1; ids that are looked up directly, or wrapped and clamped as jax does, are understood}}
func.func @unbounded(%w: tensor<7x4xf32>, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %two = arith.constant 3 : i64
    %m = arith.muli %k, %k : i64
    %n = arith.subi %m, %two : i64
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    // expected-error @+1 {{cannot bound index 0 of this lookup in a dimension of 7 from its ids}}
    %v = tensor.extract %w[%i, %j] : tensor<7x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

func.func @constant(%w: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<[0, 1, 2, 9]> : tensor<4xi64>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%c : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    // expected-error @+1 {{index 0 of this lookup may leave its dimension of 4}}
    %v = tensor.extract %w[%i] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
