// RUN: fsdp-opt %s --fsdp-cast-collectives --verify-roundtrip | FileCheck %s

// The unit is gathered in bf16 from f32 shards, and reduced in bf16 into f32 shards.
// DOC-BEFORE-BEGIN fsdp-cast-collectives
fsdp.unit @u shards 2 x 8 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
// DOC-BEFORE-END
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[P:.*]]: tensor<8xf32>
// CHECK: %[[H:.*]] = fsdp.dispatch(%[[P]]) inplace [-1] {kind = "map"} : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[W:.*]] = fsdp.unshard %[[H]] @u site 1 : tensor<8xbf16> -> tensor<4x4xbf16>
// CHECK: %[[G:.*]] = fsdp.reduce_scatter @u avg params [0](%[[W]]) : (tensor<4x4xbf16>) -> tensor<8xbf16>
// CHECK: %[[S:.*]] = fsdp.dispatch(%[[G]]) inplace [-1] {kind = "map"} : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: return %[[S]]
// DOC-BEFORE-BEGIN fsdp-cast-collectives
func.func @f(%p: tensor<8xf32>) -> tensor<8xf32> {
  %w = fsdp.unshard %p @u site 1 : tensor<8xf32> -> tensor<4x4xbf16>
  %g = fsdp.reduce_scatter @u avg params [0] (%w) : (tensor<4x4xbf16>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}
// DOC-BEFORE-END
// The types are equal, so nothing changes.
// CHECK-LABEL: func.func @same
// CHECK-NOT: fsdp.dispatch
func.func @same(%p: tensor<8xf32>) -> tensor<8xf32> {
  %w = fsdp.unshard %p @u site 0 : tensor<8xf32> -> tensor<4x4xf32>
  %g = fsdp.reduce_scatter @u avg params [0] (%w) : (tensor<4x4xf32>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}
