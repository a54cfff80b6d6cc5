// Integers of a score function that fit 32 bits, although the ops that compute them
// need 64 bits: a shift by more than 31, and an unsigned quotient and remainder.
// RUN: fsdp-kernel-test %s --error-factor=2 | FileCheck %s --implicit-check-not=FAILED
// RUN: fsdp-kernel-test %s --error-factor=2 --device=emulate --target=sm_80 | FileCheck %s --implicit-check-not=FAILED
// CHECK-COUNT-2: : ok

func.func private @shifts(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>, %out0: tensor<1x2x70x16xf32> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xf32>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %by = arith.constant 40 : i64
    %three = arith.constant 3 : i64
    %column = arith.index_cast %j : index to i64
    %number = arith.muli %column, %three : i64
    %sign = arith.shrsi %number, %by : i64
    %bits = arith.shrui %number, %by : i64
    %sum = arith.addi %sign, %bits : i64
    %term = arith.sitofp %sum : i64 to f32
    %r = arith.addf %s, %term : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
}
func.func private @remainders(%q: tensor<1x2x70x16xf32>, %k: tensor<1x2x70x16xf32>, %v: tensor<1x2x70x16xf32>, %out0: tensor<1x2x70x16xf32> {fsdp.out = 0 : i64}, %out1: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x16xf32>, tensor<1x2x70xf32>)
    attributes {fsdp.kernel} {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 : tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32> -> tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %seven = arith.constant 7 : i64
    %row = arith.index_cast %i : index to i64
    %column = arith.index_cast %j : index to i64
    %distance = arith.subi %column, %row : i64
    %rest = arith.remui %distance, %seven : i64
    %term = arith.sitofp %rest : i64 to f32
    %r = arith.addf %s, %term : f32
    fsdp.yield %r : f32
  }
  return %o, %lse : tensor<1x2x70x16xf32>, tensor<1x2x70xf32>
}
