// Small values of erfc are as accurate as large ones, because errors are relative to each value.
// RUN: fsdp-kernel-test %s --only=single --tolerance=2.4e-7 --floor=0 --also-cpu=x86-64-v3 | FileCheck %s --check-prefix=SINGLE
// RUN: fsdp-kernel-test %s --only=double --tolerance=1e-14 --floor=0 --also-cpu=x86-64-v3 | FileCheck %s --check-prefix=DOUBLE

#v = affine_map<(d0) -> (d0)>

// SINGLE: @single: {{.*}} ok
func.func private @single(%x: tensor<3001xf32> {fsdp.range = [-3.0, 9.1]}, %a: tensor<3001xf32> {fsdp.out = 0})
    -> tensor<3001xf32> attributes {fsdp.kernel, fsdp.kind = "map"} {
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<3001xf32>) outs(%a : tensor<3001xf32>) {
  ^bb0(%e: f32, %o: f32):
    %0 = math.erfc %e : f32
    linalg.yield %0 : f32
  } -> tensor<3001xf32>
  return %r : tensor<3001xf32>
}

// DOUBLE: @double: {{.*}} ok
func.func private @double(%x: tensor<3001xf64> {fsdp.range = [-3.0, 26.0]}, %a: tensor<3001xf64> {fsdp.out = 0})
    -> tensor<3001xf64> attributes {fsdp.kernel, fsdp.kind = "map"} {
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<3001xf64>) outs(%a : tensor<3001xf64>) {
  ^bb0(%e: f64, %o: f64):
    %0 = math.erfc %e : f64
    linalg.yield %0 : f64
  } -> tensor<3001xf64>
  return %r : tensor<3001xf64>
}
