// A clamp of values below, inside, above and at its bounds, and of NaN, in kernel and oracle.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#v = affine_map<(i) -> (i)>

// CHECK: @f32: {{.*}} ok
func.func private @f32(
    %x: tensor<8xf32> {fsdp.values = dense<[-3.0, -1.0, 0.5, 2.0, 7.0, 0x7FC00000, 0x7F800000, 0xFF800000]> : tensor<8xf32>},
    %y: tensor<8xf32> {fsdp.out = 0, fsdp.values = dense<[-1.0, -1.0, 0.5, 2.0, 2.0, 0x7FC00000, 2.0, -1.0]> : tensor<8xf32>})
    -> tensor<8xf32> attributes {fsdp.kernel} {
  %lo = arith.constant -1.0 : f32
  %hi = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = math.clampf %a to [%lo, %hi] : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK: @f64: {{.*}} ok
func.func private @f64(
    %x: tensor<4xf64> {fsdp.values = dense<[-3.0, 0.25, 7.0, 0x7FF8000000000000]> : tensor<4xf64>},
    %y: tensor<4xf64> {fsdp.out = 0, fsdp.values = dense<[-1.0, 0.25, 2.0, 0x7FF8000000000000]> : tensor<4xf64>})
    -> tensor<4xf64> attributes {fsdp.kernel} {
  %lo = arith.constant -1.0 : f64
  %hi = arith.constant 2.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %c = math.clampf %a to [%lo, %hi] : f64
    linalg.yield %c : f64
  } -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// CHECK: @bf16: {{.*}} ok
func.func private @bf16(
    %x: tensor<4xbf16> {fsdp.values = dense<[-3.0, 0.25, 7.0, 0x7FC0]> : tensor<4xbf16>},
    %y: tensor<4xbf16> {fsdp.out = 0, fsdp.values = dense<[-1.0, 0.25, 2.0, 0x7FC0]> : tensor<4xbf16>})
    -> tensor<4xbf16> attributes {fsdp.kernel} {
  %lo = arith.constant -1.0 : bf16
  %hi = arith.constant 2.0 : bf16
  %e = tensor.empty() : tensor<4xbf16>
  %0 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : tensor<4xbf16>) outs(%e : tensor<4xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %c = math.clampf %a to [%lo, %hi] : bf16
    linalg.yield %c : bf16
  } -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
