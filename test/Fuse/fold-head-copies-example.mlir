// Attention reads V and writes O in the layout of projections.
// RUN: fsdp-opt %s --fsdp-fold-head-copies | FileCheck %s

// CHECK: %[[O:.*]] = fsdp.dispatch(%{{.*}}, %{{.*}}, %[[P:.*]]) inplace [-1] {kind = "attention"} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32>
// CHECK: %[[V:.*]] = linalg.generic
// CHECK: %[[A:.*]]:2 = fsdp.attention %{{.*}}, %{{.*}}, %[[V]] scale
// CHECK: linalg.generic {{.*}} ins(%[[A]]#0 :
// CHECK: fsdp.yield
// CHECK: return %[[O]]

// DOC-BEFORE-BEGIN fsdp-fold-head-copies
#heads = affine_map<(b, h, i, d) -> (b, h, i, d)>
#rows = affine_map<(b, h, i, d) -> (b, i, h, d)>
func.func @f(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %p: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %v = fsdp.dispatch(%p) inplace [-1] {kind = "copy"} : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32> {
  ^bb0(%x: tensor<2x8x4x16xf32>):
    %e = tensor.empty() : tensor<2x4x8x16xf32>
    %0 = linalg.generic {indexing_maps = [#rows, #heads], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x : tensor<2x8x4x16xf32>) outs(%e : tensor<2x4x8x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x8x16xf32>
    fsdp.yield %0 : tensor<2x4x8x16xf32>
  }
  %o = fsdp.dispatch(%q, %k, %v) inplace [-1] {kind = "attention"}
      : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  ^bb0(%a: tensor<2x4x8x16xf32>, %b: tensor<2x4x8x16xf32>, %c: tensor<2x4x8x16xf32>):
    %0:2 = fsdp.attention %a, %b, %c scale 0.25
        : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>, tensor<2x4x8xf32>
    fsdp.yield %0#0 : tensor<2x4x8x16xf32>
  }
  %t = fsdp.dispatch(%o) inplace [-1] {kind = "copy"} : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32> {
  ^bb0(%x: tensor<2x4x8x16xf32>):
    %e = tensor.empty() : tensor<2x8x4x16xf32>
    %0 = linalg.generic {indexing_maps = [#heads, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x : tensor<2x4x8x16xf32>) outs(%e : tensor<2x8x4x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x8x4x16xf32>
    fsdp.yield %0 : tensor<2x8x4x16xf32>
  }
  return %t : tensor<2x8x4x16xf32>
}
// DOC-BEFORE-END
