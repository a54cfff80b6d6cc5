// Reductions to the greatest (or least) value and its position.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r   = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>

// The first position of the greatest value.
// CHECK: @argmax: phases 9/1, shared 0, {{.*}} ok
func.func private @argmax(%x: tensor<9x133xf32>, %v: tensor<9xf32> {fsdp.out = 0}, %i: tensor<9xi64> {fsdp.out = 1}) -> (tensor<9xf32>, tensor<9xi64>) attributes {fsdp.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<9xf32>
  %ei = tensor.empty() : tensor<9xi64>
  %fv = linalg.fill ins(%z : f32) outs(%ev : tensor<9xf32>) -> tensor<9xf32>
  %fi = linalg.fill ins(%zi : i64) outs(%ei : tensor<9xi64>) -> tensor<9xi64>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<9x133xf32>) outs(%fv, %fi : tensor<9xf32>, tensor<9xi64>) {
  ^bb0(%a: f32, %s: f32, %t: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %p = arith.cmpf ogt, %a, %s : f32
    %u = arith.select %p, %a, %s : f32
    %w = arith.select %p, %ki, %t : i64
    linalg.yield %u, %w : f32, i64
  } -> (tensor<9xf32>, tensor<9xi64>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi64>
}

// The form that torch emits.
// CHECK: @argmax_torch: phases 9/1, shared 0, {{.*}} ok
func.func private @argmax_torch(%x: tensor<9x133xf32>, %v: tensor<9xf32> {fsdp.out = 0}, %i: tensor<9xi64> {fsdp.out = 1}) -> (tensor<9xf32>, tensor<9xi64>) attributes {fsdp.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<9xf32>
  %ei = tensor.empty() : tensor<9xi64>
  %fv = linalg.fill ins(%z : f32) outs(%ev : tensor<9xf32>) -> tensor<9xf32>
  %fi = linalg.fill ins(%zi : i64) outs(%ei : tensor<9xi64>) -> tensor<9xi64>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<9x133xf32>) outs(%fv, %fi : tensor<9xf32>, tensor<9xi64>) {
  ^bb0(%a: f32, %s: f32, %t: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %u = arith.maximumf %a, %s : f32
    %p = arith.cmpf ogt, %a, %s : f32
    %w = arith.select %p, %ki, %t : i64
    linalg.yield %u, %w : f32, i64
  } -> (tensor<9xf32>, tensor<9xi64>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi64>
}

// The last position of the least value, with many equal values.
// CHECK: @argmin_last: phases 9/1, shared 0, {{.*}} ok
func.func private @argmin_last(%x: tensor<9x133xi32> {fsdp.limit = 7}, %v: tensor<9xi32> {fsdp.out = 0}, %i: tensor<9xi32> {fsdp.out = 1}) -> (tensor<9xi32>, tensor<9xi32>) attributes {fsdp.kernel} {
  %z = arith.constant 2147483647 : i32
  %zi = arith.constant 0 : i32
  %ev = tensor.empty() : tensor<9xi32>
  %ei = tensor.empty() : tensor<9xi32>
  %fv = linalg.fill ins(%z : i32) outs(%ev : tensor<9xi32>) -> tensor<9xi32>
  %fi = linalg.fill ins(%zi : i32) outs(%ei : tensor<9xi32>) -> tensor<9xi32>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<9x133xi32>) outs(%fv, %fi : tensor<9xi32>, tensor<9xi32>) {
  ^bb0(%a: i32, %s: i32, %t: i32):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i32
    %p = arith.cmpi sle, %a, %s : i32
    %u = arith.select %p, %a, %s : i32
    %w = arith.select %p, %ki, %t : i32
    linalg.yield %u, %w : i32, i32
  } -> (tensor<9xi32>, tensor<9xi32>)
  return %0#0, %0#1 : tensor<9xi32>, tensor<9xi32>
}

// The form that JAX emits.
// CHECK: @argmax_jax: phases 9/1, shared 0, {{.*}} ok
func.func private @argmax_jax(%x: tensor<9x133xf32>, %v: tensor<9xf32> {fsdp.out = 0}, %i: tensor<9xi32> {fsdp.out = 1}) -> (tensor<9xf32>, tensor<9xi32>) attributes {fsdp.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i32
  %ev = tensor.empty() : tensor<9xf32>
  %ei = tensor.empty() : tensor<9xi32>
  %fv = linalg.fill ins(%z : f32) outs(%ev : tensor<9xf32>) -> tensor<9xf32>
  %fi = linalg.fill ins(%zi : i32) outs(%ei : tensor<9xi32>) -> tensor<9xi32>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<9x133xf32>) outs(%fv, %fi : tensor<9xf32>, tensor<9xi32>) {
  ^bb0(%a: f32, %s: f32, %t: i32):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i32
    %g = arith.cmpf ogt, %s, %a : f32
    %n = arith.cmpf une, %s, %s : f32
    %p = arith.ori %g, %n : i1
    %q = arith.cmpf oeq, %s, %a : f32
    %l = arith.cmpi slt, %t, %ki : i32
    %b = arith.andi %q, %l : i1
    %c = arith.ori %p, %b : i1
    %u = arith.select %p, %s, %a : f32
    %w = arith.select %c, %t, %ki : i32
    linalg.yield %u, %w : f32, i32
  } -> (tensor<9xf32>, tensor<9xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi32>
}

// Equal values, NaN (never chosen), and no candidate.
// CHECK: @ties: phases 6/1, shared 0, {{.*}} ok
func.func private @ties(%x: tensor<6x5xf32> {fsdp.values = dense<[[1.0, 2.0, 2.0, 0.0, 2.0], [-1.0, -1.0, -2.0, -1.0, -3.0], [0x7FC00000, 1.0, 3.0, 0x7FC00000, 3.0], [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [-0.0, 0.0, -0.0, 0.0, -0.0], [0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000]]> : tensor<6x5xf32>}, %v: tensor<6xf32> {fsdp.out = 0, fsdp.values = dense<[2.0, -1.0, 3.0, 0xFF800000, 0.0, 0xFF800000]> : tensor<6xf32>}, %i: tensor<6xi64> {fsdp.out = 1, fsdp.values = dense<[1, 0, 2, 0, 0, 0]> : tensor<6xi64>}) -> (tensor<6xf32>, tensor<6xi64>) attributes {fsdp.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi64>
  %fv = linalg.fill ins(%z : f32) outs(%ev : tensor<6xf32>) -> tensor<6xf32>
  %fi = linalg.fill ins(%zi : i64) outs(%ei : tensor<6xi64>) -> tensor<6xi64>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x5xf32>) outs(%fv, %fi : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%a: f32, %s: f32, %t: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %p = arith.cmpf ogt, %a, %s : f32
    %u = arith.select %p, %a, %s : f32
    %w = arith.select %p, %ki, %t : i64
    linalg.yield %u, %w : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi64>
}

// The last position of equal values.
// CHECK: @ties_last: phases 6/1, shared 0, {{.*}} ok
func.func private @ties_last(%x: tensor<6x5xf32> {fsdp.values = dense<[[1.0, 2.0, 2.0, 0.0, 2.0], [-1.0, -1.0, -2.0, -1.0, -3.0], [0x7FC00000, 1.0, 3.0, 0x7FC00000, 3.0], [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [-0.0, 0.0, -0.0, 0.0, -0.0], [0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000]]> : tensor<6x5xf32>}, %v: tensor<6xf32> {fsdp.out = 0, fsdp.values = dense<[2.0, -1.0, 3.0, 0xFF800000, 0.0, 0xFF800000]> : tensor<6xf32>}, %i: tensor<6xi64> {fsdp.out = 1, fsdp.values = dense<[4, 3, 4, 4, 4, 0]> : tensor<6xi64>}) -> (tensor<6xf32>, tensor<6xi64>) attributes {fsdp.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi64>
  %fv = linalg.fill ins(%z : f32) outs(%ev : tensor<6xf32>) -> tensor<6xf32>
  %fi = linalg.fill ins(%zi : i64) outs(%ei : tensor<6xi64>) -> tensor<6xi64>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x5xf32>) outs(%fv, %fi : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%a: f32, %s: f32, %t: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %p = arith.cmpf oge, %a, %s : f32
    %u = arith.select %p, %a, %s : f32
    %w = arith.select %p, %ki, %t : i64
    linalg.yield %u, %w : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi64>
}

// The last position, where NaN is chosen over all other values.
// CHECK: @ties_jax: phases 6/1, shared 0, {{.*}} ok
func.func private @ties_jax(%x: tensor<6x5xf32> {fsdp.values = dense<[[1.0, 2.0, 2.0, 0.0, 2.0], [-1.0, -1.0, -2.0, -1.0, -3.0], [0x7FC00000, 1.0, 3.0, 0x7FC00000, 3.0], [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [-0.0, 0.0, -0.0, 0.0, -0.0], [0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000]]> : tensor<6x5xf32>}, %v: tensor<6xf32> {fsdp.out = 0, fsdp.values = dense<[2.0, -1.0, 0x7FC00000, 0xFF800000, 0.0, 0x7FC00000]> : tensor<6xf32>}, %i: tensor<6xi32> {fsdp.out = 1, fsdp.values = dense<[1, 0, 0, 0, 0, 0]> : tensor<6xi32>}) -> (tensor<6xf32>, tensor<6xi32>) attributes {fsdp.kernel} {
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i32
  %ev = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi32>
  %fv = linalg.fill ins(%z : f32) outs(%ev : tensor<6xf32>) -> tensor<6xf32>
  %fi = linalg.fill ins(%zi : i32) outs(%ei : tensor<6xi32>) -> tensor<6xi32>
  %0:2 = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x5xf32>) outs(%fv, %fi : tensor<6xf32>, tensor<6xi32>) {
  ^bb0(%a: f32, %s: f32, %t: i32):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i32
    %g = arith.cmpf ogt, %s, %a : f32
    %n = arith.cmpf une, %s, %s : f32
    %p = arith.ori %g, %n : i1
    %q = arith.cmpf oeq, %s, %a : f32
    %l = arith.cmpi slt, %t, %ki : i32
    %b = arith.andi %q, %l : i1
    %c = arith.ori %p, %b : i1
    %u = arith.select %p, %s, %a : f32
    %w = arith.select %c, %t, %ki : i32
    linalg.yield %u, %w : f32, i32
  } -> (tensor<6xf32>, tensor<6xi32>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32>
}
