// Scalars, and kernels whose ops do not share rows.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r = affine_map<(d0, d1) -> (d0, d1)>
#v = affine_map<(d0) -> (d0)>

// The step block, of which a few slots change.
// CHECK: @block: phases 1{{.*}} ok
func.func private @block(%norm: tensor<f32>, %b: tensor<16xf32> {fsdp.inout = 0}) -> tensor<16xf32> attributes {fsdp.kernel, fsdp.kind = "scalar"} {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.extract %norm[] : tensor<f32>
  %s = tensor.extract %b[%c1] : tensor<16xf32>
  %s1 = arith.addf %s, %one : f32
  %b1 = tensor.insert %s1 into %b[%c1] : tensor<16xf32>
  %b2 = tensor.insert %n into %b1[%c8] : tensor<16xf32>
  return %b2 : tensor<16xf32>
}

// CHECK: @pair: {{.*}} ok
func.func private @pair(%a: tensor<f64>, %b: tensor<f64>, %y: tensor<2xf64> {fsdp.out = 0}) -> tensor<2xf64> attributes {fsdp.kernel, fsdp.kind = "scalar"} {
  %x = tensor.extract %a[] : tensor<f64>
  %z = tensor.extract %b[] : tensor<f64>
  %s = arith.addf %x, %z : f64
  %p = arith.mulf %x, %z : f64
  %e = tensor.from_elements %s, %p : tensor<2xf64>
  return %e : tensor<2xf64>
}

// A softmax over the first dimension: a column reduction, and every column reads all rows.
// CHECK: @first_dim: {{.*}} ok
func.func private @first_dim(%x: tensor<70x33xf32>, %y: tensor<70x33xf32> {fsdp.out = 0}) -> tensor<70x33xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %e2 = tensor.empty() : tensor<70x33xf32>
  %ex = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<70x33xf32>) outs(%e2 : tensor<70x33xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<70x33xf32>
  %s = linalg.generic {indexing_maps = [#r, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%ex : tensor<70x33xf32>) outs(%f : tensor<33xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<33xf32>
  %r = linalg.generic {indexing_maps = [#r, affine_map<(d0, d1) -> (d1)>, #r], iterator_types = ["parallel", "parallel"]} ins(%ex, %s : tensor<70x33xf32>, tensor<33xf32>) outs(%e2 : tensor<70x33xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<70x33xf32>
  return %r : tensor<70x33xf32>
}

// An in-place operand that is still read after its update: the reads see the old values.
// CHECK: @late_read: phases 1/1, {{.*}} ok
func.func private @late_read(%x: tensor<40xf32>, %y: tensor<40xf32> {fsdp.inout = 0}, %z: tensor<40xf32> {fsdp.out = 1}) -> (tensor<40xf32>, tensor<40xf32>) attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<40xf32>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]} ins(%x, %y : tensor<40xf32>, tensor<40xf32>) outs(%e : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<40xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (39 - d0)>, #v], iterator_types = ["parallel"]} ins(%y : tensor<40xf32>) outs(%e : tensor<40xf32>) {
  ^bb0(%b: f32, %o: f32):
    linalg.yield %b : f32
  } -> tensor<40xf32>
  return %0, %2 : tensor<40xf32>, tensor<40xf32>
}

// Two swapped operands: each result is the other operand's old value, read before either is written.
// CHECK: @swap: phases 40/64, {{.*}} ok
func.func private @swap(%x: tensor<40xf32> {fsdp.inout = 0}, %y: tensor<40xf32> {fsdp.inout = 1}) -> (tensor<40xf32>, tensor<40xf32>) attributes {fsdp.kernel} {
  return %y, %x : tensor<40xf32>, tensor<40xf32>
}

// A running sum, which only the general lowering supports.
// CHECK: @scan: phases 1/1, {{.*}} ok
func.func private @scan(%x: tensor<40xf32>, %y: tensor<40xf32> {fsdp.out = 0}) -> tensor<40xf32> attributes {fsdp.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %r:2 = scf.for %i = %c0 to %c40 step %c1 iter_args(%t = %e, %s = %zero) -> (tensor<40xf32>, f32) {
    %a = tensor.extract %x[%i] : tensor<40xf32>
    %n = arith.addf %s, %a : f32
    %u = tensor.insert %n into %t[%i] : tensor<40xf32>
    scf.yield %u, %n : tensor<40xf32>, f32
  }
  return %r#0 : tensor<40xf32>
}
