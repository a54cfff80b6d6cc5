// The reference has the flat buffers of both slices, and adds the partial sums of both ranks.
// RUN: fsdp-opt %s --fsdp-add-reference | FileCheck %s

// CHECK-LABEL: func.func @reference(%{{.*}}: tensor<128xf32> {fsdp.unit = @root.tensor}, %{{.*}}: tensor<64xf32>
// CHECK: fsdp.dispatch
// CHECK: tensor.concat dim(0) %{{.*}}, %{{.*}} : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>

// DOC-BEFORE-BEGIN fsdp-add-reference
// DOC-AFTER: @reference
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>, #fsdp.axis<"tensor", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root.tensor shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<64xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
  {fsdp.tensor_split = {w = array<i64: 0, 128>}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @root.tensor}, %x: tensor<64xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<64xf32> {fsdp.unit = @root.tensor}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %w = fsdp.unshard %s @root.tensor site 0 : tensor<64xf32> -> tensor<64xf32>
  %part = linalg.dot ins(%w, %x : tensor<64xf32>, tensor<64xf32>) outs(%zero : tensor<f32>) -> tensor<f32>
  %loss = fsdp.all_reduce %part @mesh ["tensor"] sum : tensor<f32>
  %g = fsdp.reduce_scatter @root.tensor avg params [0] (%x) : (tensor<64xf32>) -> tensor<64xf32>
  return %loss, %g : tensor<f32>, tensor<64xf32>
}
// DOC-BEFORE-END
