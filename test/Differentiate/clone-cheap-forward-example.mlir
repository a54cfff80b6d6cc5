// The backward reads %x and %m anyway, so it computes the map %n again instead of loading it.
// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse --fsdp-clone-cheap-forward | FileCheck %s

// CHECK: %[[AGAIN:.*]] = linalg.generic {{.*}} attrs = {fsdp.recompute}
// CHECK: linalg.generic {{.*}} ins(%[[AGAIN]], %{{.*}} : tensor<4x8xf32>, tensor<f32>)

// DOC-BEFORE-BEGIN fsdp-clone-cheap-forward
// DOC-SETUP: --fsdp-add-backward --canonicalize --cse
// DOC-ARGS: --fsdp-clone-cheap-forward
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
func.func @loss(%w: tensor<4x8xf32> {fsdp.param = "w"}, %x: tensor<4x8xf32>, %m: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id, #id, #none], iterator_types = ["reduction", "reduction"]}
      ins(%n, %w : tensor<4x8xf32>, tensor<4x8xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
// DOC-BEFORE-END
