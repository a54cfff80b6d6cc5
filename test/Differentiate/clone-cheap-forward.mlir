// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse --fsdp-clone-cheap-forward=remarks -verify-diagnostics | FileCheck %s

#id2 = affine_map<(i, j) -> (i, j)>
#r2 = affine_map<(i, j) -> (i)>
#c2 = affine_map<(i, j) -> (j)>
#n2 = affine_map<(i, j) -> ()>

// %n is a map of %h and %s, which the backward reads anyway: it is computed again in
// front of its product. tanh is a call, so %t stays saved; %y reads two whole tensors.
// CHECK-LABEL: func.func @normalized
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%arg0
// CHECK:           math.tanh
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}"reduction"{{.*}} ins(%[[T]]
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%[[T]], %[[S]], %arg2
// CHECK-NOT:       fsdp.recompute
// CHECK:         linalg.contract {{.*}} ins(%[[N]], %arg1
// CHECK:         %[[AGAIN:.*]] = linalg.generic {{.*}} ins(%[[T]], %[[S]], %arg2 {{.*}} attrs = {fsdp.recompute}
// CHECK:         linalg.contract {{.*}} ins(%[[AGAIN]],
// expected-remark@+1 {{1 ops computed again in the backward, which reads 160 bytes of the forward instead of 256}}
func.func @normalized(%x: tensor<4x6xf32> {fsdp.param = "x"}, %w: tensor<6x3xf32> {fsdp.param = "w"}, %g: tensor<6xf32> {fsdp.param = "g"}) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<4x6xf32>) outs(%f1 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#id2, #r2, #c2, #id2], iterator_types = ["parallel", "parallel"]} ins(%t, %s, %g : tensor<4x6xf32>, tensor<4xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %0 = math.rsqrt %b : f32
    %1 = arith.mulf %a, %0 : f32
    %2 = arith.mulf %1, %c : f32
    linalg.yield %2 : f32
  } -> tensor<4x6xf32>
  %e3 = tensor.empty() : tensor<4x3xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%n, %w : tensor<4x6xf32>, tensor<6x3xf32>) outs(%f3 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<4x3xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// A clone reads a reshape of its own, so only the tensor before the reshape is saved, which the gradient of tanh reads anyway.
// CHECK-LABEL: func.func @reshaped
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%arg0
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[T]]
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%[[C]]
// CHECK:         linalg.contract {{.*}} ins(%[[N]], %arg1
// CHECK:         %[[D:.*]] = tensor.collapse_shape %[[T]]
// CHECK:         %[[AGAIN:.*]] = linalg.generic {{.*}} ins(%[[D]] {{.*}} attrs = {fsdp.recompute}
// CHECK:         linalg.contract {{.*}} ins(%[[AGAIN]],
// expected-remark@+1 {{1 ops computed again in the backward, which reads 144 bytes of the forward instead of 240}}
func.func @reshaped(%x: tensor<2x2x6xf32> {fsdp.param = "x"}, %w: tensor<6x3xf32> {fsdp.param = "w"}) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x6xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x2x6xf32>) outs(%e : tensor<2x2x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<2x2x6xf32>
  %c = tensor.collapse_shape %t [[0, 1], [2]] : tensor<2x2x6xf32> into tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<6x4xf32>
  %n = linalg.generic {indexing_maps = [#id2, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<4x6xf32>) outs(%e1 : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<6x4xf32>
  %e3 = tensor.empty() : tensor<4x3xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%n, %w : tensor<6x4xf32>, tensor<6x3xf32>) outs(%f3 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<4x3xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
