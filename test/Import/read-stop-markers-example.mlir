// A call of the marker function becomes an fsdp.stop_gradient.
// RUN: fsdp-opt %s --fsdp-read-stop-markers | FileCheck %s

// CHECK-NOT: num_stop_gradients
// CHECK: fsdp.stop_gradient %{{.*}} : tensor<4xf32>
// CHECK-NOT: call

// DOC-BEFORE-BEGIN fsdp-read-stop-markers
module attributes {fsdp.num_stop_gradients = 1 : i64} {
  func.func private @fsdp.stop_gradient(tensor<4xf32>) -> tensor<4xf32>
  func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @fsdp.stop_gradient(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// DOC-BEFORE-END
