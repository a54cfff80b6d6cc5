// RUN: fsdp-opt %s --fsdp-insert-unshard -verify-diagnostics -split-input-file

// expected-error@+1 {{expected a function '@loss', the meshes '@mesh' and '@solo' and units, found no mesh '@mesh'; run fsdp-form-units first}}
module {
  func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}) { return }
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 1 x 64 : f32 reshard false [#fsdp.param<"v", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected a unit that declares parameter "w" with type 'tensor<4xf32>', found none; run fsdp-form-units on this module first}}
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}) { return }

// -----

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<5xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected a unit that declares parameter "w" with type 'tensor<4xf32>', found type 'tensor<5xf32>'}}
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}) { return }

// -----

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 1 x 64 : f32 reshard false [
  #fsdp.param<"v", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>,
  #fsdp.param<"w", tensor<4xf32>, 16, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected an argument for each of 2 parameters of the units, found 1}}
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}) { return }
