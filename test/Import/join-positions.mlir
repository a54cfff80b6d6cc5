// Reads at several computed positions become lookups of rows.
// RUN: fsdp-opt %s --fsdp-join-positions --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: fsdp-opt %s --fsdp-join-positions --fsdp-raise-embedding --fsdp-expand-lookup --split-input-file | FileCheck %s --check-prefix=RAISED --implicit-check-not="tensor.extract %"


// A transposed convolution reverses its weights: both positions follow from the loops, and the index is computed before the lookup.
// CHECK-LABEL: func.func @flip(
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME: outs(%{{.*}} : tensor<3x4x2xf32>)
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0, 1], [2]] : tensor<3x4x2xf32> into tensor<12x2xf32>
// CHECK: %[[IDS:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]
// CHECK: linalg.generic {{.*}} ins(%[[IDS]] : tensor<3x4xi64>)
// CHECK: tensor.extract %[[R]][%{{.*}}, %{{.*}}] : tensor<12x2xf32>
// RAISED-LABEL: func.func @flip(
// RAISED: fsdp.gather_rows %{{.*}} : tensor<12x2xf32>, tensor<3x4xi64> -> tensor<3x4x2xf32>
#chw = affine_map<(c, i, j) -> (c, i, j)>
func.func @flip(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<2x3x4xf32>
  %0 = linalg.generic {indexing_maps = [#chw], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%o: f32):
    %c = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %y = arith.subi %c2, %i : index
    %z = arith.subi %c3, %j : index
    %v = tensor.extract %x[%c, %y, %z] : tensor<2x3x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Upsampling, beside a fixed position; no transposition is needed.
// CHECK-LABEL: func.func @nearest(
// CHECK-SAME: %[[X:.*]]: tensor<3x2x5x4xf32>
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2], [3]] : tensor<3x2x5x4xf32> into tensor<6x5x4xf32>
// CHECK: %[[N:.*]] = arith.constant 2 : index
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %[[N]] : index
// CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK: tensor.extract %[[R]][%[[AT]], %{{.*}}, %{{.*}}] : tensor<6x5x4xf32>
// RAISED-LABEL: func.func @nearest(
// RAISED: fsdp.gather_rows
#ijc = affine_map<(i, j, c) -> (i, j, c)>
func.func @nearest(%x: tensor<3x2x5x4xf32>) -> tensor<6x4x4xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<6x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#ijc], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<6x4x4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = linalg.index 2 : index
    %y = arith.divui %i, %c2 : index
    %z = arith.divui %j, %c2 : index
    %v = tensor.extract %x[%y, %z, %c1, %c] : tensor<3x2x5x4xf32>
    linalg.yield %v : f32
  } -> tensor<6x4x4xf32>
  return %0 : tensor<6x4x4xf32>
}

// -----

// Two positions from data depend on the batch, so the loop over the batch is a component of the index.
// CHECK-LABEL: func.func @data(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3]] : tensor<2x3x4x5xf32> into tensor<24x5xf32>
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<24x5xf32>
// RAISED-LABEL: func.func @data(
// RAISED: fsdp.gather_rows %{{.*}} : tensor<24x5xf32>, tensor<2x7xi64> -> tensor<2x7x5xf32>
#btc = affine_map<(b, t, c) -> (b, t, c)>
#bt = affine_map<(b, t, c) -> (b, t)>
func.func @data(%x: tensor<2x3x4x5xf32>, %row: tensor<2x7xi64> {fsdp.limit = 3 : i64}, %column: tensor<2x7xi64> {fsdp.limit = 4 : i64}) -> tensor<2x7x5xf32> {
  %e = tensor.empty() : tensor<2x7x5xf32>
  %0 = linalg.generic {indexing_maps = [#bt, #bt, #btc], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%row, %column : tensor<2x7xi64>, tensor<2x7xi64>) outs(%e : tensor<2x7x5xf32>) {
  ^bb0(%r: i64, %k: i64, %o: f32):
    %b = linalg.index 0 : index
    %c = linalg.index 2 : index
    %y = arith.index_cast %r : i64 to index
    %z = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%b, %y, %z, %c] : tensor<2x3x4x5xf32>
    linalg.yield %v : f32
  } -> tensor<2x7x5xf32>
  return %0 : tensor<2x7x5xf32>
}

// -----

// A mask of bits is read at two positions.
// CHECK-LABEL: func.func @bits(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<4x4xi1> into tensor<16xi1>
// RAISED-LABEL: func.func @bits(
// RAISED: arith.ori
#i = affine_map<(i) -> (i)>
func.func @bits(%x: tensor<4x4xi1>, %at: tensor<4xi64> {fsdp.limit = 4 : i64}) -> tensor<4xi1> {
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<4xi1>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%at : tensor<4xi64>) outs(%e : tensor<4xi1>) {
  ^bb0(%a: i64, %o: i1):
    %i = linalg.index 0 : index
    %y = arith.subi %c3, %i : index
    %z = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%y, %z] : tensor<4x4xi1>
    linalg.yield %v : i1
  } -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

// One computed position is unchanged, because other passes handle it. The same holds for the target's log-probability of all rows but the last.
// CHECK-LABEL: func.func @one(
// CHECK-NOT: tensor.collapse_shape
// CHECK-LABEL: func.func @shifted(
// CHECK-NOT: tensor.collapse_shape
// RAISED-LABEL: func.func @shifted(
// RAISED: tensor.extract_slice %{{.*}}[0, 0] [7, 5] [1, 1] : tensor<8x5xf32> to tensor<7x5xf32>
#nc = affine_map<(n, c) -> (n, c)>
#n = affine_map<(n, c) -> (n)>
func.func @one(%x: tensor<9x5xf32>, %ids: tensor<7xi64> {fsdp.limit = 9 : i64}) -> tensor<7x5xf32> {
  %e = tensor.empty() : tensor<7x5xf32>
  %0 = linalg.generic {indexing_maps = [#n, #nc], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<7xi64>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%id: i64, %o: f32):
    %c = linalg.index 1 : index
    %y = arith.index_cast %id : i64 to index
    %v = tensor.extract %x[%y, %c] : tensor<9x5xf32>
    linalg.yield %v : f32
  } -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}
func.func @shifted(%logp: tensor<8x5xf32>, %targets: tensor<7xi64> {fsdp.limit = 5 : i64}) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%targets : tensor<7xi64>) outs(%e : tensor<7xf32>) {
  ^bb0(%t: i64, %o: f32):
    %n = linalg.index 0 : index
    %y = arith.index_cast %t : i64 to index
    %v = tensor.extract %logp[%n, %y] : tensor<8x5xf32>
    linalg.yield %v : f32
  } -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
