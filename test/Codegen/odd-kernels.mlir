// Rare types and bodies; the image has no undefined symbols.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

// CHECK: @tr_bf16: {{.*}} ok
func.func private @tr_bf16(%x: tensor<37x50xbf16>, %y: tensor<50x37xbf16> {fsdp.out = 0}) -> tensor<50x37xbf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xbf16>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xbf16>) outs(%e : tensor<50x37xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    linalg.yield %a : bf16
  } -> tensor<50x37xbf16>
  return %t : tensor<50x37xbf16>
}

// CHECK: @tr_f16: {{.*}} ok
func.func private @tr_f16(%x: tensor<37x50xf16>, %y: tensor<50x37xf16> {fsdp.out = 0}) -> tensor<50x37xf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xf16>) outs(%e : tensor<50x37xf16>) {
  ^bb0(%a: f16, %o: f16):
    linalg.yield %a : f16
  } -> tensor<50x37xf16>
  return %t : tensor<50x37xf16>
}

// CHECK: @tr_i1: {{.*}} ok
func.func private @tr_i1(%x: tensor<37x50xi1>, %y: tensor<50x37xi1> {fsdp.out = 0}) -> tensor<50x37xi1> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xi1>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xi1>) outs(%e : tensor<50x37xi1>) {
  ^bb0(%a: i1, %o: i1):
    linalg.yield %a : i1
  } -> tensor<50x37xi1>
  return %t : tensor<50x37xi1>
}

// CHECK: @tr_i8: {{.*}} ok
func.func private @tr_i8(%x: tensor<37x50xi8>, %y: tensor<50x37xi8> {fsdp.out = 0}) -> tensor<50x37xi8> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xi8>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xi8>) outs(%e : tensor<50x37xi8>) {
  ^bb0(%a: i8, %o: i8):
    linalg.yield %a : i8
  } -> tensor<50x37xi8>
  return %t : tensor<50x37xi8>
}

// CHECK: @tr_i16: {{.*}} ok
func.func private @tr_i16(%x: tensor<37x50xi16>, %y: tensor<50x37xi16> {fsdp.out = 0}) -> tensor<50x37xi16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xi16>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xi16>) outs(%e : tensor<50x37xi16>) {
  ^bb0(%a: i16, %o: i16):
    linalg.yield %a : i16
  } -> tensor<50x37xi16>
  return %t : tensor<50x37xi16>
}

// CHECK: @tr_i64: {{.*}} ok
func.func private @tr_i64(%x: tensor<37x50xi64>, %y: tensor<50x37xi64> {fsdp.out = 0}) -> tensor<50x37xi64> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xi64>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xi64>) outs(%e : tensor<50x37xi64>) {
  ^bb0(%a: i64, %o: i64):
    linalg.yield %a : i64
  } -> tensor<50x37xi64>
  return %t : tensor<50x37xi64>
}

// CHECK: @tr_f64: {{.*}} ok
func.func private @tr_f64(%x: tensor<37x50xf64>, %y: tensor<50x37xf64> {fsdp.out = 0}) -> tensor<50x37xf64> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xf64>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xf64>) outs(%e : tensor<50x37xf64>) {
  ^bb0(%a: f64, %o: f64):
    linalg.yield %a : f64
  } -> tensor<50x37xf64>
  return %t : tensor<50x37xf64>
}

// CHECK: @empty: {{.*}} ok
func.func private @empty(%x: tensor<0x4xf32>, %y: tensor<0x4xf32> {fsdp.out = 0}) -> tensor<0x4xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<0x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<0x4xf32>
  return %t : tensor<0x4xf32>
}

// CHECK: @cond: {{.*}} ok
func.func private @cond(%x: tensor<5x33xf32>, %c: tensor<i1>, %n: tensor<5x33xi32> {fsdp.limit = 5}, %y: tensor<5x33xf32> {fsdp.out = 0}) -> tensor<5x33xf32> attributes {fsdp.kernel} {
  %b = tensor.extract %c[] : tensor<i1>
  %e = tensor.empty() : tensor<5x33xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %n : tensor<5x33xf32>, tensor<5x33xi32>) outs(%e : tensor<5x33xf32>) {
  ^bb0(%a: f32, %k: i32, %o: f32):
    %0 = math.fpowi %a, %k : f32, i32
    %1 = arith.select %b, %a, %0 : f32
    %i = linalg.index 0 : index
    %j = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %q = arith.index_cast %j : index to i32
    %r = arith.sitofp %q : i32 to f32
    %s = arith.addf %1, %r : f32
    linalg.yield %s : f32
  } -> tensor<5x33xf32>
  return %t : tensor<5x33xf32>
}

// CHECK: @iff: {{.*}} ok
func.func private @iff(%x: tensor<133xf32>, %y: tensor<133xf32> {fsdp.out = 0}) -> tensor<133xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<133xf32>
  %z = arith.constant 0.0 : f32
  %t = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%x : tensor<133xf32>) outs(%e : tensor<133xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.cmpf ogt, %a, %z : f32
    %s = scf.if %p -> f32 {
      %l = math.log %a : f32
      scf.yield %l : f32
    } else {
      scf.yield %z : f32
    }
    linalg.yield %s : f32
  } -> tensor<133xf32>
  return %t : tensor<133xf32>
}

// CHECK: @argmax: {{.*}} ok
func.func private @argmax(%x: tensor<9x133xf32>, %y: tensor<9xi64> {fsdp.out = 0}) -> tensor<9xi64> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<9xi64>
  %ef = tensor.empty() : tensor<9xf32>
  %z = arith.constant 0xFF800000 : f32
  %zi = arith.constant 0 : i64
  %f = linalg.fill ins(%z : f32) outs(%ef : tensor<9xf32>) -> tensor<9xf32>
  %g = linalg.fill ins(%zi : i64) outs(%e : tensor<9xi64>) -> tensor<9xi64>
  %t:2 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<9x133xf32>) outs(%f, %g : tensor<9xf32>, tensor<9xi64>) {
  ^bb0(%a: f32, %o: f32, %i: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %p = arith.cmpf ogt, %a, %o : f32
    %s = arith.select %p, %a, %o : f32
    %si = arith.select %p, %ki, %i : i64
    linalg.yield %s, %si : f32, i64
  } -> (tensor<9xf32>, tensor<9xi64>)
  return %t#1 : tensor<9xi64>
}

// CHECK: @mixed_bf16: {{.*}} ok
func.func private @mixed_bf16(%x: tensor<9x200xbf16>, %y: tensor<9x200xbf16> {fsdp.inout = 0}, %s: tensor<9xbf16> {fsdp.out = 1}) -> (tensor<9x200xbf16>, tensor<9xbf16>) attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<9xbf16>
  %f = linalg.fill ins(%z : bf16) outs(%e : tensor<9xbf16>) -> tensor<9xbf16>
  %q = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<9x200xbf16>) outs(%f : tensor<9xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %p = arith.maximumf %a, %o : bf16
    linalg.yield %p : bf16
  } -> tensor<9xbf16>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %q : tensor<9x200xbf16>, tensor<9xbf16>) outs(%y : tensor<9x200xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %p = arith.mulf %a, %b : bf16
    %r = arith.addf %p, %o : bf16
    linalg.yield %r : bf16
  } -> tensor<9x200xbf16>
  return %t, %q : tensor<9x200xbf16>, tensor<9xbf16>
}

// NaN stays NaN for every payload; the upper 16 bits of this NaN contain only the exponent.
// CHECK: @nan_to_bf16: {{.*}} ok
func.func private @nan_to_bf16(%x: tensor<64xi32> {fsdp.values = dense<0x7F800001> : tensor<64xi32>},
    %y: tensor<64xbf16> {fsdp.out = 0, fsdp.values = dense<0x7FC0> : tensor<64xbf16>}) -> tensor<64xbf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<64xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi32>) outs(%e : tensor<64xbf16>) {
  ^bb0(%a: i32, %o: bf16):
    %f = arith.bitcast %a : i32 to f32
    %t = arith.truncf %f : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64xbf16>
  return %r : tensor<64xbf16>
}
