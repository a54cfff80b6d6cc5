// Maps whose inputs and results are contiguous along different dimensions.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r   = affine_map<(i, k) -> (i, k)>
#t   = affine_map<(i, k) -> (k, i)>
#h   = affine_map<(h, i, k) -> (h, i, k)>
#ht  = affine_map<(h, i, k) -> (h, k, i)>
#hc  = affine_map<(h, i, k) -> (i)>

// CHECK: @turn_f32: phases 4/1, shared 0, {{.*}} ok
func.func private @turn_f32(%x: tensor<37x50xf32>, %y: tensor<50x37xf32> {fsdp.out = 0}) -> tensor<50x37xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xf32>
  %0 = linalg.generic {indexing_maps = [#t, #r], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<37x50xf32>) outs(%e : tensor<50x37xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<50x37xf32>
  return %0 : tensor<50x37xf32>
}

// CHECK: @turn_bf16: phases 4/1, shared 0, {{.*}} ok
func.func private @turn_bf16(%x: tensor<37x50xbf16>, %y: tensor<50x37xbf16> {fsdp.out = 0}) -> tensor<50x37xbf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xbf16>
  %0 = linalg.generic {indexing_maps = [#t, #r], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<37x50xbf16>) outs(%e : tensor<50x37xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    linalg.yield %a : bf16
  } -> tensor<50x37xbf16>
  return %0 : tensor<50x37xbf16>
}

// CHECK: @turn_f64: phases 4/1, shared 0, {{.*}} ok
func.func private @turn_f64(%x: tensor<37x50xf64>, %y: tensor<50x37xf64> {fsdp.out = 0}) -> tensor<50x37xf64> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xf64>
  %0 = linalg.generic {indexing_maps = [#t, #r], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<37x50xf64>) outs(%e : tensor<50x37xf64>) {
  ^bb0(%a: f64, %o: f64):
    linalg.yield %a : f64
  } -> tensor<50x37xf64>
  return %0 : tensor<50x37xf64>
}

// CHECK: @turn_i8: phases 4/1, shared 0, {{.*}} ok
func.func private @turn_i8(%x: tensor<37x50xi8>, %y: tensor<50x37xi8> {fsdp.out = 0}) -> tensor<50x37xi8> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xi8>
  %0 = linalg.generic {indexing_maps = [#t, #r], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<37x50xi8>) outs(%e : tensor<50x37xi8>) {
  ^bb0(%a: i8, %o: i8):
    linalg.yield %a : i8
  } -> tensor<50x37xi8>
  return %0 : tensor<50x37xi8>
}

// Arithmetic before the transposition, a middle dimension, two results.
// CHECK: @turn_and_scale: phases 12/1, shared 0, {{.*}} ok
func.func private @turn_and_scale(%x: tensor<3x37x50xf32>, %b: tensor<50xf32>, %y: tensor<3x50x37xf32> {fsdp.out = 0}, %z: tensor<3x50x37xf32> {fsdp.out = 1}) -> (tensor<3x50x37xf32>, tensor<3x50x37xf32>) attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<3x50x37xf32>
  %half = arith.constant 0.5 : f32
  %0:2 = linalg.generic {indexing_maps = [#ht, #hc, #h, #h], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %b : tensor<3x37x50xf32>, tensor<50xf32>) outs(%e, %e : tensor<3x50x37xf32>, tensor<3x50x37xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32, %o1: f32):
    %0 = math.fma %a, %half, %c : f32
    %1 = math.exp %0 : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<3x50x37xf32>, tensor<3x50x37xf32>)
  return %0#0, %0#1 : tensor<3x50x37xf32>, tensor<3x50x37xf32>
}
