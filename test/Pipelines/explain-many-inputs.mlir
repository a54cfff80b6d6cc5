// A reduction of more than six inputs, such as the gradient of a batch norm: --explain once kept an
// iterator into a temporary vector of the inputs and crashed. The types are those of the first input.
// RUN: fsdp-compile %s --params=0-7 --batch=8=x --mesh=shard=1 --explain=dtypes | FileCheck %s
// CHECK: model {{ *}}reduction {{ *}}f32
#v = affine_map<(i, j) -> (j)>
#m = affine_map<(i, j) -> (i, j)>
module {
  func.func @loss(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>, %f: tensor<4xf32>, %g: tensor<4xf32>,
                  %h: tensor<4xf32>, %x: tensor<8x4xf32>, %ids: tensor<2xi64>) -> tensor<f32> {
    %zero = arith.constant 0.0 : f32
    %se = tensor.empty() : tensor<f32>
    %s0 = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
    %loss = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v, #v, #v, #v, #m, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%a, %b, %c, %d, %e, %f, %g, %h, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>)
      outs(%s0 : tensor<f32>) {
    ^bb0(%a0: f32, %b0: f32, %c0: f32, %d0: f32, %e0: f32, %f0: f32, %g0: f32, %h0: f32, %x0: f32, %o: f32):
      %1 = arith.mulf %a0, %b0 : f32
      %2 = arith.mulf %1, %c0 : f32
      %3 = arith.mulf %2, %d0 : f32
      %4 = arith.mulf %3, %e0 : f32
      %5 = arith.mulf %4, %f0 : f32
      %6 = arith.mulf %5, %g0 : f32
      %7 = arith.mulf %6, %h0 : f32
      %8 = arith.mulf %7, %x0 : f32
      %r = arith.addf %o, %8 : f32
      linalg.yield %r : f32
    } -> tensor<f32>
    return %loss : tensor<f32>
  }
}
