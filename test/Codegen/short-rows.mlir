// Rows shorter than a vector: lanes extend across rows, sums keep their order.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#v   = affine_map<(i) -> (i)>
#r   = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>

// CHECK: @short_rows_2: phases 321/64, shared 0, {{.*}} ok
func.func private @short_rows_2(%x: tensor<321x2xf32>, %y: tensor<321xf32> {fsdp.out = 0}, %m: tensor<321xf32> {fsdp.out = 1}) -> (tensor<321xf32>, tensor<321xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.25 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x2xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = math.fma %a, %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  %1 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x2xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.maximumf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  return %0, %1 : tensor<321xf32>, tensor<321xf32>
}

// CHECK: @short_rows_3: phases 321/1, shared 0, {{.*}} ok
func.func private @short_rows_3(%x: tensor<321x3xf32>, %y: tensor<321xf32> {fsdp.out = 0}, %m: tensor<321xf32> {fsdp.out = 1}) -> (tensor<321xf32>, tensor<321xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.25 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x3xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = math.fma %a, %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  %1 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x3xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.maximumf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  return %0, %1 : tensor<321xf32>, tensor<321xf32>
}

// CHECK: @short_rows_5: phases 321/1, shared 0, {{.*}} ok
func.func private @short_rows_5(%x: tensor<321x5xf32>, %y: tensor<321xf32> {fsdp.out = 0}, %m: tensor<321xf32> {fsdp.out = 1}) -> (tensor<321xf32>, tensor<321xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.25 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x5xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = math.fma %a, %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  %1 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x5xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.maximumf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  return %0, %1 : tensor<321xf32>, tensor<321xf32>
}

// CHECK: @short_rows_8: phases 321/64, shared 0, {{.*}} ok
func.func private @short_rows_8(%x: tensor<321x8xf32>, %y: tensor<321xf32> {fsdp.out = 0}, %m: tensor<321xf32> {fsdp.out = 1}) -> (tensor<321xf32>, tensor<321xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.25 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x8xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = math.fma %a, %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  %1 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x8xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.maximumf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  return %0, %1 : tensor<321xf32>, tensor<321xf32>
}

// CHECK: @short_rows_13: phases 321/1, shared 0, {{.*}} ok
func.func private @short_rows_13(%x: tensor<321x13xf32>, %y: tensor<321xf32> {fsdp.out = 0}, %m: tensor<321xf32> {fsdp.out = 1}) -> (tensor<321xf32>, tensor<321xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.25 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x13xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = math.fma %a, %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  %1 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x13xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.maximumf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<321xf32>
  return %0, %1 : tensor<321xf32>, tensor<321xf32>
}

// CHECK: @softmax_8: phases 321/64, shared 0, {{.*}} ok
func.func private @softmax_8(%x: tensor<321x8xf32>, %y: tensor<321x8xf32> {fsdp.out = 0}) -> tensor<321x8xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %ex = tensor.empty() : tensor<321x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %m = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x8xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.maximumf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<321xf32>
  %p = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<321x8xf32>, tensor<321xf32>) outs(%ex : tensor<321x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<321x8xf32>
  %s = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<321x8xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %t: f32):
    %0 = arith.addf %a, %t : f32
    linalg.yield %0 : f32
  } -> tensor<321xf32>
  %q = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]} ins(%p, %s : tensor<321x8xf32>, tensor<321xf32>) outs(%ex : tensor<321x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<321x8xf32>
  return %q : tensor<321x8xf32>
}

// CHECK: @softmax_6: phases 321/1, shared 0, {{.*}} ok
func.func private @softmax_6(%x: tensor<321x6xf32>, %y: tensor<321x6xf32> {fsdp.out = 0}) -> tensor<321x6xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<321xf32>
  %ex = tensor.empty() : tensor<321x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %g = linalg.fill ins(%n : f32) outs(%e : tensor<321xf32>) -> tensor<321xf32>
  %m = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<321x6xf32>) outs(%g : tensor<321xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.maximumf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<321xf32>
  %p = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<321x6xf32>, tensor<321xf32>) outs(%ex : tensor<321x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<321x6xf32>
  %s = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<321x6xf32>) outs(%f : tensor<321xf32>) {
  ^bb0(%a: f32, %t: f32):
    %0 = arith.addf %a, %t : f32
    linalg.yield %0 : f32
  } -> tensor<321xf32>
  %q = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]} ins(%p, %s : tensor<321x6xf32>, tensor<321xf32>) outs(%ex : tensor<321x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<321x6xf32>
  return %q : tensor<321x6xf32>
}

// Rows that are computed one at a time give the same bits.
// CHECK: @same_bits: phases 128/64 32/1, shared 0, {{.*}} ok
func.func private @same_bits(%x: tensor<128x8xf32>, %s: tensor<128xf32> {fsdp.out = 0}, %t: tensor<32xf32> {fsdp.out = 1}, %d: tensor<32xf32> {fsdp.out = 2, fsdp.values = dense<0.0> : tensor<32xf32>}) -> (tensor<128xf32>, tensor<32xf32>, tensor<32xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.1 : f32
  %e = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<128x8xf32>) outs(%f : tensor<128xf32>) {
  ^bb0(%a: f32, %c: f32):
    %q = arith.addf %a, %c : f32
    linalg.yield %q : f32
  } -> tensor<128xf32>
  %few = tensor.extract_slice %x[16, 0] [32, 8] [1, 1] : tensor<128x8xf32> to tensor<32x8xf32>
  %e1 = tensor.empty() : tensor<32xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<32xf32>) -> tensor<32xf32>
  %1 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%few : tensor<32x8xf32>) outs(%f1 : tensor<32xf32>) {
  ^bb0(%a: f32, %c: f32):
    %q = arith.addf %a, %c : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  %part = tensor.extract_slice %0[16] [32] [1] : tensor<128xf32> to tensor<32xf32>
  %2 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]} ins(%part, %1 : tensor<32xf32>, tensor<32xf32>) outs(%e1 : tensor<32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %q = arith.subf %a, %c : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  return %0, %1, %2 : tensor<128xf32>, tensor<32xf32>, tensor<32xf32>
}

// One tensor, read at several strides.
// CHECK: @every_second_and_fourth: phases 64/64, shared 0, {{.*}} ok
func.func private @every_second_and_fourth(%x: tensor<272xf32>, %y: tensor<64xf32> {fsdp.out = 0}) -> tensor<64xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<64xf32>
  %a = tensor.extract_slice %x[4] [64] [2] : tensor<272xf32> to tensor<64xf32>
  %b = tensor.extract_slice %x[5] [64] [4] : tensor<272xf32> to tensor<64xf32>
  %c = tensor.extract_slice %x[6] [64] [4] : tensor<272xf32> to tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v, #v], iterator_types = ["parallel"]} ins(%a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
    %s = arith.subf %p, %q : f32
    %t = arith.mulf %s, %r : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
