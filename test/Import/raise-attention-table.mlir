// The mask is every second row of a constant table, with finite numbers. Each row provably keeps a key only if
// those rows do.
// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log

// CHECK-LABEL: @even_rows_have_keys(
// CHECK: fsdp.attention
func.func @even_rows_have_keys(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false]]> : tensor<12x6xi1>
  %slice = tensor.extract_slice %table[0, 0] [6, 6] [2, 1] : tensor<12x6xi1> to tensor<6x6xi1>
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %slice : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
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

// LOG: the mask uses finite numbers, and a row may be masked completely
// CHECK-LABEL: @an_even_row_has_none(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @an_even_row_has_none(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, false, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false], [false, true, false, false, false, false]]> : tensor<12x6xi1>
  %slice = tensor.extract_slice %table[0, 0] [6, 6] [2, 1] : tensor<12x6xi1> to tensor<6x6xi1>
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %slice : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
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

// A table of bytes beside a causal mask: the diagonal is kept by both.
// CHECK-LABEL: @window_and_causal(
// CHECK: fsdp.attention
// CHECK: mask_mod
func.func @window_and_causal(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]]> : tensor<6x6xi8>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xi8>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: i8, %o: f32):
    %low = arith.constant -3.40282347E+38 : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c0 = arith.constant 0 : i8
    %bit = arith.cmpi ne, %t, %c0 : i8
    %past = arith.cmpi sle, %j, %i : index
    %keep = arith.andi %past, %bit : i1
    %y = arith.select %keep, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// Every row of the table keeps a key, and so does every row of the causal mask, but no key of the first row is kept by both.
// LOG: the mask uses finite numbers, and a row may be masked completely
// CHECK-LABEL: @different_keys(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @different_keys(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]]> : tensor<6x6xi8>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xi8>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: i8, %o: f32):
    %low = arith.constant -3.40282347E+38 : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c0 = arith.constant 0 : i8
    %bit = arith.cmpi ne, %t, %c0 : i8
    %past = arith.cmpi sle, %j, %i : index
    %keep = arith.andi %past, %bit : i1
    %y = arith.select %keep, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// Distances as floats, and as remainders: mask_mod is evaluated for every row.
// CHECK-LABEL: @computed(
// CHECK: fsdp.attention
// CHECK: mask_mod
func.func @computed(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]]> : tensor<6x6xi8>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xi8>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: i8, %o: f32):
    %low = arith.constant -3.40282347E+38 : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %jj = arith.index_cast %j : index to i64
    %ii = arith.index_cast %i : index to i64
    %d = arith.subi %ii, %jj : i64
    %far = math.absi %d : i64
    %two = arith.constant 2 : i64
    %rest = arith.remsi %far, %two : i64
    %real = arith.sitofp %rest : i64 to f32
    %one = arith.constant 1.0 : f32
    %keep = arith.cmpf oeq, %real, %one : f32
    %y = arith.select %keep, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// The table comes with the batch, so its rows are unknown.
// LOG: the mask uses finite numbers, and a row may be masked completely; if every row keeps a key, give --raise-attention=assume-keys
// CHECK-LABEL: @of_the_batch(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @of_the_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %table: tensor<6x6xi8> {fsdp.batch = "table"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xi8>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: i8, %o: f32):
    %low = arith.constant -3.40282347E+38 : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c0 = arith.constant 0 : i8
    %bit = arith.cmpi ne, %t, %c0 : i8
    %past = arith.cmpi sle, %j, %i : index
    %keep = arith.andi %past, %bit : i1
    %y = arith.select %keep, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// A table of numbers that is added to the scores becomes a table of bits, because adding 0 keeps a score.
// CHECK-LABEL: @added(
// CHECK: %[[BITS:.*]] = arith.constant dense<{{\[\[}}true, false, false, false, false, false], [true, true, false, false, false, false], {{.*}} : tensor<6x6xi1>
// CHECK: fsdp.attention {{.*}} scale 1.000000e+00 capture(%[[BITS]] : tensor<6x6xi1>)
// CHECK-NOT: score_mod
// CHECK: %[[KEEP:.*]] = tensor.extract %{{.*}}[%i, %j] : tensor<6x6xi1>
// CHECK-NEXT: fsdp.yield %[[KEEP]] : i1
func.func @added(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf32>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %f = arith.constant 1.0 : f32
    %m = arith.addf %a, %t : f32
    %y = arith.mulf %m, %f : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// One row of the table has no 0.
// LOG: the mask uses finite numbers, and a row may be masked completely
// CHECK-LABEL: @added_everywhere(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @added_everywhere(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[-1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9], [0.0, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9], [0.0, 0.0, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9], [0.0, 0.0, 0.0, -1.0E+9, -1.0E+9, -1.0E+9], [0.0, 0.0, 0.0, 0.0, -1.0E+9, -1.0E+9], [0.0, 0.0, 0.0, 0.0, 0.0, -1.0E+9]]> : tensor<6x6xf32>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %f = arith.constant 1.0 : f32
    %m = arith.addf %a, %t : f32
    %y = arith.mulf %m, %f : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// The factor after the addition makes -1e5 too high for a mask; a bias is not a mask either.
// LOG: the mask uses finite numbers, and a row may be masked completely
// CHECK-LABEL: @scaled_down(
// CHECK-NOT: fsdp.attention
// CHECK: linalg.softmax
func.func @scaled_down(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[0.0, -1.0E+5, -1.0E+5, -1.0E+5, -1.0E+5, -1.0E+5], [0.0, 0.0, -1.0E+5, -1.0E+5, -1.0E+5, -1.0E+5], [0.0, 0.0, 0.0, -1.0E+5, -1.0E+5, -1.0E+5], [0.0, 0.0, 0.0, 0.0, -1.0E+5, -1.0E+5], [0.0, 0.0, 0.0, 0.0, 0.0, -1.0E+5], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf32>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %f = arith.constant 0.01 : f32
    %m = arith.addf %a, %t : f32
    %y = arith.mulf %m, %f : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// CHECK-LABEL: @a_bias(
// CHECK: fsdp.attention
// CHECK: score_mod
// CHECK: arith.addf
// CHECK-NOT: mask_mod
// CHECK: return
func.func @a_bias(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %table = arith.constant dense<[[0.0, -3.0, -3.0, -3.0, -3.0, -3.0], [0.0, 0.0, -3.0, -3.0, -3.0, -3.0], [0.0, 0.0, 0.0, -3.0, -3.0, -3.0], [0.0, 0.0, 0.0, 0.0, -3.0, -3.0], [0.0, 0.0, 0.0, 0.0, 0.0, -3.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf32>
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %table : tensor<2x4x6x6xf32>, tensor<6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %f = arith.constant 1.0 : f32
    %m = arith.addf %a, %t : f32
    %y = arith.mulf %m, %f : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}
