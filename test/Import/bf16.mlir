// A bf16 model: matchers see through widening casts, and logits are widened for the loss.
// RUN: fsdp-opt %s --fsdp-import="attach-loss=cross_entropy" 2>/dev/null | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<9x4xbf16> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 2.000000e-02>, fsdp.param = "param.0"}
// CHECK-SAME: -> tensor<f32>
// CHECK: fsdp.gather_rows {{.*}} tensor<9x4xbf16>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<6x4xbf16>) outs(%{{.*}} : tensor<6xf32>)
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: linalg.contract {{.*}} tensor<6x4xbf16>, tensor<9x4xbf16>) outs(%{{.*}} : tensor<6x9xf32>)
// CHECK: fsdp.cross_entropy {{.*}} tensor<6x9xf32>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row3 = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(%emb: tensor<9x4xbf16>, %g: tensor<4xbf16>, %tok: tensor<2x3xi64>) -> tensor<2x3x9xbf16> {
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-6 : f64
  %n = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<2x3x4xbf16>
  %x = linalg.generic {indexing_maps = [#row3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%tok : tensor<2x3xi64>) outs(%e : tensor<2x3x4xbf16>) {
  ^bb0(%k: i64, %o: bf16):
    %i = arith.index_cast %k : i64 to index
    %j = linalg.index 2 : index
    %v = tensor.extract %emb[%i, %j] : tensor<9x4xbf16>
    linalg.yield %v : bf16
  } -> tensor<2x3x4xbf16>
  %xf = arith.extf %x : tensor<2x3x4xbf16> to tensor<2x3x4xf32>
  %er = tensor.empty() : tensor<2x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = linalg.generic {indexing_maps = [#id3, #row3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xf : tensor<2x3x4xf32>) outs(%z : tensor<2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %a : f32
    %r = arith.addf %q, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x3xf32>
  %h = linalg.generic {indexing_maps = [#id3, #row3, affine_map<(d0, d1, d2) -> (d2)>, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%xf, %s, %g : tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<4xbf16>) outs(%e : tensor<2x3x4xbf16>) {
  ^bb0(%a: f32, %b: f32, %w: bf16, %o: bf16):
    %m = arith.divf %b, %n : f32
    %ep = arith.truncf %eps : f64 to f32
    %c = arith.addf %m, %ep : f32
    %r = math.rsqrt %c : f32
    %y = arith.mulf %a, %r : f32
    %wf = arith.extf %w : bf16 to f32
    %yw = arith.mulf %y, %wf : f32
    %t = arith.truncf %yw : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<2x3x4xbf16>
  %hf = tensor.collapse_shape %h [[0, 1], [2]] : tensor<2x3x4xbf16> into tensor<6x4xbf16>
  %et = tensor.empty() : tensor<4x9xbf16>
  %wt = linalg.transpose ins(%emb : tensor<9x4xbf16>) outs(%et : tensor<4x9xbf16>) permutation = [1, 0]
  %el = tensor.empty() : tensor<6x9xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%el : tensor<6x9xf32>) -> tensor<6x9xf32>
  %l = linalg.matmul ins(%hf, %wt : tensor<6x4xbf16>, tensor<4x9xbf16>) outs(%fl : tensor<6x9xf32>) -> tensor<6x9xf32>
  %lb = arith.truncf %l : tensor<6x9xf32> to tensor<6x9xbf16>
  %logits = tensor.expand_shape %lb [[0, 1], [2]] output_shape [2, 3, 9] : tensor<6x9xbf16> into tensor<2x3x9xbf16>
  return %logits : tensor<2x3x9xbf16>
}
