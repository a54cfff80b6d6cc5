// Markers that exporters write become fsdp.stop_gradient, before anything is inlined.
// RUN: fsdp-opt %s --fsdp-read-stop-markers | FileCheck %s
// RUN: fsdp-opt %s --fsdp-read-stop-markers --inline --symbol-dce | FileCheck %s --check-prefix=INLINED

// CHECK-NOT: fsdp.num_stop_gradients
// CHECK-NOT: func.func private @fsdp.stop_gradient
// CHECK-NOT: func.func private @held
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32>
// INLINED-LABEL: func.func @loss(
// INLINED-COUNT-5: fsdp.stop_gradient
// INLINED-NOT: func.func
module attributes {fsdp.num_stop_gradients = 5 : i64} {
  func.func private @fsdp.stop_gradient(tensor<4xf32>) -> tensor<4xf32>
  func.func private @fsdp.stop_gradient.1(tensor<f32>) -> tensor<f32>
  func.func private @held(tensor<4xf32>) -> tensor<4xf32> attributes {fsdp.stop_gradient}

  func.func @loss(%w: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>)
      attributes {fsdp.num_stop_gradients = 4 : i64} {
    // CHECK: %[[A:.*]] = fsdp.stop_gradient %[[W]] : tensor<4xf32>
    %a = call @fsdp.stop_gradient(%w) : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK-NEXT: fsdp.stop_gradient %[[W]] : tensor<4xf32>
    %b = call @held(%w) : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK-NEXT: fsdp.stop_gradient %{{.*}} : tensor<f32>
    %c = call @fsdp.stop_gradient.1(%s) : (tensor<f32>) -> tensor<f32>
    // CHECK: %[[D:.*]] = fsdp.stop_gradient %[[W]] : tensor<4xf32>
    // CHECK-NOT: linalg.generic
    %e = tensor.empty() : tensor<4xf32>
    %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%w : tensor<4xf32>) outs(%e : tensor<4xf32>) attrs = {fsdp.stop_gradient} {
    ^bb0(%i: f32, %o: f32):
      linalg.yield %i : f32
    } -> tensor<4xf32>
    %g = call @helper(%w) : (tensor<4xf32>) -> tensor<4xf32>
    return %a, %b, %c, %d, %g : tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
  }

  // CHECK-LABEL: func.func private @helper(
  // CHECK: fsdp.stop_gradient
  func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = fsdp.stop_gradient %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
}
