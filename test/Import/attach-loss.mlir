// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-attach-loss=attach-loss=cross_entropy | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-attach-loss | FileCheck %s --check-prefix=NONE
// RUN: not fsdp-opt %s --split-input-file --fsdp-attach-loss=attach-loss=hinge 2>&1 | FileCheck %s --check-prefix=HINGE
// RUN: not fsdp-opt %s --split-input-file --fsdp-attach-loss="attach-loss=cross_entropy ignore-index=-100" 2>&1 | FileCheck %s --check-prefix=IGNORE
// RUN: not fsdp-opt %s --split-input-file --fsdp-attach-loss="attach-loss=cross_entropy ignore-index=3" 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: not fsdp-opt %s --split-input-file --fsdp-attach-loss="attach-loss=cross_entropy ignore-index=x" 2>&1 | FileCheck %s --check-prefix=NUMBER
// NONE-NOT: cross_entropy
// IGNORE: {fsdp.batch = "targets", fsdp.extra_ids = array<i64: -100>, fsdp.limit = 9 : i64}
// IGNORE: fsdp.cross_entropy %{{.*}}, %{{.*}} ignore -100 :
// CLASS: {fsdp.batch = "targets", fsdp.limit = 9 : i64}
// CLASS: fsdp.cross_entropy %{{.*}}, %{{.*}} ignore 3 :
// NUMBER: error: --ignore-index expected an integer of 64 bits, found 'x'
// HINGE: error: --attach-loss expected cross_entropy, found 'hinge'

// CHECK-LABEL: func.func @logits(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x9xf32>, %[[T:.*]]: tensor<2x3xi64> {fsdp.batch = "targets", fsdp.limit = 9 : i64}) -> tensor<f32>
// CHECK: %[[L:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]]
// CHECK: %[[F:.*]] = tensor.collapse_shape %[[T]] {{\[}}[0, 1]]
// CHECK: %[[R:.*]], %{{.*}} = fsdp.cross_entropy %[[L]], %[[F]]
// CHECK: return %[[R]]
// DOC-BEFORE-BEGIN fsdp-attach-loss
func.func @logits(%x: tensor<2x3x9xf32>) -> tensor<2x3x9xf32> {
  return %x : tensor<2x3x9xf32>
}
// DOC-BEFORE-END

// -----

// CHECK-LABEL: func.func @half(
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: fsdp.cross_entropy {{.*}} : tensor<3x9xf32>, tensor<3xi64> -> tensor<f32>
func.func @half(%x: tensor<3x9xbf16>) -> tensor<3x9xbf16> {
  return %x : tensor<3x9xbf16>
}

// -----

// expected-error @+1 {{--attach-loss=cross_entropy expected one result, float logits of static shape [.., vocabulary], found 'tensor<f32>'}}
func.func @loss(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{found 2 results}}
func.func @two(%x: tensor<3x9xf32>) -> (tensor<3x9xf32>, tensor<3x9xf32>) {
  return %x, %x : tensor<3x9xf32>, tensor<3x9xf32>
}
