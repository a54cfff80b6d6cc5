// The parameters of the layer h.0 become a unit; the other parameter belongs to the root unit.
// RUN: fsdp-opt %s '--fsdp-form-units=mesh=shard=2' | FileCheck %s

// CHECK: fsdp.mesh @mesh
// CHECK: fsdp.mesh @solo
// CHECK: fsdp.unit @root shards 2 x 64
// CHECK: fsdp.unit @h.0 shards 2 x 64
// CHECK: func.func @loss(

// DOC-BEFORE-BEGIN fsdp-form-units
func.func @f(%t: tensor<8x4xf32> {fsdp.param = "wte", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
             %w: tensor<4x4xf32> {fsdp.param = "h.0.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
             %b: tensor<4xf32> {fsdp.param = "h.0.bias", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<4x4xf32> {
  return %w : tensor<4x4xf32>
}
// DOC-BEFORE-END
