// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse | FileCheck %s
// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse --fsdp-clone-cheap-forward \
// RUN:   --fsdp-regather-parameters --fsdp-verify-differentiated | FileCheck %s --check-prefix=AGAIN
// RUN: fsdp-opt %s --fsdp-add-backward=reduce-dtype=bf16 | FileCheck %s --check-prefix=REDUCE
// RUN: fsdp-opt %s --fsdp-add-backward='reduce-dtype=bf16 grad-predivide=4' | FileCheck %s --check-prefix=DIVIDE

// Two layers in two units: the whole joint graph.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#none = affine_map<(i, j) -> ()>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 2 x 64 : f32 reshard true [#fsdp.param<"fc2.weight", tensor<8x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
fsdp.unit @h.0 shards 2 x 64 : f32 reshard true [
  #fsdp.param<"fc1.weight", tensor<4x8xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"fc1.bias", tensor<8xf32>, 32, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @loss(%s0: tensor<64xf32> {fsdp.unit = @root}, %s1: tensor<64xf32> {fsdp.unit = @h.0},
                %x: tensor<3x4xf32> {fsdp.batch = "x"}) -> tensor<f32> attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %z = arith.constant 0.0 : f32
  %w1, %b1 = fsdp.unshard %s1 @h.0 site 0 : tensor<64xf32> -> tensor<4x8xf32>, tensor<8xf32>
  %e = tensor.empty() : tensor<3x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
  %h0 = linalg.contract indexing_maps = [#a, #b, #c] ins(%x, %w1 : tensor<3x4xf32>, tensor<4x8xf32>) outs(%f : tensor<3x8xf32>) -> tensor<3x8xf32>
  %h = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%h0, %b1 : tensor<3x8xf32>, tensor<8xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.maximumf %0, %z : f32
    linalg.yield %1 : f32
  } -> tensor<3x8xf32>
  %w2 = fsdp.unshard %s0 @root site 0 : tensor<64xf32> -> tensor<8x4xf32>
  %e2 = tensor.empty() : tensor<3x4xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.contract indexing_maps = [#a, #b, #c] ins(%h, %w2 : tensor<3x8xf32>, tensor<8x4xf32>) outs(%f2 : tensor<3x4xf32>) -> tensor<3x4xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<3x4xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.mulf %p, %p : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @step(
// CHECK-SAME:    -> (tensor<f32>, tensor<64xf32> {fsdp.unit = @root}, tensor<64xf32> {fsdp.unit = @h.0}) attributes {fsdp.mesh = @mesh, fsdp.program = "step"}
// CHECK:         %[[W1:.*]]:2 = fsdp.unshard %arg1 @h.0 site 0
// CHECK:         %[[H0:.*]] = linalg.contract {{.*}} ins(%arg2, %[[W1]]#0
// CHECK:         %[[H:.*]] = linalg.generic {{.*}} ins(%[[H0]], %[[W1]]#1
// CHECK:         %[[W2:.*]] = fsdp.unshard %arg0 @root site 0
// CHECK:         %[[Y:.*]] = linalg.contract {{.*}} ins(%[[H]], %[[W2]]
// CHECK:         %[[LOSS:.*]] = linalg.generic {{.*}}"reduction", "reduction"{{.*}} ins(%[[Y]]
// Products stay products; the parameters keep their own layout.
// CHECK:         %[[GY:.*]] = linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<3x4xf32>, tensor<f32>)
// CHECK:         %[[GH:.*]] = linalg.contract indexing_maps = [#[[C]], #[[B]], #[[A]]] ins(%[[GY]], %[[W2]]
// CHECK:         %[[GW2:.*]] = linalg.contract indexing_maps = [#[[A]], #[[C]], #[[B]]] ins(%[[H]], %[[GY]]
// One reduction per unit, after its last cotangent.
// CHECK-NEXT:    %[[G0:.*]] = fsdp.reduce_scatter @root avg params [0](%[[GW2]])
// The gradient of the bias is the sum of the cotangent of the addition's result.
// CHECK:         %[[GX:.*]] = linalg.generic {{.*}} ins(%[[H0]], %[[W1]]#1, %[[GH]]
// CHECK:           arith.cmpf ogt
// CHECK:         %[[GB:.*]] = linalg.generic {{.*}}"reduction", "parallel"{{.*}} ins(%[[GX]]
// CHECK:         %[[GW1:.*]] = linalg.contract {{.*}} ins(%arg2, %[[GX]]
// CHECK-NEXT:    %[[G1:.*]] = fsdp.reduce_scatter @h.0 avg params [0, 1](%[[GW1]], %[[GB]])
// CHECK:         return %[[LOSS]], %[[G0]], %[[G1]]

// The program @eval has only the forward.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME:    -> tensor<f32> attributes {fsdp.mesh = @mesh, fsdp.program = "eval"}
// CHECK-NOT:     site 1
// CHECK-NOT:     fsdp.reduce_scatter

// The backward gathers the parameters again and computes the hidden layer again.
// AGAIN-LABEL: func.func @step(
// AGAIN:         %[[H0:.*]] = linalg.contract {{.*}} ins(%arg2,
// AGAIN:         %[[W2:.*]] = fsdp.unshard %arg0 @root site 1
// AGAIN-NEXT:    linalg.contract {{.*}} ins(%{{.*}}, %[[W2]]
// AGAIN:         %[[W1:.*]]:2 = fsdp.unshard %arg1 @h.0 site 1
// AGAIN-NEXT:    %[[H:.*]] = linalg.generic {{.*}} ins(%[[H0]], %[[W1]]#1 {{.*}} {fsdp.recompute}
// AGAIN:         linalg.contract {{.*}} ins(%[[H]],
// AGAIN-NOT:     site
// AGAIN-LABEL: func.func @eval(

// REDUCE:      fsdp.reduce_scatter @root avg params [0](%{{.*}}) : (tensor<8x4xbf16>) -> tensor<64xbf16>
// A gradient is rounded directly after the op that computes it.
// REDUCE:      %[[GB:.*]] = linalg.generic {{.*}}"reduction", "parallel"
// REDUCE:      } -> tensor<8xf32>
// REDUCE:      linalg.generic {{.*}} ins(%[[GB]] : tensor<8xf32>) outs({{.*}} : tensor<8xbf16>)
// REDUCE:      %[[GW1:.*]] = linalg.contract {{.*}} -> tensor<4x8xf32>
// REDUCE:      linalg.generic {{.*}} ins(%[[GW1]] : tensor<4x8xf32>) outs({{.*}} : tensor<4x8xbf16>)
// REDUCE:      fsdp.reduce_scatter @h.0 avg params [0, 1]

// DIVIDE:      %[[QUARTER:.*]] = arith.constant 2.500000e-01 : f32
// DIVIDE:      arith.mulf %{{.*}}, %[[QUARTER]] : f32
// DIVIDE:      arith.truncf %{{.*}} : f32 to bf16
// DIVIDE:      fsdp.reduce_scatter @root avg
