// The loss ignores targets of -100, so a new argument of the function weights the loss.
// RUN: fsdp-opt %s --fsdp-weigh-loss | FileCheck %s

// CHECK: %[[W:[a-z0-9]+]]: tensor<f32> {fsdp.loss_weight}
// CHECK: %[[LOSS:.*]], %{{.*}} = fsdp.cross_entropy
// CHECK: ins(%[[LOSS]], %[[W]] :
// CHECK: arith.mulf

// DOC-BEFORE-BEGIN fsdp-weigh-loss
func.func @loss(%x: tensor<4x5xf32> {fsdp.batch = "x"}, %t: tensor<4xi64> {fsdp.batch = "targets"}) -> tensor<f32>
    attributes {fsdp.program = "step"} {
  %loss, %lse = fsdp.cross_entropy %x, %t ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  return %loss : tensor<f32>
}
// DOC-BEFORE-END
