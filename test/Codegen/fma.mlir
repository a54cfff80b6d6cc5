// math.fma rounds once, in kernel and oracle, in every type and context: x^2 - z where z is the rounded x^2. 16-bit floats are computed
// in f32.
// RUN: fsdp-kernel-test %s --target-cpu=%cpu --also-cpu=x86-64-v3 | FileCheck %s
// RUN: %if avx512bf16 %{ fsdp-kernel-test %s --widen=false | FileCheck %s %}

#v   = affine_map<(i) -> (i)>
#r   = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
#col = affine_map<(i, k) -> (k)>

// CHECK-DAG: @f32: {{.*}} ok
func.func private @f32(%x: tensor<67xf32> {fsdp.values = dense<0x3F800800> : tensor<67xf32>},
    %z: tensor<67xf32> {fsdp.values = dense<0x3F801000> : tensor<67xf32>},
    %y: tensor<67xf32> {fsdp.out = 0, fsdp.values = dense<0x33800000> : tensor<67xf32>}) -> tensor<67xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<67xf32>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %z : tensor<67xf32>, tensor<67xf32>) outs(%e : tensor<67xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %n = arith.negf %c : f32
    %f = math.fma %a, %a, %n : f32
    linalg.yield %f : f32
  } -> tensor<67xf32>
  return %0 : tensor<67xf32>
}

// CHECK-DAG: @f64: {{.*}} ok
func.func private @f64(%x: tensor<67xf64> {fsdp.values = dense<0x3FF0000002000000> : tensor<67xf64>},
    %z: tensor<67xf64> {fsdp.values = dense<0x3FF0000004000000> : tensor<67xf64>},
    %y: tensor<67xf64> {fsdp.out = 0, fsdp.values = dense<0x3C90000000000000> : tensor<67xf64>}) -> tensor<67xf64> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<67xf64>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %z : tensor<67xf64>, tensor<67xf64>) outs(%e : tensor<67xf64>) {
  ^bb0(%a: f64, %c: f64, %o: f64):
    %n = arith.negf %c : f64
    %f = math.fma %a, %a, %n : f64
    linalg.yield %f : f64
  } -> tensor<67xf64>
  return %0 : tensor<67xf64>
}

// CHECK-DAG: @bf16: {{.*}} ok
func.func private @bf16(%x: tensor<67xbf16> {fsdp.values = dense<0x3F81> : tensor<67xbf16>},
    %z: tensor<67xbf16> {fsdp.values = dense<0x3F82> : tensor<67xbf16>},
    %y: tensor<67xbf16> {fsdp.out = 0, fsdp.values = dense<0x3880> : tensor<67xbf16>}) -> tensor<67xbf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<67xbf16>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %z : tensor<67xbf16>, tensor<67xbf16>) outs(%e : tensor<67xbf16>) {
  ^bb0(%a: bf16, %c: bf16, %o: bf16):
    %n = arith.negf %c : bf16
    %f = math.fma %a, %a, %n : bf16
    linalg.yield %f : bf16
  } -> tensor<67xbf16>
  return %0 : tensor<67xbf16>
}

// CHECK-DAG: @f16: {{.*}} ok
func.func private @f16(%x: tensor<67xf16> {fsdp.values = dense<0x3C01> : tensor<67xf16>},
    %z: tensor<67xf16> {fsdp.values = dense<0x3C02> : tensor<67xf16>},
    %y: tensor<67xf16> {fsdp.out = 0, fsdp.values = dense<0x0010> : tensor<67xf16>}) -> tensor<67xf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<67xf16>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %z : tensor<67xf16>, tensor<67xf16>) outs(%e : tensor<67xf16>) {
  ^bb0(%a: f16, %c: f16, %o: f16):
    %n = arith.negf %c : f16
    %f = math.fma %a, %a, %n : f16
    linalg.yield %f : f16
  } -> tensor<67xf16>
  return %0 : tensor<67xf16>
}

// A sum along rows: the lanes of fma, then a tree of sums.
// CHECK-DAG: @along_rows: phases 19/1, shared 0{{.*}} ok
func.func private @along_rows(%x: tensor<19x203xf32>, %w: tensor<19x203xf32>, %y: tensor<19xf32> {fsdp.out = 0})
    -> tensor<19xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<19xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<19xf32>) -> tensor<19xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<19x203xf32>, tensor<19x203xf32>) outs(%f : tensor<19xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %n = arith.negf %a : f32
    %t = math.fma %n, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<19xf32>
  return %0 : tensor<19xf32>
}

// A sum over rows, in blocks.
// CHECK-DAG: @over_rows: phases 6/1 37/64{{.*}} ok
func.func private @over_rows(%x: tensor<203x37xf32>, %w: tensor<203x37xf32>, %y: tensor<37xf32> {fsdp.out = 0})
    -> tensor<37xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %0 = linalg.generic {indexing_maps = [#r, #r, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x, %w : tensor<203x37xf32>, tensor<203x37xf32>) outs(%f : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %n = arith.negf %a : f32
    %t = math.fma %n, %b, %s : f32
    linalg.yield %t : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// After a contraction.
// CHECK-DAG: @behind_contraction: {{.*}} ok
func.func private @behind_contraction(%x: tensor<20x33xf32>, %w: tensor<33x70xf32>, %b: tensor<70xf32>,
    %y: tensor<20x70xf32> {fsdp.out = 0}) -> tensor<20x70xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<20x70xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<20x70xf32>) -> tensor<20x70xf32>
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<20x33xf32>, tensor<33x70xf32>) outs(%f : tensor<20x70xf32>) -> tensor<20x70xf32>
  %1 = linalg.generic {indexing_maps = [#r, #col, #r], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<20x70xf32>, tensor<70xf32>) outs(%e : tensor<20x70xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = math.fma %a, %half, %c : f32
    linalg.yield %s : f32
  } -> tensor<20x70xf32>
  return %1 : tensor<20x70xf32>
}
