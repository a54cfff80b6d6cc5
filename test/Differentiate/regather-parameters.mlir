// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse --fsdp-regather-parameters --fsdp-verify-differentiated | FileCheck %s
// RUN: not fsdp-opt %s --fsdp-add-backward --canonicalize --cse --fsdp-verify-differentiated 2>&1 | FileCheck %s --check-prefix=FORGOTTEN

#id2 = affine_map<(i, j) -> (i, j)>
#n2 = affine_map<(i, j) -> ()>
#t2 = affine_map<(i, j) -> (j, i)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @gathered shards 1 x 64 : f32 reshard true [#fsdp.param<"w", tensor<8x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
fsdp.unit @kept shards 1 x 64 : f32 reshard false [#fsdp.param<"v", tensor<8x8xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
fsdp.unit @frozen shards 1 x 64 : f32 reshard true [#fsdp.param<"u", tensor<3x4xf32>, 0, trainable = false, decay = true, init = <normal, 0.0, 0.02>>]
fsdp.unit @unused shards 1 x 64 : f32 reshard true [#fsdp.param<"n", tensor<4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]

// The transposed copy of w is computed again from a second gather. v comes from the first gather.
// A frozen unit has no gradient; the gradient of an unused unit is zero.
// CHECK-LABEL: func.func @reference
// CHECK-SAME:    -> (tensor<f32>, tensor<64xf32> {fsdp.unit = @gathered}, tensor<64xf32> {fsdp.unit = @kept}, tensor<64xf32> {fsdp.unit = @unused})
// CHECK:         fsdp.unshard %arg0 @gathered site 0
// CHECK:         %[[V:.*]] = fsdp.unshard %arg1 @kept site 0
// CHECK:         fsdp.unshard %arg2 @frozen site 0
// CHECK:         %[[W1:.*]] = fsdp.unshard %arg0 @gathered site 1
// CHECK:         %[[T1:.*]] = linalg.transpose ins(%[[W1]] {{.*}} {fsdp.recompute}
// CHECK-NEXT:    %[[GY:.*]] = linalg.contract {{.*}} ins(%{{.*}}, %[[T1]]
// CHECK:         linalg.contract {{.*}} ins(%[[GY]], %[[V]]
// CHECK:         %[[GV:.*]] = fsdp.reduce_scatter @kept avg params [0]
// CHECK:         %[[U1:.*]] = fsdp.unshard %arg2 @frozen site 1
// CHECK:         linalg.contract {{.*}} ins(%[[U1]]
// CHECK:         %[[GW:.*]] = fsdp.reduce_scatter @gathered avg params [0]
// CHECK:         %[[GN:.*]] = fsdp.reduce_scatter @unused avg params []() : () -> tensor<64xf32>
// CHECK:         return %{{.*}}, %[[GW]], %[[GV]], %[[GN]]

// FORGOTTEN: error: the backward reads a parameter that was gathered for the forward; expected it from 'fsdp.unshard @gathered site 1'; run --fsdp-regather-parameters
// FORGOTTEN: note: it is made here
func.func @reference(%sw: tensor<64xf32> {fsdp.unit = @gathered}, %sv: tensor<64xf32> {fsdp.unit = @kept},
                     %su: tensor<64xf32> {fsdp.unit = @frozen}, %sn: tensor<64xf32> {fsdp.unit = @unused}) -> tensor<f32>
    attributes {fsdp.program = "reference", fsdp.mesh = @solo} {
  %z = arith.constant 0.0 : f32
  %w = fsdp.unshard %sw @gathered site 0 : tensor<64xf32> -> tensor<8x4xf32>
  %v = fsdp.unshard %sv @kept site 0 : tensor<64xf32> -> tensor<8x8xf32>
  %u = fsdp.unshard %su @frozen site 0 : tensor<64xf32> -> tensor<3x4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.transpose ins(%w : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  %e3 = tensor.empty() : tensor<3x8xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<3x8xf32>) -> tensor<3x8xf32>
  %h = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%u, %t : tensor<3x4xf32>, tensor<4x8xf32>) outs(%f3 : tensor<3x8xf32>) -> tensor<3x8xf32>
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%h, %v : tensor<3x8xf32>, tensor<8x8xf32>) outs(%f3 : tensor<3x8xf32>) -> tensor<3x8xf32>
  %e4 = tensor.empty() : tensor<3x4xf32>
  %f4 = linalg.fill ins(%z : f32) outs(%e4 : tensor<3x4xf32>) -> tensor<3x4xf32>
  %q = linalg.contract indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn] ins(%y, %t : tensor<3x8xf32>, tensor<4x8xf32>) outs(%f4 : tensor<3x4xf32>) -> tensor<3x4xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%q : tensor<3x4xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// After the last reader in the forward (of a view), a rank keeps half of the unit, and later gathers the unit from the halves.
fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.unit @halved shards 4 x 64 : f32 reshard true within 2 [
  #fsdp.param<"x", tensor<64xf32>, 0, trainable = true, decay = false, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"y", tensor<8xf32>, 64, trainable = true, decay = false, init = <normal, 0.0, 0.02>>]
// CHECK-LABEL: func.func @step
// CHECK:         %[[P:.*]]:2 = fsdp.unshard %arg0 @halved site 0 : tensor<64xf32>
// CHECK:         %[[E:.*]] = tensor.expand_shape %[[P]]#0
// CHECK:         linalg.mul ins(%[[E]], %arg1
// CHECK:         linalg.mul ins(%[[E]],
// CHECK-NEXT:    %[[K:.*]] = fsdp.shard @halved(%[[P]]#0, %[[P]]#1) : (tensor<64xf32>, tensor<8xf32>) -> tensor<128xf32>
// CHECK:         %[[Q:.*]]:2 = fsdp.unshard %[[K]] @halved site 1 : tensor<128xf32> -> tensor<64xf32>, tensor<8xf32>
// CHECK:         fsdp.reduce_scatter @halved avg params [0]{{.*}} -> tensor<64xf32>
func.func @step(%s: tensor<64xf32> {fsdp.unit = @halved}, %in: tensor<8x8xf32> {fsdp.batch = "in"}) -> tensor<f32>
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %z = arith.constant 0.0 : f32
  %x, %y = fsdp.unshard %s @halved site 0 : tensor<64xf32> -> tensor<64xf32>, tensor<8xf32>
  %w = tensor.expand_shape %x [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %a = linalg.mul ins(%w, %in : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.mul ins(%w, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%b : tensor<8x8xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %o, %p : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
