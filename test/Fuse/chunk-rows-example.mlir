// The result of 64 x 64 is larger than the limit, so the product is computed in chunks of rows.
// RUN: fsdp-opt %s '--fsdp-chunk-rows=max-bytes=8192' | FileCheck %s

// CHECK-COUNT-2: linalg.contract {{.*}} -> tensor<32x64xf32>
// CHECK: tensor.concat dim(0)
// CHECK-NOT: linalg.contract

// DOC-BEFORE-BEGIN fsdp-chunk-rows
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @rows(%x: tensor<64x8xf32>, %w: tensor<64x8xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn]
      ins(%x, %w : tensor<64x8xf32>, tensor<64x8xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<64x64xf32>) outs(%f1 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %s : tensor<64xf32>
}
// DOC-BEFORE-END
