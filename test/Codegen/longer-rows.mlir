// Results whose rows are longer than their computed part, from a map, a loss and a contraction; and contractions that read such tensors.
// RUN: fsdp-kernel-test %s | FileCheck %s --implicit-check-not=FAILED
// RUN: fsdp-kernel-test %s --device=emulate --target=sm_80 | FileCheck %s --implicit-check-not=FAILED
// RUN: fsdp-kernel-test %s --device=emulate --target=sm_90a | FileCheck %s --implicit-check-not=FAILED
// The contraction still uses tiles, so its launch has shared memory; it uses wgmma if the factor has such rows.
// RUN: fsdp-kernel-test %s --emit=ptx --target=sm_90a | grep -A1 '^// @' | FileCheck %s --check-prefix=PTX
// PTX: @map: 2 bindings, 0 bytes of scratch
// PTX: @product: 3 bindings, 0 bytes of scratch
// PTX-NEXT: launch product: {{[0-9]+}} blocks of {{[0-9]+}} threads, {{[1-9][0-9]+}} bytes of shared memory
// PTX: @factor: 3 bindings, 0 bytes of scratch
// PTX-NEXT: launch factor: {{[0-9]+}} blocks of 384 threads, 2{{[0-9]+}} bytes of shared memory

#id = affine_map<(d0, d1) -> (d0, d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK: @map: {{.*}}: ok
func.func private @map(%x: tensor<24x1001xf32>, %out: tensor<24x1008xbf16> {fsdp.out = 0}) -> tensor<24x1008xbf16> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<24x1001xbf16>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<24x1001xf32>) outs(%e : tensor<24x1001xbf16>) {
  ^bb0(%a: f32, %b: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<24x1001xbf16>
  %p = tensor.empty() : tensor<24x1008xbf16>
  %r = tensor.insert_slice %c into %p[0, 0] [24, 1001] [1, 1] : tensor<24x1001xbf16> into tensor<24x1008xbf16>
  return %r : tensor<24x1008xbf16>
}

// CHECK: @product: {{.*}}: ok
func.func private @product(%x: tensor<256x64xbf16>, %w: tensor<1001x64xbf16>, %out: tensor<256x1008xbf16> {fsdp.out = 0}) -> tensor<256x1008xbf16>
    attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x1001xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x1001xf32>) -> tensor<256x1001xf32>
  %c = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<256x64xbf16>, tensor<1001x64xbf16>) outs(%f : tensor<256x1001xf32>) -> tensor<256x1001xf32>
  %n = tensor.empty() : tensor<256x1001xbf16>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<256x1001xf32>) outs(%n : tensor<256x1001xbf16>) {
  ^bb0(%a: f32, %b: bf16):
    %h = arith.truncf %a : f32 to bf16
    linalg.yield %h : bf16
  } -> tensor<256x1001xbf16>
  %p = tensor.empty() : tensor<256x1008xbf16>
  %r = tensor.insert_slice %t into %p[0, 0] [256, 1001] [1, 1] : tensor<256x1001xbf16> into tensor<256x1008xbf16>
  return %r : tensor<256x1008xbf16>
}

// CHECK: @factor: {{.*}}: ok
func.func private @factor(%x: tensor<256x768xbf16>, %z: tensor<256x1008xbf16>, %sum: tensor<1001x768xf32> {fsdp.inout = 0}) -> tensor<1001x768xf32>
    attributes {fsdp.kernel} {
  %s = tensor.extract_slice %z[0, 0] [256, 1001] [1, 1] : tensor<256x1008xbf16> to tensor<256x1001xbf16>
  %c = linalg.contract indexing_maps = [#kn, #km, #mn] ins(%x, %s : tensor<256x768xbf16>, tensor<256x1001xbf16>) outs(%sum : tensor<1001x768xf32>) -> tensor<1001x768xf32>
  return %c : tensor<1001x768xf32>
}
