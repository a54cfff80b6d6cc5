// Branches in bodies: both sides are computed, and a select chooses.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#v   = affine_map<(i) -> (i)>

// A branch within a branch.
// CHECK: @branch: phases 133/64, {{.*}} ok
func.func private @branch(%x: tensor<133xf32>, %y: tensor<133xf32> {fsdp.out = 0}) -> tensor<133xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<133xf32>
  %z = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<133xf32>) outs(%e : tensor<133xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.cmpf ogt, %a, %z : f32
    %s = scf.if %p -> f32 {
      %l = math.log %a : f32
      %q = arith.cmpf olt, %l, %a : f32
      %m = scf.if %q -> f32 {
        %k = arith.mulf %l, %l : f32
        scf.yield %k : f32
      } else {
        scf.yield %l : f32
      }
      scf.yield %m : f32
    } else {
      scf.yield %z : f32
    }
    linalg.yield %s : f32
  } -> tensor<133xf32>
  return %0 : tensor<133xf32>
}

// A read that is in bounds only if the branch is taken.
// CHECK: @guarded: phases 133/64, {{.*}} ok
func.func private @guarded(%x: tensor<133xf32>, %y: tensor<133xf32> {fsdp.out = 0}) -> tensor<133xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<133xf32>
  %z = arith.constant 0.0 : f32
  %two = arith.constant 2 : index
  %0 = linalg.generic {indexing_maps = [#v], iterator_types = ["parallel"]} outs(%e : tensor<133xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %p = arith.cmpi sge, %i, %two : index
    %s = scf.if %p -> f32 {
      %j = arith.subi %i, %two : index
      %l = tensor.extract %x[%j] : tensor<133xf32>
      scf.yield %l : f32
    } else {
      scf.yield %z : f32
    }
    linalg.yield %s : f32
  } -> tensor<133xf32>
  return %0 : tensor<133xf32>
}

// The loop range alone does not keep the index in bounds of a smaller table. An emulator reports the read out of bounds.
// RUN: fsdp-kernel-test %s --only=smaller_table --device=emulate --target=sm_80 | FileCheck %s --check-prefix=GPU
// GPU: @smaller_table: {{.*}} ok
// CHECK: @smaller_table: {{.*}} ok
func.func private @smaller_table(%t: tensor<40xf32>, %y: tensor<133xf32> {fsdp.out = 0}) -> tensor<133xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<133xf32>
  %z = arith.constant 0.0 : f32
  %c40 = arith.constant 40 : index
  %0 = linalg.generic {indexing_maps = [#v], iterator_types = ["parallel"]} outs(%e : tensor<133xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %inside = arith.cmpi ult, %i, %c40 : index
    %s = scf.if %inside -> f32 {
      %v = tensor.extract %t[%i] : tensor<40xf32>
      scf.yield %v : f32
    } else {
      scf.yield %z : f32
    }
    linalg.yield %s : f32
  } -> tensor<133xf32>
  return %0 : tensor<133xf32>
}
