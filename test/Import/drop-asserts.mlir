// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-drop-asserts --canonicalize | FileCheck %s

// DOC-BEFORE-BEGIN fsdp-drop-asserts
#row = affine_map<(n, c) -> (n)>
// DOC-BEFORE-END
// DOC-BEFORE-BEGIN fsdp-drop-asserts
#id = affine_map<(n, c) -> (n, c)>
// DOC-BEFORE-END

// The table's extent becomes the limit, with which torch's checks are folded.
// CHECK-LABEL: func.func @checked(
// CHECK-SAME: tensor<3xi64> {fsdp.limit = 7 : i64}
// CHECK-NOT: cf.assert
// CHECK-NOT: cmpi
// DOC-BEFORE-BEGIN fsdp-drop-asserts
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
// DOC-BEFORE-END

// -----

#row = affine_map<(n, c) -> (n)>
#id = affine_map<(n, c) -> (n, c)>

// A given smaller limit is kept; of two tables the smaller one gives the limit.
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

// A comparison with a value that is not an id is not a check of the lookup.
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

// A check of another value than the lookup's id.
func.func @other(%x: tensor<i1>) -> tensor<i1> {
  %c = tensor.extract %x[] : tensor<i1>
  // expected-remark @+1 {{dropped the check 'x must hold'; no limit or check replaces it}}
  cf.assert %c, "x must hold"
  return %x : tensor<i1>
}

// -----

// No limit makes the index of this lookup valid, so it is clamped and checked in each step.
// CHECK-LABEL: func.func @unbounded(
// CHECK-SAME: %arg1: tensor<3xi64>) -> (tensor<3x4xf32>, tensor<i64> {fsdp.lookup = {extent = 7 : i64,
// CHECK: %[[AT:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<3xi64>)
// CHECK: arith.subi
// CHECK: %[[IN:.*]] = linalg.generic {{.*}} ins(%[[AT]] : tensor<3xi64>)
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: %[[WORST:.*]] = linalg.generic {{.*}} ins(%[[AT]] : tensor<3xi64>)
// CHECK: arith.maxui
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[IN]] : tensor<3xi64>, tensor<3xi64>)
// CHECK-NEXT: ^bb0(%{{.*}}: i64, %[[CLAMPED:.*]]: i64, %{{.*}}: f32):
// CHECK: %[[I:.*]] = arith.index_cast %[[CLAMPED]] : i64 to index
// CHECK: tensor.extract %arg0[%[[I]], %{{.*}}]
// CHECK: return %{{.*}}, %[[WORST]] : tensor<3x4xf32>, tensor<i64>
func.func @unbounded(%w: tensor<7x4xf32>, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %two = arith.constant 3 : i64
    %m = arith.muli %k, %k : i64
    %n = arith.subi %m, %two : i64
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    // expected-remark @+1 {{this lookup is checked in each step: its ids are not known to be in [0, 7), the elements of its dimension}}
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
    // expected-error @+2 {{index 0 of this lookup may be outside its dimension of 4}}
    // expected-note @+1 {{expected an index in [0, 4): the index is a constant; correct the model}}
    %v = tensor.extract %w[%i] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Each index is valid for all ids: by itself, by the bounds of a sum and of an index, or
// by the value that pads and masks. An id gets a limit only if it is looked up unchanged.
// CHECK-LABEL: func.func @proven(
// CHECK-SAME: %arg1: tensor<6xi64> {fsdp.extra_ids = array<i64: -100>, fsdp.limit = 8 : i64}
// CHECK-SAME: %arg2: tensor<6xi64>, %arg3: tensor<6x8xf32>)
// CHECK-SAME: -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
func.func @proven(%w: tensor<8xf32>, %labels: tensor<6xi64>, %mask: tensor<6xi64>, %scores: tensor<6x8xf32>)
    -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %c0 = arith.constant 0 : i64
  %c7 = arith.constant 7 : i64
  %m100 = arith.constant -100 : i64
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<6xf32>
  %ie = tensor.empty() : tensor<6xi64>
  %be = tensor.empty() : tensor<6xi1>
  // Labels, shifted and padded with -100; -100 becomes 0. The comparison is in another body.
  %padded = tensor.pad %labels low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %m100 : i64
  } : tensor<6xi64> to tensor<7xi64>
  %shifted = tensor.extract_slice %padded[1] [6] [1] : tensor<7xi64> to tensor<6xi64>
  %kept = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%shifted : tensor<6xi64>) outs(%be : tensor<6xi1>) {
  ^bb0(%k: i64, %o: i1):
    %r = arith.cmpi ne, %k, %m100 : i64
    linalg.yield %r : i1
  } -> tensor<6xi1>
  %safe = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%kept, %shifted : tensor<6xi1>, tensor<6xi64>) outs(%ie : tensor<6xi64>) {
  ^bb0(%b: i1, %k: i64, %o: i64):
    %r = arith.select %b, %k, %c0 : i64
    linalg.yield %r : i64
  } -> tensor<6xi64>
  %r0 = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%safe : tensor<6xi64>) outs(%e : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  // A clamp by comparisons, of a square.
  %r1 = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%mask : tensor<6xi64>) outs(%e : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %m = arith.muli %k, %k : i64
    %d = arith.subi %m, %c7 : i64
    %l = arith.cmpi slt, %d, %c0 : i64
    %x = arith.select %l, %c0, %d : i64
    %g = arith.cmpi sge, %x, %c7 : i64
    %y = arith.select %g, %c7, %x : i64
    %i = arith.index_cast %y : i64 to index
    %v = tensor.extract %w[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  // The number of the first ids that are not 0: at most 6.
  %zeros = linalg.fill ins(%c0 : i64) outs(%ie : tensor<6xi64>) -> tensor<6xi64>
  %count = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%mask : tensor<6xi64>) outs(%zeros : tensor<6xi64>) {
  ^bb0(%k: i64, %sum: i64):
    %b = arith.cmpi ne, %k, %c0 : i64
    %one = arith.extui %b : i1 to i64
    %r = arith.addi %sum, %one : i64
    linalg.yield %r : i64
  } -> tensor<6xi64>
  %r2 = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%count : tensor<6xi64>) outs(%e : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  // The index of the largest score.
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %best:2 = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%scores : tensor<6x8xf32>) outs(%lows, %zeros : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %mx = arith.maximumf %v, %b : f32
    %g = arith.cmpf ogt, %v, %b : f32
    %s = arith.select %g, %ki, %bi : i64
    linalg.yield %mx, %s : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  %r3 = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%best#1 : tensor<6xi64>) outs(%e : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %v = tensor.extract %w[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %r0, %r1, %r2, %r3 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// A count of 9 ids, by an op of its own, may be 9, which is outside a table of 9 elements.
// CHECK-LABEL: func.func @too_many(
// CHECK-SAME: -> (tensor<1xf32>, tensor<i64> {fsdp.lookup = {extent = 9 : i64,
func.func @too_many(%w: tensor<9xf32>, %mask: tensor<9xi64>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<1xf32>
  %ie = tensor.empty() : tensor<1xi64>
  %zeros = linalg.fill ins(%c0 : i64) outs(%ie : tensor<1xi64>) -> tensor<1xi64>
  %count = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%mask : tensor<9xi64>) outs(%zeros : tensor<1xi64>) {
  ^bb0(%k: i64, %sum: i64):
    %b = arith.cmpi ne, %k, %c0 : i64
    %one = arith.extui %b : i1 to i64
    %r = arith.addi %sum, %one : i64
    linalg.yield %r : i64
  } -> tensor<1xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%count : tensor<1xi64>) outs(%e : tensor<1xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    // expected-remark @+1 {{not known to be in [0, 9)}}
    %v = tensor.extract %w[%i] : tensor<9xf32>
    linalg.yield %v : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}

// -----

// An unbounded index in the form of torch-mlir: negative ids are wrapped, and asserts reject them. The check
// includes the asserts on the same ids; the last one is on another value.
// CHECK-LABEL: func.func @wrapped(
// CHECK-SAME: -> (tensor<3xf32>, tensor<i64> {fsdp.lookup = {extent = 7 : i64,
// CHECK: %[[AT:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<3xi64>)
// CHECK-NEXT: ^bb0(%[[K:.*]]: i64, %{{.*}}: i64):
// CHECK: %[[ID:.*]] = arith.muli %[[K]], %[[K]] : i64
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[ID]], %{{.*}} : i64
// CHECK: %[[NOT_NEGATIVE:.*]] = arith.cmpi sge, %[[ID]], %{{.*}} : i64
// CHECK: %[[WRAPPED:.*]] = arith.select
// CHECK: arith.cmpi ult, %[[ID]], %{{.*}} : i64
// CHECK: %[[BAD1:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ID]] : i64
// CHECK: %[[FIRST:.*]] = arith.select %[[BELOW]], %{{.*}}, %[[BAD1]] : i64
// CHECK: %[[BAD2:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ID]] : i64
// CHECK: arith.select %[[NOT_NEGATIVE]], %[[FIRST]], %[[BAD2]] : i64
// CHECK: arith.maxui
// CHECK-NOT: cf.assert
func.func @wrapped(%w: tensor<7xf32>, %ids: tensor<3xi64>, %other: tensor<3xi64>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%ids, %other : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%k: i64, %x: i64, %o: f32):
    %seven = arith.constant 7 : i64
    %zero = arith.constant 0 : i64
    %id = arith.muli %k, %k : i64
    %below = arith.cmpi slt, %id, %seven : i64
    cf.assert %below, "index must be smaller than dim size"
    %positive = arith.cmpi sge, %id, %zero : i64
    cf.assert %positive, "index must be larger or equal to 0"
    %small = arith.cmpi slt, %x, %seven : i64
    // expected-remark @+1 {{dropped the check 'something else'; no limit or check replaces it}}
    cf.assert %small, "something else"
    %negative = arith.cmpi slt, %id, %zero : i64
    %up = arith.addi %id, %seven : i64
    %at = arith.select %negative, %up, %id : i64
    %i = arith.index_cast %at : i64 to index
    // expected-remark @+1 {{not known to be in [0, 7)}}
    %v = tensor.extract %w[%i] : tensor<7xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// If two intervals overlap, neither id is always the larger, even if one interval has the larger bounds.
// CHECK-LABEL: func.func @larger(
// CHECK: arith.maxsi
// CHECK-LABEL: func.func @always_larger(
// CHECK-NOT: arith.maxsi
func.func @larger(%w: tensor<12x4xf32>, %s: tensor<3xi64> {fsdp.limit = 7 : i64}, %t: tensor<3xi64> {fsdp.limit = 6 : i64}) -> tensor<3x4xf32> {
  %c3 = arith.constant 3 : i64
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%s, %t : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %l: i64, %o: f32):
    %a = arith.addi %k, %c3 : i64
    %m = arith.maxsi %a, %l : i64
    %f = arith.sitofp %m : i64 to f32
    linalg.yield %f : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @always_larger(%w: tensor<12x4xf32>, %s: tensor<3xi64> {fsdp.limit = 7 : i64}, %t: tensor<3xi64> {fsdp.limit = 4 : i64}) -> tensor<3x4xf32> {
  %c3 = arith.constant 3 : i64
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%s, %t : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%k: i64, %l: i64, %o: f32):
    %a = arith.addi %k, %c3 : i64
    %m = arith.maxsi %a, %l : i64
    %f = arith.sitofp %m : i64 to f32
    linalg.yield %f : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
