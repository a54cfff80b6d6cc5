// RUN: fsdp-opt %s --verify-roundtrip | FileCheck %s --check-prefix=TEXT
// RUN: fsdp-opt %s --canonicalize --cse | FileCheck %s

// TEXT-LABEL: func.func @of_a_stop(
// TEXT: fsdp.stop_gradient %{{.*}} {note} : tensor<4x6xf32>
// CHECK-LABEL: func.func @of_a_stop(
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>
// CHECK: %[[ONE:.*]] = fsdp.stop_gradient %[[X]]
// CHECK-NEXT: return %[[ONE]]
func.func @of_a_stop(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %a = fsdp.stop_gradient %x {note} : tensor<4x6xf32>
  %b = fsdp.stop_gradient %a : tensor<4x6xf32>
  return %b : tensor<4x6xf32>
}

// CSE merges two fsdp.stop_gradient ops of one value, but not a value and its fsdp.stop_gradient.
// CHECK-LABEL: func.func @twice(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[ONE:.*]] = fsdp.stop_gradient %[[X]]
// CHECK-NEXT: return %[[X]], %[[ONE]], %[[ONE]]
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = fsdp.stop_gradient %x : tensor<4xf32>
  %b = fsdp.stop_gradient %x : tensor<4xf32>
  return %x, %a, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @of_integers(
// CHECK-SAME: %[[X:.*]]: tensor<4xi64>
// CHECK-NEXT: return %[[X]]
func.func @of_integers(%x: tensor<4xi64>) -> tensor<4xi64> {
  %a = fsdp.stop_gradient %x : tensor<4xi64>
  return %a : tensor<4xi64>
}

// An fsdp.stop_gradient of a splat is folded. The ops are kept for other constants, because these may become parameters.
// CHECK-LABEL: func.func @of_constants(
// CHECK-DAG: %[[SPLAT:.*]] = arith.constant dense<1.000000e+00>
// CHECK-DAG: %[[TABLE:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: %[[STOP:.*]] = fsdp.stop_gradient %[[TABLE]]
// CHECK-NEXT: return %[[SPLAT]], %[[STOP]]
func.func @of_constants() -> (tensor<2xf32>, tensor<2xf32>) {
  %s = arith.constant dense<1.0> : tensor<2xf32>
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %a = fsdp.stop_gradient %s : tensor<2xf32>
  %b = fsdp.stop_gradient %t : tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}
