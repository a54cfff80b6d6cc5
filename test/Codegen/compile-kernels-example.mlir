// The attribute gives a kernel's scratch memory in bytes: the shared part, then the part per worker.
// RUN: fsdp-opt %s --fsdp-compile-kernels=target-cpu=x86-64-v3 | FileCheck %s

// CHECK: module attributes {fsdp.kernel_scratch = {k = array<i64: 0, {{[1-9][0-9]*}}>}}

// DOC-BEFORE-BEGIN fsdp-compile-kernels
func.func private @k(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>,
                     %c: tensor<64x64xf32> {fsdp.out = 0 : i64}) -> tensor<64x64xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
// DOC-BEFORE-END
