// Own functions against libm in f64, over ranges that reach every branch; the
// bound is 2 ulp of f64 and 1e-14 for f64 (1e-13 for pow).
// RUN: fsdp-kernel-test %s --tolerance=1e-13 --floor=1e-3 --also-cpu=x86-64-v3 | FileCheck %s

#v = affine_map<(d0) -> (d0)>

// CHECK: @exps: {{.*}} ok
func.func private @exps(%x: tensor<3001xf64> {fsdp.range = [-20.0, 20.0]},
    %a: tensor<3001xf64> {fsdp.out = 0}, %b: tensor<3001xf64> {fsdp.out = 1}, %c: tensor<3001xf64> {fsdp.out = 2}, %d: tensor<3001xf64> {fsdp.out = 3})
    -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) attributes {fsdp.kernel, fsdp.kind = "map"} {
  %r:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<3001xf64>) outs(%a, %b, %c, %d : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) {
  ^bb0(%e: f64, %o0: f64, %o1: f64, %o2: f64, %o3: f64):
    %0 = math.exp %e : f64
    %1 = math.exp2 %e : f64
    %2 = math.tanh %e : f64
    %3 = math.expm1 %e : f64
    linalg.yield %0, %1, %2, %3 : f64, f64, f64, f64
  } -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>
}

// CHECK: @near: {{.*}} ok
func.func private @near(%x: tensor<3001xf64> {fsdp.range = [-3.0, 3.0]},
    %a: tensor<3001xf64> {fsdp.out = 0}, %b: tensor<3001xf64> {fsdp.out = 1}, %c: tensor<3001xf64> {fsdp.out = 2}, %d: tensor<3001xf64> {fsdp.out = 3})
    -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) attributes {fsdp.kernel, fsdp.kind = "map"} {
  %r:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<3001xf64>) outs(%a, %b, %c, %d : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) {
  ^bb0(%e: f64, %o0: f64, %o1: f64, %o2: f64, %o3: f64):
    %0 = math.erf %e : f64
    %1 = math.tanh %e : f64
    %2 = math.atan %e : f64
    %3 = math.sinh %e : f64
    linalg.yield %0, %1, %2, %3 : f64, f64, f64, f64
  } -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>
}

// CHECK: @logs: {{.*}} ok
func.func private @logs(%x: tensor<3001xf64> {fsdp.range = [0.0, 8.0]}, %y: tensor<3001xf64> {fsdp.range = [-9.0, 9.0]},
    %a: tensor<3001xf64> {fsdp.out = 0}, %b: tensor<3001xf64> {fsdp.out = 1}, %c: tensor<3001xf64> {fsdp.out = 2}, %d: tensor<3001xf64> {fsdp.out = 3})
    -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) attributes {fsdp.kernel, fsdp.kind = "map"} {
  %r:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<3001xf64>, tensor<3001xf64>) outs(%a, %b, %c, %d : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) {
  ^bb0(%e: f64, %f: f64, %o0: f64, %o1: f64, %o2: f64, %o3: f64):
    %0 = math.log %e : f64
    %1 = math.log1p %e : f64
    %2 = math.powf %e, %f : f64
    %3 = math.rsqrt %e : f64
    linalg.yield %0, %1, %2, %3 : f64, f64, f64, f64
  } -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>
}

// CHECK: @turns: {{.*}} ok
func.func private @turns(%x: tensor<3001xf64> {fsdp.range = [-5000.0, 5000.0]}, %y: tensor<3001xf64> {fsdp.range = [-9.0, 9.0]},
    %a: tensor<3001xf64> {fsdp.out = 0}, %b: tensor<3001xf64> {fsdp.out = 1}, %c: tensor<3001xf64> {fsdp.out = 2}, %d: tensor<3001xf64> {fsdp.out = 3})
    -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) attributes {fsdp.kernel, fsdp.kind = "map"} {
  %r:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<3001xf64>, tensor<3001xf64>) outs(%a, %b, %c, %d : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>) {
  ^bb0(%e: f64, %f: f64, %o0: f64, %o1: f64, %o2: f64, %o3: f64):
    %0 = math.sin %e : f64
    %1 = math.cos %e : f64
    %2 = math.atan2 %e, %f : f64
    %3 = arith.remf %e, %f : f64
    linalg.yield %0, %1, %2, %3 : f64, f64, f64, f64
  } -> (tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>, tensor<3001xf64>
}
