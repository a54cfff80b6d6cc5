// The shard of the unit replaces the parameters as an argument; an op gathers the parameters.
// RUN: fsdp-opt %s '--fsdp-form-units=mesh=shard=2' --fsdp-insert-unshard | FileCheck %s

// CHECK: func.func @loss(%[[S:.*]]: tensor<64xf32> {fsdp.unit = @root}
// CHECK: fsdp.unshard %[[S]] @root site 0 : tensor<64xf32> -> tensor<4x4xf32>
// CHECK: func.func @reference(%{{.*}}: tensor<128xf32> {fsdp.unit = @root}

// DOC-BEFORE-BEGIN fsdp-insert-unshard
// DOC-SETUP: '--fsdp-form-units=mesh=shard=2'
// DOC-ARGS: --fsdp-insert-unshard
func.func @f(%w: tensor<4x4xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
             %x: tensor<4x4xf32> {fsdp.batch = "x"}) -> tensor<4x4xf32> {
  %0 = linalg.mul ins(%w, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// DOC-BEFORE-END
