// RUN: fsdp-opt %s --fsdp-weigh-loss --split-input-file | FileCheck %s

// A mean over the targets that count, divided by a constant, plus a term independent of the batch, gets a weight.

#none = affine_map<() -> ()>
#in = affine_map<(i) -> (i)>
#out = affine_map<(i) -> ()>
// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[W:[a-z0-9]+]]: tensor<f32> {fsdp.loss_weight})
// CHECK:         fsdp.cross_entropy
// CHECK:         %[[L:.*]] = linalg.generic
// CHECK:         %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[W]] : tensor<f32>, tensor<f32>)
// CHECK:           arith.mulf
// CHECK:         return %[[SCALED]]
func.func @loss(%w: tensor<5xf32> {fsdp.param = "w"}, %x: tensor<4x5xf32> {fsdp.batch = "x"},
                %t: tensor<4xi64> {fsdp.batch = "targets"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %c = arith.constant 2.0 : f32
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %penalty = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction"]} ins(%w : tensor<5xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %l, %lse = fsdp.cross_entropy %x, %t ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#none, #none, #none], iterator_types = []} ins(%l, %penalty : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %p: f32, %o: f32):
    %0 = arith.divf %a, %c : f32
    %1 = arith.addf %0, %p : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// Every target counts: all weights would be 1, so none is added.

// CHECK-LABEL: func.func @loss(
// CHECK-NOT:     loss_weight
// CHECK:         return %loss
func.func @loss(%x: tensor<4x5xf32> {fsdp.batch = "x"}, %t: tensor<4xi64> {fsdp.batch = "targets"}) -> tensor<f32>
    attributes {fsdp.program = "step"} {
  %loss, %lse = fsdp.cross_entropy %x, %t : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  return %loss : tensor<f32>
}
