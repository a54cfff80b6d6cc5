// RUN: fsdp-gradcheck %s --quiet | FileCheck %s
// RUN: not fsdp-gradcheck %s --sabotage=1 | FileCheck %s --check-prefix=SPOILT

// Each derivative rule of a scalar op in a function of its own.
// CHECK:      [[N:[0-9]+]] of [[N]] gradients agree
// With a relative error of 1e-4, every gradient fails except the three that are zero.
// SPOILT-NOT: {{^}}ok {{.*}}|g| {{[^0]|0[.]}}
// SPOILT:     3 of {{[0-9]+}} gradients agree

func.func @exp(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.exp %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @exp2(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.exp2 %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @expm1(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.expm1 %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @log(%x: tensor<7xf64> {gradcheck.range = [0.2, 2.0]}) -> tensor<7xf64> {
  %y = math.log %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @log1p(%x: tensor<7xf64> {gradcheck.range = [-0.5, 2.0]}) -> tensor<7xf64> {
  %y = math.log1p %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @log2(%x: tensor<7xf64> {gradcheck.range = [0.2, 2.0]}) -> tensor<7xf64> {
  %y = math.log2 %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @log10(%x: tensor<7xf64> {gradcheck.range = [0.2, 2.0]}) -> tensor<7xf64> {
  %y = math.log10 %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @sqrt(%x: tensor<7xf64> {gradcheck.range = [0.2, 2.0]}) -> tensor<7xf64> {
  %y = math.sqrt %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @cbrt(%x: tensor<7xf64> {gradcheck.range = [0.2, 2.0]}) -> tensor<7xf64> {
  %y = math.cbrt %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @rsqrt(%x: tensor<7xf64> {gradcheck.range = [0.2, 2.0]}) -> tensor<7xf64> {
  %y = math.rsqrt %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @tanh(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.tanh %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @sinh(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.sinh %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @cosh(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.cosh %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @sin(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.sin %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @cos(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.cos %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @tan(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.tan %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @atan(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.atan %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @asin(%x: tensor<7xf64> {gradcheck.range = [-0.8, 0.8]}) -> tensor<7xf64> {
  %y = math.asin %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @acos(%x: tensor<7xf64> {gradcheck.range = [-0.8, 0.8]}) -> tensor<7xf64> {
  %y = math.acos %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @asinh(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.asinh %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @acosh(%x: tensor<7xf64> {gradcheck.range = [1.2, 3.0]}) -> tensor<7xf64> {
  %y = math.acosh %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @atanh(%x: tensor<7xf64> {gradcheck.range = [-0.8, 0.8]}) -> tensor<7xf64> {
  %y = math.atanh %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @erf(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.erf %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @erfc(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.erfc %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @absf(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.absf %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @addf(%x: tensor<7xf64>, %w: tensor<7xf64> {gradcheck.range = [0.5, 2.0]}) -> tensor<7xf64> {
  %y = arith.addf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @subf(%x: tensor<7xf64>, %w: tensor<7xf64> {gradcheck.range = [0.5, 2.0]}) -> tensor<7xf64> {
  %y = arith.subf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @mulf(%x: tensor<7xf64>, %w: tensor<7xf64> {gradcheck.range = [0.5, 2.0]}) -> tensor<7xf64> {
  %y = arith.mulf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @divf(%x: tensor<7xf64>, %w: tensor<7xf64> {gradcheck.range = [0.5, 2.0]}) -> tensor<7xf64> {
  %y = arith.divf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @maximumf(%x: tensor<7xf64>, %w: tensor<7xf64>) -> tensor<7xf64> {
  %y = arith.maximumf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @minimumf(%x: tensor<7xf64>, %w: tensor<7xf64>) -> tensor<7xf64> {
  %y = arith.minimumf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @maxnumf(%x: tensor<7xf64>, %w: tensor<7xf64>) -> tensor<7xf64> {
  %y = arith.maxnumf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @minnumf(%x: tensor<7xf64>, %w: tensor<7xf64>) -> tensor<7xf64> {
  %y = arith.minnumf %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @negf(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = arith.negf %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @square(%x: tensor<7xf64>) -> tensor<7xf64> {
  %y = arith.mulf %x, %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @relu(%x: tensor<7xf64>) -> tensor<7xf64> {
  %z = arith.constant dense<0.0> : tensor<7xf64>
  %y = arith.maximumf %z, %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @fma(%x: tensor<7xf64>, %w: tensor<7xf64>, %b: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.fma %x, %w, %b : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @select(%x: tensor<7xf64>, %w: tensor<7xf64>) -> tensor<7xf64> {
  %c = arith.cmpf ogt, %x, %w : tensor<7xf64>
  %s = arith.mulf %x, %x : tensor<7xf64>
  %y = arith.select %c, %s, %w : tensor<7xi1>, tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @clampf(%x: tensor<7xf64>, %l: tensor<7xf64> {gradcheck.range = [-0.3, 0.1]}, %h: tensor<7xf64> {gradcheck.range = [0.2, 0.6]}) -> tensor<7xf64> {
  %y = math.clampf %x to [%l, %h] : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @copysign(%x: tensor<7xf64>, %s: tensor<7xf64>) -> tensor<7xf64> {
  %q = arith.mulf %x, %x : tensor<7xf64>
  %y = math.copysign %q, %s : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @atan2(%x: tensor<7xf64>, %w: tensor<7xf64> {gradcheck.range = [0.5, 2.0]}) -> tensor<7xf64> {
  %y = math.atan2 %x, %w : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @powf_0(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<0.0> : tensor<7xf64>
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @powf_1(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<1.0> : tensor<7xf64>
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @powf_2(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<2.0> : tensor<7xf64>
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @powf_3(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<3.0> : tensor<7xf64>
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @powf_2_5(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<2.5> : tensor<7xf64>
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @powf_minus1(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<-1.0> : tensor<7xf64>
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
// An exponent that is data, not a parameter.
func.func @powf_data(%x: tensor<7xf64> {fsdp.param = "x", gradcheck.range = [0.3, 2.0]}, %e: tensor<7xf64>) -> tensor<7xf64> {
  %y = math.powf %x, %e : tensor<7xf64>
  return %y : tensor<7xf64>
}
func.func @fpowi_0(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<0> : tensor<7xi32>
  %y = math.fpowi %x, %e : tensor<7xf64>, tensor<7xi32>
  return %y : tensor<7xf64>
}
func.func @fpowi_1(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<1> : tensor<7xi32>
  %y = math.fpowi %x, %e : tensor<7xf64>, tensor<7xi32>
  return %y : tensor<7xf64>
}
func.func @fpowi_2(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<2> : tensor<7xi32>
  %y = math.fpowi %x, %e : tensor<7xf64>, tensor<7xi32>
  return %y : tensor<7xf64>
}
func.func @fpowi_5(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<5> : tensor<7xi32>
  %y = math.fpowi %x, %e : tensor<7xf64>, tensor<7xi32>
  return %y : tensor<7xf64>
}
func.func @fpowi_minus2(%x: tensor<7xf64> {gradcheck.range = [0.3, 2.0]}) -> tensor<7xf64> {
  %e = arith.constant dense<-2> : tensor<7xi32>
  %y = math.fpowi %x, %e : tensor<7xf64>, tensor<7xi32>
  return %y : tensor<7xf64>
}
// Piecewise constant functions: the gradient is zero.
func.func @floors(%x: tensor<7xf64>) -> tensor<7xf64> {
  %a = math.floor %x : tensor<7xf64>
  %b = math.ceil %a : tensor<7xf64>
  %c = math.roundeven %b : tensor<7xf64>
  %d = math.round %c : tensor<7xf64>
  %e = math.trunc %d : tensor<7xf64>
  %y = arith.addf %e, %x : tensor<7xf64>
  return %y : tensor<7xf64>
}
// The tanh form of GELU, and SiLU.
func.func @gelu_silu(%x: tensor<7xf64>) -> tensor<7xf64> {
  %c = arith.constant dense<0.044715> : tensor<7xf64>
  %k = arith.constant dense<0.7978845608> : tensor<7xf64>
  %one = arith.constant dense<1.0> : tensor<7xf64>
  %three = arith.constant dense<3.0> : tensor<7xf64>
  %p = math.powf %x, %three : tensor<7xf64>
  %0 = arith.mulf %p, %c : tensor<7xf64>
  %1 = arith.addf %x, %0 : tensor<7xf64>
  %2 = arith.mulf %1, %k : tensor<7xf64>
  %3 = math.tanh %2 : tensor<7xf64>
  %4 = arith.addf %3, %one : tensor<7xf64>
  %5 = arith.mulf %x, %4 : tensor<7xf64>
  %n = arith.negf %5 : tensor<7xf64>
  %e = math.exp %n : tensor<7xf64>
  %d = arith.addf %e, %one : tensor<7xf64>
  %y = arith.divf %5, %d : tensor<7xf64>
  return %y : tensor<7xf64>
}
