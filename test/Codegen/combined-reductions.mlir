// Reductions that combine more than once per position, or by a select.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r   = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
#col = affine_map<(i, k) -> (k)>

// Two sums one after the other.
// CHECK: @two_sums: phases 37/1, shared 0, {{.*}} ok
func.func private @two_sums(%x: tensor<37x203xf32>, %w: tensor<37x203xf32>, %y: tensor<37xf32> {fsdp.out = 0}) -> tensor<37xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<37x203xf32>, tensor<37x203xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    %1 = arith.addf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// A sum, a product, a difference.
// CHECK: @sum_and_product: phases 37/1, shared 0, {{.*}} ok
func.func private @sum_and_product(%x: tensor<37x203xf32>, %w: tensor<37x203xf32>, %y: tensor<37xf32> {fsdp.out = 0}) -> tensor<37xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<37x203xf32>, tensor<37x203xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %0 = arith.addf %a, %s : f32
    %1 = math.fma %a, %b, %0 : f32
    %2 = arith.subf %1, %b : f32
    linalg.yield %2 : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// A sum of the values that a mask selects, written as a select of sums.
// CHECK: @masked_sum: phases 37/1, shared 0, {{.*}} ok
func.func private @masked_sum(%x: tensor<37x203xf32>, %w: tensor<37x203xf32>, %y: tensor<37xf32> {fsdp.out = 0}) -> tensor<37xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<37x203xf32>, tensor<37x203xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.cmpf ogt, %b, %a : f32
    %0 = arith.addf %s, %a : f32
    %1 = arith.select %p, %0, %s : f32
    linalg.yield %1 : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// A sum of the values that a mask selects, written as a branch.
// CHECK: @branched_sum: phases 37/1, shared 0, {{.*}} ok
func.func private @branched_sum(%x: tensor<37x203xf32>, %w: tensor<37x203xf32>, %y: tensor<37xf32> {fsdp.out = 0}) -> tensor<37xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<37x203xf32>, tensor<37x203xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.cmpf ogt, %b, %a : f32
    %1 = scf.if %p -> f32 {
      %0 = arith.addf %s, %a : f32
      scf.yield %0 : f32
    } else {
      scf.yield %s : f32
    }
    linalg.yield %1 : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// A recurrence cannot be reordered, so the general lowering emits it, row by row.
// CHECK: @decay: phases 1/1 37/1, {{.*}} ok
func.func private @decay(%x: tensor<37x203xf32>, %w: tensor<37x203xf32>, %y: tensor<37xf32> {fsdp.out = 0}) -> tensor<37xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<37x203xf32>, tensor<37x203xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %0 = arith.mulf %s, %a : f32
    %1 = arith.addf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// Two sums over rows.
// CHECK: @column_sums: {{.*}} ok
func.func private @column_sums(%x: tensor<37x203xf32>, %y: tensor<203xf32> {fsdp.out = 0}) -> tensor<203xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<203xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<203xf32>) -> tensor<203xf32>
  %0 = linalg.generic {indexing_maps = [#r, #col], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<37x203xf32>) outs(%f : tensor<203xf32>) {
  ^bb0(%a: f32, %s: f32):
    %m = arith.mulf %a, %a : f32
    %0 = arith.addf %s, %a : f32
    %1 = arith.addf %0, %m : f32
    linalg.yield %1 : f32
  } -> tensor<203xf32>
  return %0 : tensor<203xf32>
}
