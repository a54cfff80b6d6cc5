// Scores that a function makes very small: keys that -1e30 excludes before all other keys, and rows with only
// such keys, whose weights are equal. The distance to the largest score is computed before any rounding.
// RUN: fsdp-kernel-test %s --error-factor=2 | FileCheck %s --implicit-check-not=FAILED
// RUN: fsdp-kernel-test %s --error-factor=2 --device=emulate --target=sm_80 | FileCheck %s --implicit-check-not=FAILED
// RUN: fsdp-kernel-test %s --error-factor=2 --device=emulate --target=sm_90a | FileCheck %s --implicit-check-not=FAILED
// CHECK-COUNT-8: : ok

func.func private @padded_f32(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>, %out0: tensor<1x2x70x16xf32> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xf32>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 40 : index
    %far = arith.constant -1.0e+30 : f32
    %near = arith.cmpi sge, %j, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
}
func.func private @padded_f32_grad(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>, %o: tensor<1x2x70x16xf32>, %lse: tensor<1x2x70xf32> {fsdp.from = ["padded_f32", 1 : i64]}, %do: tensor<1x2x70x16xf32>,
    %out0: tensor<1x2x70x16xf32> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70x16xf32> {fsdp.out = 1 : i64}, %out2: tensor<1x2x70x16xf32> {fsdp.out = 2 : i64}) -> (tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>) attributes {fsdp.kernel} {
  %dq, %dk, %dv = fsdp.attention_grad %q, %k, %v, %o, %lse, %do scale 0.25 : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 40 : index
    %far = arith.constant -1.0e+30 : f32
    %near = arith.cmpi sge, %j, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
      score_grad(%g: f32, %s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 40 : index
    %zero = arith.constant 0.0 : f32
    %near = arith.cmpi sge, %j, %place : index
    %r = arith.select %near, %g, %zero : f32
    fsdp.yield %r : f32
  }
  return %dq, %dk, %dv : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>
}
func.func private @row_f32(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>, %out0: tensor<1x2x70x16xf32> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xf32>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 0 : index
    %far = arith.constant -1.0e+10 : f32
    %near = arith.cmpi sgt, %i, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
}
func.func private @lowest_f32(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>, %out0: tensor<1x2x70x16xf32> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xf32>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 0 : index
    %far = arith.constant 0xFF7FFFFF : f32
    %near = arith.cmpi sgt, %i, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
}
func.func private @padded_bf16(%q: tensor<1x2x70x16xbf16>, %k: tensor<1x2x70x16xbf16>, %v: tensor<1x2x70x16xbf16>, %out0: tensor<1x2x70x16xbf16> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 40 : index
    %far = arith.constant -1.0e+30 : f32
    %near = arith.cmpi sge, %j, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>
}
func.func private @padded_bf16_grad(%q: tensor<1x2x70x16xbf16>, %k: tensor<1x2x70x16xbf16>, %v: tensor<1x2x70x16xbf16>, %o: tensor<1x2x70x16xbf16>, %lse: tensor<1x2x70xf32> {fsdp.from = ["padded_bf16", 1 : i64]}, %do: tensor<1x2x70x16xbf16>,
    %out0: tensor<1x2x70x16xbf16> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70x16xbf16> {fsdp.out = 1 : i64}, %out2: tensor<1x2x70x16xbf16> {fsdp.out = 2 : i64}) -> (tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>) attributes {fsdp.kernel} {
  %dq, %dk, %dv = fsdp.attention_grad %q, %k, %v, %o, %lse, %do scale 0.25 : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 40 : index
    %far = arith.constant -1.0e+30 : f32
    %near = arith.cmpi sge, %j, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
      score_grad(%g: f32, %s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 40 : index
    %zero = arith.constant 0.0 : f32
    %near = arith.cmpi sge, %j, %place : index
    %r = arith.select %near, %g, %zero : f32
    fsdp.yield %r : f32
  }
  return %dq, %dk, %dv : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>
}
func.func private @row_bf16(%q: tensor<1x2x70x16xbf16>, %k: tensor<1x2x70x16xbf16>, %v: tensor<1x2x70x16xbf16>, %out0: tensor<1x2x70x16xbf16> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 0 : index
    %far = arith.constant -1.0e+10 : f32
    %near = arith.cmpi sgt, %i, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>
}
func.func private @lowest_bf16(%q: tensor<1x2x70x16xbf16>, %k: tensor<1x2x70x16xbf16>, %v: tensor<1x2x70x16xbf16>, %out0: tensor<1x2x70x16xbf16> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x16xbf16> -> tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %place = arith.constant 0 : index
    %far = arith.constant 0xFF7FFFFF : f32
    %near = arith.cmpi sgt, %i, %place : index
    %r = arith.select %near, %s, %far : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xbf16>, tensor<1x2x70xf32>
}
