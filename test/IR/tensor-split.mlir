// The op reduce_cotangent, and units of whose parameters a rank of the axis tensor has slices.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --verify-roundtrip -o - | FileCheck %s

// CHECK: fsdp.unit @u {{.*}} {fsdp.tensor_split = {up = array<i64: 1, 8, 4>}}
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>, #fsdp.axis<"tensor", [2]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [
  #fsdp.param<"up", tensor<4x6xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>] {fsdp.tensor_split = {up = array<i64: 1, 8, 4>}}
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: fsdp.reduce_cotangent %{{.*}} @mesh ["tensor"] : tensor<4x8xf32>
  %y = fsdp.reduce_cotangent %x @mesh ["tensor"] : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// (C1)
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected @m to be an 'fsdp.mesh', found no symbol @m}}
  %y = fsdp.reduce_cotangent %x @m ["tensor"] : tensor<4xf32>
  return
}

// -----

// (C2)
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"shard", [2]>]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" whose N divides the size of the axis, found "tensor"}}
  %y = fsdp.reduce_cotangent %x @m ["tensor"] : tensor<4xf32>
  return
}

// -----

// expected-error @below {{'fsdp.tensor_split' expected names of parameters of the unit, found "v"}}
fsdp.unit @u shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4x6xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>] {fsdp.tensor_split = {v = array<i64: 1, 12>}}

// -----

// expected-error @below {{'fsdp.tensor_split' of "w" expected a dimension of its slice 'tensor<4x6xf32>' and sizes of blocks that as many ranks divide, found array<i64: 1, 9, 3>}}
fsdp.unit @u shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4x6xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>] {fsdp.tensor_split = {w = array<i64: 1, 9, 3>}}

// -----

// expected-error @below {{expected 'fsdp.tensor_split' to be a dictionary, found 1 : i64}}
fsdp.unit @u shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4x6xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>] {fsdp.tensor_split = 1 : i64}
