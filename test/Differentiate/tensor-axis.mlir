// The adjoint of the all_reduce of a partial sum is the identity. That of reduce_cotangent is an all_reduce, of the sum of
// the cotangents of all its readers. The forward has no op for reduce_cotangent.
// RUN: fsdp-opt %s --fsdp-add-backward | FileCheck %s

fsdp.mesh @mesh [#fsdp.axis<"tensor", [2]>]

// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32>
// CHECK-NOT: reduce_cotangent
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: %[[S:.*]] = fsdp.all_reduce %[[P]] @mesh ["tensor"] sum : tensor<f32>
// The cotangent of %p is 1, that of the sum: nothing is added over ranks before that of %w.
// CHECK: %[[G:.*]] = linalg.generic
// CHECK-NOT: fsdp.all_reduce
// CHECK: %[[R:.*]] = fsdp.all_reduce %{{.*}} @mesh ["tensor"] sum : tensor<4xf32>
// CHECK-NOT: fsdp.all_reduce
// CHECK: return %[[S]], %{{.*}} : tensor<f32>, tensor<4xf32>
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}, %x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %e = fsdp.reduce_cotangent %w @mesh ["tensor"] : tensor<4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%e, %x : tensor<4xf32>, tensor<4xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %square = arith.mulf %a, %a : f32
    %product = arith.mulf %square, %b : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  %s = fsdp.all_reduce %p @mesh ["tensor"] sum : tensor<f32>
  return %s : tensor<f32>
}

// The gradient of a whole parameter is added over ranks before it is rounded, as that of one rank is.
// CHECK-LABEL: func.func @narrow(
// CHECK: fsdp.all_reduce %{{.*}} @mesh ["tensor"] sum : tensor<4xf32>
// CHECK-NOT: fsdp.all_reduce
// CHECK: return %{{.*}}, %{{.*}} : tensor<f32>, tensor<4xf32>
func.func @narrow(%w: tensor<4xbf16> {fsdp.param = "w"}, %x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %e = fsdp.reduce_cotangent %w @mesh ["tensor"] : tensor<4xbf16>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%e, %x : tensor<4xbf16>, tensor<4xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: bf16, %b: f32, %out: f32):
    %wide = arith.extf %a : bf16 to f32
    %product = arith.mulf %wide, %b : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %p : tensor<f32>
}
