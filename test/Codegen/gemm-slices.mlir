// In AMX tiles, a product of two f32 consists of six products of bf16 slices. Products of integers with few bits, and of any
// number with 1, 0 or a power of two, are exact. Each of the six products is needed by one of these results.
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --only=exact_left --tolerance=0 | FileCheck %s --check-prefix=LEFT
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --only=exact_right --tolerance=0 | FileCheck %s --check-prefix=RIGHT
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --only=middle --tolerance=0 | FileCheck %s --check-prefix=MIDDLE
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --only=nan --tolerance=0 | FileCheck %s --check-prefix=NAN
// For 3,000 values of k, in several blocks and slabs, the error is less than half of the error of fused multiply-adds (5.3e-6).
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --only=long --tolerance=2.6e-6 | FileCheck %s --check-prefix=LONG
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --only=mixed | FileCheck %s --check-prefix=MIXED

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>

// All 24 bits of the left factor are ones.
// LEFT: @exact_left: {{.*}} error 0.0e+00: ok
func.func private @exact_left(%a: tensor<19x1xf32> {fsdp.values = dense<0x3FFFFFFF> : tensor<19x1xf32>},
    %b: tensor<1x35xf32> {fsdp.values = dense<-2.0> : tensor<1x35xf32>},
    %c: tensor<19x35xf32> {fsdp.out = 0}) -> tensor<19x35xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<19x35xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<19x35xf32>) -> tensor<19x35xf32>
  %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<19x1xf32>, tensor<1x35xf32>)
      outs(%init : tensor<19x35xf32>) -> tensor<19x35xf32>
  return %0 : tensor<19x35xf32>
}

// RIGHT: @exact_right: {{.*}} error 0.0e+00: ok
func.func private @exact_right(%a: tensor<1x19xf32> {fsdp.values = dense<0.5> : tensor<1x19xf32>},
    %b: tensor<35x1xf32> {fsdp.values = dense<0x3F812345> : tensor<35x1xf32>},
    %c: tensor<19x35xf32> {fsdp.out = 0}) -> tensor<19x35xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<19x35xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<19x35xf32>) -> tensor<19x35xf32>
  %0 = linalg.contract indexing_maps = [#km, #nk, #mn] ins(%a, %b : tensor<1x19xf32>, tensor<35x1xf32>)
      outs(%init : tensor<19x35xf32>) -> tensor<19x35xf32>
  return %0 : tensor<19x35xf32>
}

// 4,095 squared has 24 bits. Both factors have two slices.
// MIDDLE: @middle: {{.*}} error 0.0e+00: ok
func.func private @middle(%a: tensor<19x1xf32> {fsdp.values = dense<4095.0> : tensor<19x1xf32>},
    %b: tensor<1x35xf32> {fsdp.values = dense<4095.0> : tensor<1x35xf32>},
    %c: tensor<19x35xf32> {fsdp.out = 0}) -> tensor<19x35xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<19x35xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<19x35xf32>) -> tensor<19x35xf32>
  %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<19x1xf32>, tensor<1x35xf32>)
      outs(%init : tensor<19x35xf32>) -> tensor<19x35xf32>
  return %0 : tensor<19x35xf32>
}

// A NaN whose payload overflows if it is rounded as a number is still a NaN.
// NAN: @nan: {{.*}} error 0.0e+00: ok
func.func private @nan(%a: tensor<1x19xf32> {fsdp.values = dense<1.0> : tensor<1x19xf32>},
    %b: tensor<35x1xf32> {fsdp.values = dense<0x7FFFFFFF> : tensor<35x1xf32>},
    %c: tensor<19x35xf32> {fsdp.out = 0}) -> tensor<19x35xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<19x35xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<19x35xf32>) -> tensor<19x35xf32>
  %0 = linalg.contract indexing_maps = [#km, #nk, #mn] ins(%a, %b : tensor<1x19xf32>, tensor<35x1xf32>)
      outs(%init : tensor<19x35xf32>) -> tensor<19x35xf32>
  return %0 : tensor<19x35xf32>
}

// LONG: @long: {{.*}} ok
func.func private @long(%a: tensor<70x3000xf32>, %b: tensor<100x3000xf32>, %c: tensor<70x100xf32> {fsdp.out = 0})
    -> tensor<70x100xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<70x100xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<70x100xf32>) -> tensor<70x100xf32>
  %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<70x3000xf32>, tensor<100x3000xf32>)
      outs(%init : tensor<70x100xf32>) -> tensor<70x100xf32>
  return %0 : tensor<70x100xf32>
}

// If one factor is f32, both factors have slices.
// MIXED: @mixed: {{.*}} ok
func.func private @mixed(%a: tensor<33x40xbf16>, %b: tensor<40x50xf32>, %c: tensor<33x50xf32> {fsdp.out = 0})
    -> tensor<33x50xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<33x50xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<33x50xf32>) -> tensor<33x50xf32>
  %wide = tensor.empty() : tensor<33x40xf32>
  %ext = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<33x40xbf16>) outs(%wide : tensor<33x40xf32>) {
  ^bb0(%x: bf16, %o: f32):
    %y = arith.extf %x : bf16 to f32
    linalg.yield %y : f32
  } -> tensor<33x40xf32>
  %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%ext, %b : tensor<33x40xf32>, tensor<40x50xf32>)
      outs(%init : tensor<33x50xf32>) -> tensor<33x50xf32>
  return %0 : tensor<33x50xf32>
}
