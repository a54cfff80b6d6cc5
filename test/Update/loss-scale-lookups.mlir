// RUN: fsdp-opt %s --fsdp-add-step-block --cse | FileCheck %s

// A lookup out of range says nothing about the gradients, so the step keeps the loss scale and the count of steps since its last change.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 1 x 64 : f32 reshard false [#fsdp.param<"a", tensor<64xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[BLOCK:[a-z0-9]+]]: tensor<16xf32> {fsdp.block}
// CHECK:         %[[SCALING:.*]]:3 = linalg.generic
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[SCALING]]#0, %[[SCALING]]#1, {{.*}}) outs(%[[BLOCK]] : tensor<16xf32>)
// CHECK-NEXT:    ^bb0(%in: f32, %{{[a-z0-9_]+}}: f32, %[[SCALE:[a-z0-9_]+]]: f32, %[[SINCE:[a-z0-9_]+]]: f32, {{.*}} %[[FAILED:[a-z0-9_]+]]: f32, %{{[a-z0-9_]+}}: f32):
// CHECK:           %[[NEXT:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK:           %[[KEEPS:.*]] = arith.cmpf une, %[[FAILED]], %{{.*}} : f32
// CHECK-NEXT:      %[[SCALE2:.*]] = arith.select %[[KEEPS]], %[[SCALE]], %{{.*}} : f32
// CHECK-NEXT:      %[[SINCE2:.*]] = arith.select %[[KEEPS]], %[[SINCE]], %{{.*}} : f32
// CHECK:           arith.select %{{.*}}, %[[SCALE2]], %{{.*}} : f32
// CHECK:           arith.select %{{.*}}, %[[SINCE2]], %{{.*}} : f32
func.func @step(%a: tensor<64xf32> {fsdp.unit = @a}, %x: tensor<3xi64> {fsdp.batch = "tokens"}, %seed: tensor<f32> {fsdp.loss_scale})
    -> (tensor<f32>, tensor<64xf32>, tensor<i64> {fsdp.lookup = {extent = 8 : i64, location = "m.mlir:1:2", what = "rows of the table"}})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f32>
  %e = tensor.empty() : tensor<64xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%seed : tensor<f32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  %c = tensor.extract_slice %x[0] [1] [1] : tensor<3xi64> to tensor<i64>
  return %l, %g, %c : tensor<f32>, tensor<64xf32>, tensor<i64>
}
