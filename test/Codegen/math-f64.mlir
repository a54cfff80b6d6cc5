// The project's functions against libm in f64, over ranges that reach every branch. The bound is 2 ulp of f64 and 1e-14 for f64 (1e-13
// for pow).
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

// NaN and infinities.
// CHECK: @edges: {{.*}} ok
func.func private @edges(%r0: tensor<9xf64> {fsdp.out = 0}, %r1: tensor<9xf64> {fsdp.out = 1}, %r2: tensor<9xf64> {fsdp.out = 2}, %r3: tensor<9xf64> {fsdp.out = 3}, %r4: tensor<9xf64> {fsdp.out = 4}, %r5: tensor<9xf64> {fsdp.out = 5}, %r6: tensor<9xf64> {fsdp.out = 6}, %r7: tensor<9xf64> {fsdp.out = 7}, %r8: tensor<9xf64> {fsdp.out = 8}, %r9: tensor<9xf64> {fsdp.out = 9}, %r10: tensor<9xf64> {fsdp.out = 10}, %r11: tensor<9xf64> {fsdp.out = 11}, %r12: tensor<9xf64> {fsdp.out = 12}, %r13: tensor<9xf64> {fsdp.out = 13}, %r14: tensor<9xf64> {fsdp.out = 14}, %r15: tensor<9xf64> {fsdp.out = 15}, %r16: tensor<9xf64> {fsdp.out = 16}, %r17: tensor<9xf64> {fsdp.out = 17})
    -> (tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>) attributes {fsdp.kernel} {
  %x = arith.constant dense<[0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0.0, -0.0, 1.0, -1.0, 2.5, -3.5]> : tensor<9xf64>
  %y:18 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<9xf64>) outs(%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17 : tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>) {
  ^bb0(%e: f64, %o0: f64, %o1: f64, %o2: f64, %o3: f64, %o4: f64, %o5: f64, %o6: f64, %o7: f64, %o8: f64, %o9: f64, %o10: f64, %o11: f64, %o12: f64, %o13: f64, %o14: f64, %o15: f64, %o16: f64, %o17: f64):
    %0 = math.exp %e : f64
    %1 = math.exp2 %e : f64
    %2 = math.expm1 %e : f64
    %3 = math.tanh %e : f64
    %4 = math.erf %e : f64
    %5 = math.log %e : f64
    %6 = math.log2 %e : f64
    %7 = math.log1p %e : f64
    %8 = math.sqrt %e : f64
    %9 = math.rsqrt %e : f64
    %10 = math.atan %e : f64
    %11 = math.cosh %e : f64
    %12 = math.sin %e : f64
    %13 = math.absf %e : f64
    %14 = math.floor %e : f64
    %15 = math.roundeven %e : f64
    %16 = math.round %e : f64
    %17 = math.trunc %e : f64
    linalg.yield %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17 : f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64
  } -> (tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>)
  return %y#0, %y#1, %y#2, %y#3, %y#4, %y#5, %y#6, %y#7, %y#8, %y#9, %y#10, %y#11, %y#12, %y#13, %y#14, %y#15, %y#16, %y#17 : tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>, tensor<9xf64>
}
