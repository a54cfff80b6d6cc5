// Each rank has half of both weights, and ranks add their products.
// RUN: fsdp-opt %s '--fsdp-partition-tensors=mesh=shard=1,tensor=2' | FileCheck %s

// CHECK: fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>, #fsdp.axis<"tensor", [2]>]
// CHECK: %[[UP:.*]]: tensor<4x4xf32> {{{.*}}fsdp.param = "up", fsdp.tensor_split = array<i64: 1, 8>}
// CHECK-SAME: %[[DOWN:.*]]: tensor<4x4xf32> {{{.*}}fsdp.param = "down", fsdp.tensor_split = array<i64: 0, 8>}
// CHECK: %[[IN:.*]] = fsdp.reduce_cotangent %{{.*}} @mesh ["tensor"]
// CHECK: %[[Y:.*]] = linalg.matmul ins(%[[IN]], %[[UP]]
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[Y]], %[[DOWN]]
// CHECK: fsdp.all_reduce %[[P]] @mesh ["tensor"] sum

// DOC-BEFORE-BEGIN fsdp-partition-tensors
func.func @loss(%up: tensor<4x8xf32> {fsdp.param = "up", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                %down: tensor<8x4xf32> {fsdp.param = "down", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                %x: tensor<2x4xf32> {fsdp.batch = "x"}) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = linalg.matmul ins(%x, %up : tensor<2x4xf32>, tensor<4x8xf32>) outs(%z : tensor<2x8xf32>) -> tensor<2x8xf32>
  %f = tensor.empty() : tensor<2x4xf32>
  %w = linalg.fill ins(%zero : f32) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %o = linalg.matmul ins(%y, %down : tensor<2x8xf32>, tensor<8x4xf32>) outs(%w : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %o : tensor<2x4xf32>
}
// DOC-BEFORE-END
