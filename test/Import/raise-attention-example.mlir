// Two products with a softmax between them become one fsdp.attention.
// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse | FileCheck %s

// CHECK: fsdp.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00
// CHECK-NOT: linalg.contract

// DOC-BEFORE-BEGIN fsdp-raise-attention
#qk = affine_map<(b, h, m, n, d) -> (b, h, m, d)>
#kn = affine_map<(b, h, m, n, d) -> (b, h, n, d)>
#mn = affine_map<(b, h, m, n, d) -> (b, h, m, n)>
func.func @f(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#qk, #kn, #mn]
      ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%f : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x4x6x6xf32>) outs(%e : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %eo = tensor.empty() : tensor<2x4x6x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linalg.contract indexing_maps = [#mn, #kn, #qk]
      ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%fo : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}
// DOC-BEFORE-END
