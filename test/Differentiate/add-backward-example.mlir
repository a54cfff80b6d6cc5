// The gradient of a dot product with respect to the parameter is the other factor of the product.
// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse | FileCheck %s

// CHECK: func.func @loss(%{{.*}}: tensor<4xf32> {fsdp.param = "w"}, %[[X:.*]]: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32> {fsdp.gradient = 0 : i64})
// CHECK: %[[G:.*]] = linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<4xf32>, tensor<f32>)
// CHECK: return %{{.*}}, %[[G]]

// DOC-BEFORE-BEGIN fsdp-add-backward
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}, %x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%w, %x : tensor<4xf32>, tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
// DOC-BEFORE-END
