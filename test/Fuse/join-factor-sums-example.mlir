// The sum of the rows of a factor becomes a result of the contraction's dispatch.
// RUN: fsdp-opt %s --fsdp-join-factor-sums | FileCheck %s

// CHECK: %[[D:.*]]:2 = fsdp.dispatch(%{{.*}}, %{{.*}}) inplace [-1, -1] {kind = "contract"}
// CHECK: linalg.contract
// CHECK: linalg.generic
// CHECK: fsdp.yield
// CHECK: return %[[D]]#0, %[[D]]#1

// DOC-BEFORE-BEGIN fsdp-join-factor-sums
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<16x8xbf16>, %dy: tensor<16x4xbf16>, %w: tensor<8x4xf32>, %b: tensor<4xf32>)
    -> (tensor<8x4xf32>, tensor<4xf32>) {
  %dw = fsdp.dispatch(%x, %dy, %w) inplace [-1] {kind = "contract"}
      : (tensor<16x8xbf16>, tensor<16x4xbf16>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%p: tensor<16x8xbf16>, %q: tensor<16x4xbf16>, %o: tensor<8x4xf32>):
    %0 = linalg.contract indexing_maps = [#km, #kn, #mn]
        ins(%p, %q : tensor<16x8xbf16>, tensor<16x4xbf16>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %0 : tensor<8x4xf32>
  }
  %db = fsdp.dispatch(%dy, %b) inplace [-1] {kind = "column"}
      : (tensor<16x4xbf16>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%q: tensor<16x4xbf16>, %o: tensor<4xf32>):
    %0 = linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
        ins(%q : tensor<16x4xbf16>) outs(%o : tensor<4xf32>) {
    ^bb0(%e: bf16, %s: f32):
      %1 = arith.extf %e : bf16 to f32
      %2 = arith.addf %s, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<4xf32>
    fsdp.yield %0 : tensor<4xf32>
  }
  return %dw, %db : tensor<8x4xf32>, tensor<4xf32>
}
// DOC-BEFORE-END
