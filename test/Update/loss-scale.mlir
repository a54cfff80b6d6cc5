// RUN: fsdp-opt %s --fsdp-add-step-block=clip-grad-norm=0.5 --cse | FileCheck %s --check-prefixes=CHECK,DYNAMIC
// RUN: fsdp-opt %s --fsdp-add-step-block="loss-scale=128 clip-grad-norm=0.5" --cse | FileCheck %s --check-prefixes=CHECK,FIXED
// RUN: not fsdp-opt %s --fsdp-add-step-block=loss-scale=-1 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fsdp-opt %s --fsdp-add-step-block=loss-scale=much 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fsdp-opt %s --fsdp-add-step-block=loss-scale-init=0 2>&1 | FileCheck %s --check-prefix=INIT
// RUN: not fsdp-opt %s --fsdp-add-step-block=loss-scale-growth-interval=0 2>&1 | FileCheck %s --check-prefix=INTERVAL
// NUMBER: error: loss-scale: expected 'dynamic' or a number from 1e-30 to 1e30, found '{{-1|much}}'
// INIT: error: loss-scale-init: expected a number from 1e-30 to 1e30, found 0
// INTERVAL: error: loss-scale-growth-interval: expected 1 to 16777216, found 0

// The backward starts from the scale in the block, 65536 at first. Norm and clip factor exclude the scale. The scale of the
// next step depends on whether all gradients are finite and on the steps since the last change.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 1 x 64 : f32 reshard false [#fsdp.param<"a", tensor<64xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[BLOCK:[a-z0-9]+]]: tensor<16xf32> {fsdp.block}
// CHECK-NOT:     fsdp.loss_scale
// CHECK:         %[[OLD:.*]] = tensor.extract_slice %[[BLOCK]][2] [1] [1]
// CHECK:         %[[SINCE:.*]] = tensor.extract_slice %[[BLOCK]][3] [1] [1]
// CHECK:         %[[SCALING:.*]]:3 = linalg.generic {{.*}} ins(%[[OLD]], %[[SINCE]]
// DYNAMIC:         %[[SET:.*]] = arith.cmpf ogt, %in, %{{.*}} : f32
// DYNAMIC:         %[[FIRST:.*]] = arith.constant 6.553600e+04 : f32
// DYNAMIC:         arith.select %[[SET]], %in, %[[FIRST]]
// FIXED:           %[[N:.*]] = arith.constant 1.280000e+02 : f32
// FIXED:           %[[NEVER:.*]] = arith.constant -1.000000e+00 : f32
// FIXED:           linalg.yield %[[N]], %[[NEVER]], %[[N]]
// CHECK:         linalg.generic {{.*}} ins(%[[SCALING]]#2 : tensor<f32>) outs({{.*}} : tensor<64xf32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[SCALING]]#0, %[[SCALING]]#1 : {{.*}}) outs(%[[BLOCK]] : tensor<16xf32>)
// CHECK:           %[[ROOT:.*]] = math.sqrt
// CHECK:           %[[INVERSE:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK:           %[[NORM:.*]] = arith.mulf %[[ROOT]], %[[INVERSE]]
// CHECK:           math.absf %[[ROOT]]
// CHECK:           %[[CLIP:.*]] = arith.minimumf
// CHECK:           arith.mulf %[[CLIP]], %[[INVERSE]]
// DYNAMIC:         arith.constant 2.000000e+03 : f32
// DYNAMIC:         arith.cmpf oge
// DYNAMIC:         arith.minimumf
// DYNAMIC:         arith.maximumf
// FIXED-NOT:       arith.maximumf
func.func @step(%a: tensor<64xf32> {fsdp.unit = @a}, %tokens: tensor<3x5xi64> {fsdp.batch = "tokens"}, %seed: tensor<f32> {fsdp.loss_scale})
    -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f32>
  %e = tensor.empty() : tensor<64xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%seed : tensor<f32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64xf32>
  return %l, %g : tensor<f32>, tensor<64xf32>
}
