// Indices that depend on no input, and whose range no rule bounds, are computed.
// RUN: fsdp-opt %s --fsdp-evaluate-constants --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: fsdp-opt %s --fsdp-evaluate-constants --fsdp-drop-asserts --fsdp-normalise-ops --canonicalize --split-input-file | FileCheck %s --check-prefix=PROVEN
#ij = affine_map<(i, j) -> (i, j)>
#ijh = affine_map<(i, j, h) -> (i, j, h)>
#ijh_ij = affine_map<(i, j, h) -> (i, j)>

// Buckets of relative positions of T5: |i - j| below 2, then logarithmic. log(0) is not an integer, and selects no bucket.
// CHECK-LABEL: func.func @buckets(
// CHECK: %[[T:.*]] = arith.constant dense<{{\[}}[0, 1, 2, 3, 4], [1, 0, 1, 2, 3], [2, 1, 0, 1, 2], [3, 2, 1, 0, 1], [4, 3, 2, 1, 0]]> : tensor<5x5xi64>
// CHECK: linalg.generic {indexing_maps = {{.*}}, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME: %[[T]]
// CHECK: ^bb0({{.*}}, %[[B:.*]]: i64, %{{.*}}: f32):
// CHECK: %[[I:.*]] = arith.index_cast %[[B]] : i64 to index
// CHECK: tensor.extract %{{.*}}[%[[I]], %{{.*}}]
// PROVEN-LABEL: func.func @buckets(
// PROVEN-NOT: cf.assert
// PROVEN: return %{{[a-z0-9]*}} : tensor<5x5x4xf32>
func.func @buckets(%bias: tensor<8x4xf32>) -> tensor<5x5x4xf32> {
  %c0 = arith.constant 0 : i64
  %c2 = arith.constant 2 : i64
  %c7 = arith.constant 7 : i64
  %c8 = arith.constant 8 : index
  %half = arith.constant 2.0 : f32
  %scale = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<5x5xf32>
  %distance = linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<5x5xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %i, %j : index
    %n = arith.index_cast %d : index to i64
    %a = math.absi %n : i64
    %f = arith.sitofp %a : i64 to f32
    linalg.yield %f : f32
  } -> tensor<5x5xf32>
  %ie = tensor.empty() : tensor<5x5xi64>
  %large = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%distance : tensor<5x5xf32>) outs(%ie : tensor<5x5xi64>) {
  ^bb0(%a: f32, %o: i64):
    %r = arith.divf %a, %half : f32
    %l = math.log %r : f32
    %m = arith.mulf %l, %scale : f32
    %n = arith.fptosi %m : f32 to i64
    linalg.yield %n : i64
  } -> tensor<5x5xi64>
  %fe = tensor.empty() : tensor<5x5x4xf32>
  %rows = linalg.generic {indexing_maps = [#ijh_ij, #ijh_ij, #ijh], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%distance, %large : tensor<5x5xf32>, tensor<5x5xi64>) outs(%fe : tensor<5x5x4xf32>) {
  ^bb0(%a: f32, %log: i64, %o: f32):
    %n = arith.fptosi %a : f32 to i64
    %more = arith.addi %log, %c2 : i64
    %least = arith.minsi %more, %c7 : i64
    %small = arith.cmpi slt, %n, %c2 : i64
    %bucket = arith.select %small, %n, %least : i64
    %at = arith.index_cast %bucket : i64 to index
    %below = arith.cmpi slt, %at, %c8 : index
    cf.assert %below, "index must be smaller than dim size"
    %positive = arith.cmpi sge, %bucket, %c0 : i64
    cf.assert %positive, "index must be larger or equal to 0"
    %h = linalg.index 2 : index
    %v = tensor.extract %bias[%at, %h] : tensor<8x4xf32>
    linalg.yield %v : f32
  } -> tensor<5x5x4xf32>
  return %rows : tensor<5x5x4xf32>
}

// -----

// Positions that count the elements before them: a reduction of a constant, read through a
// view and a slice. In an op that also reads data, only the constant operands are computed.
#i = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
#second = affine_map<(i, j) -> (j)>
// CHECK-LABEL: func.func @counted(
// CHECK: %[[T:.*]] = arith.constant dense<[11, 10, 13]> : tensor<3xi64>
// CHECK: linalg.generic
// CHECK: %[[W:.*]] = arith.constant dense<[-2, -2, 0]> : tensor<3xi32>
func.func @counted(%x: tensor<16xf32>, %ids: tensor<3xi64> {fsdp.limit = 4 : i64}) -> (tensor<3xf32>, tensor<3xf32>) {
  %mask = arith.constant dense<[1, 0, 1, 1]> : tensor<4xi64>
  %step = arith.constant dense<[3, 0, 2, 4]> : tensor<4xi64>
  %zero = arith.constant dense<0> : tensor<4xi64>
  %sums = linalg.generic {indexing_maps = [#second, #second, #first], iterator_types = ["parallel", "reduction"]}
      ins(%mask, %step : tensor<4xi64>, tensor<4xi64>) outs(%zero : tensor<4xi64>) {
  ^bb0(%m: i64, %s: i64, %o: i64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %before = arith.cmpi sle, %j, %i : index
    %p = arith.muli %m, %s : i64
    %c0 = arith.constant 0 : i64
    %t = arith.select %before, %p, %c0 : i64
    %r = arith.addi %o, %t : i64
    linalg.yield %r : i64
  } -> tensor<4xi64>
  %view = tensor.expand_shape %sums [[0, 1]] output_shape [1, 4] : tensor<4xi64> into tensor<1x4xi64>
  %part = tensor.extract_slice %view[0, 0] [1, 3] [1, 1] : tensor<1x4xi64> to tensor<3xi64>
  %e = tensor.empty() : tensor<3xf32>
  %a = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%part : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%s: i64, %o: f32):
    %c8 = arith.constant 8 : i64
    %c1 = arith.constant 1 : i64
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %odd = arith.andi %n, %c1 : i64
    %k = arith.subi %s, %odd : i64
    %p = arith.addi %k, %c8 : i64
    %at = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%at] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  %b = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%part, %ids : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%s: i64, %id: i64, %o: f32):
    %c9 = arith.constant 9 : i64
    %c5 = arith.constant -5 : i32
    %n = arith.trunci %s : i64 to i32
    %q = arith.addi %n, %c5 : i32
    %w = arith.extsi %q : i32 to i64
    %both = arith.addi %w, %id : i64
    %p = arith.addi %both, %c9 : i64
    %at = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%at] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// -----

// Not computed: positions that are affine or known to be in range, masks, values that depend on data, and undefined values.
#i = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @stays(
// CHECK-NOT: arith.constant dense
// CHECK: return
func.func @stays(%x: tensor<16xf32>, %f: tensor<8xf32>, %ids: tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %c8 = arith.constant 8 : index
    %c3 = arith.constant 3 : index
    %i = linalg.index 0 : index
    %far = arith.addi %i, %c8 : index
    %v = tensor.extract %x[%far] : tensor<16xf32>
    %small = arith.divui %i, %c3 : index
    %w = tensor.extract %x[%small] : tensor<16xf32>
    %late = arith.cmpi sgt, %i, %c3 : index
    %r = arith.select %late, %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%f : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%y: f32, %o: f32):
    %n = arith.fptosi %y : f32 to i64
    %at = arith.index_cast %n : i64 to index
    %v = tensor.extract %x[%at] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %c = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%ids : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%id: i64, %o: f32):
    %at = arith.index_cast %id : i64 to index
    %v = tensor.extract %x[%at] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %y = arith.sitofp %n : i64 to f32
    %l = math.log %y : f32
    %m = arith.fptosi %l : f32 to i64
    %at = arith.index_cast %m : i64 to index
    %v = tensor.extract %x[%at] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
