// An fsdp.stop_gradient has the type of its input: narrow for an activation, f32 for a statistic.
// RUN: fsdp-opt %s --fsdp-apply-precision="param-dtype=bf16 output-dtype=bf16" | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
// CHECK-LABEL: func.func @loss(
// CHECK: linalg.contract
// CHECK: fsdp.stop_gradient %{{.*}} : tensor<4x8xbf16>
// CHECK: fsdp.stop_gradient %{{.*}} : tensor<4xf32>
func.func @loss(%w: tensor<6x8xf32> {fsdp.param = "w"}, %x: tensor<4x6xf32> {fsdp.batch = "x"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %er = tensor.empty() : tensor<4xf32>
  %es = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %p = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  %h = fsdp.stop_gradient %p : tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<4x8xf32>) outs(%fr : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %g = fsdp.stop_gradient %s : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #row, #none], iterator_types = ["reduction", "reduction"]} ins(%p, %h, %g : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>) outs(%fs : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.mulf %m, %c : f32
    %r = arith.addf %n, %o : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}
