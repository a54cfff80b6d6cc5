// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-normalise-ops))' | FileCheck %s

// The bounds of a clamp are not swapped.
// CHECK-LABEL: func.func @clamp
// CHECK:         ^bb0(%[[X:.*]]: f32, %[[LOW:.*]]: f32, %[[HIGH:.*]]: f32, %{{.*}}: f32)
// CHECK:           %[[RAISED:.*]] = arith.maximumf %[[X]], %[[LOW]]
// CHECK:           arith.minimumf %[[RAISED]], %[[HIGH]]
#id = affine_map<(i) -> (i)>
func.func @clamp(%x: tensor<4xf32>, %low: tensor<4xf32>, %high: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %low, %high : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %l: f32, %h: f32, %o: f32):
    %0 = math.clampf %a to [%l, %h] : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
