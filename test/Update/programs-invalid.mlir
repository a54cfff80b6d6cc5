// RUN: fsdp-opt %s --fsdp-accumulate-gradients -verify-diagnostics -split-input-file

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
// expected-error@+1 {{expected 'fsdp.program' to be "step", "eval" or "reference", found "train"}}
func.func @f() attributes {fsdp.program = "train"} { return }
func.func private @s() attributes {fsdp.program = "step", fsdp.mesh = @mesh}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
// expected-error@+1 {{expected @f to have a body of one block, found a declaration}}
func.func private @f() attributes {fsdp.program = "step", fsdp.mesh = @mesh}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
// expected-error@+1 {{expected @u, the 'fsdp.unit' of argument 0, to name an 'fsdp.unit' op, found no symbol @u}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} { return }

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected the argument for unit 'u' to have type 'tensor<64xf32>', found 'tensor<32xf32>'}}
func.func @step(%s: tensor<32xf32> {fsdp.unit = @u}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} { return }

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = false, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected at least one trainable parameter, found only frozen ones}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} { return }

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected 2 results, the loss and one gradient per trainable unit, found 1}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> tensor<f32> attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %l : tensor<f32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected the gradient of unit 'u' to be a 1-D float tensor of 64 elements, found 'tensor<4xf32>'}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>, %g: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %l, %g : tensor<f32>, tensor<4xf32>
}

// -----

fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-error@+1 {{expected attribute 'fsdp.mesh' to name an 'fsdp.mesh' op, found no attribute}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step"} {
  return %l, %s : tensor<f32>, tensor<64xf32>
}

// -----

// expected-error@+1 {{expected attribute 'fsdp.mesh' to name an 'fsdp.mesh' op, found a 'func.func'}}
func.func @step() attributes {fsdp.program = "step", fsdp.mesh = @step} { return }

// -----

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 4 : i64} {
  return %l, %s : tensor<f32>, tensor<64xf32>
}
// expected-error@+1 {{expected 'fsdp.micro_batches' to be 8, the number of micro-batches of the step times the number of ranks that read different samples, found 2}}
func.func @reference(%s: tensor<128xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> (tensor<f32>, tensor<128xf32>) attributes {fsdp.program = "reference", fsdp.micro_batches = 2 : i64} {
  return %l, %s : tensor<f32>, tensor<128xf32>
}

// -----

// expected-error@+1 {{expected 'fsdp.micro_batches' of the step to be at least 1, found 0}}
fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 0 : i64} {
  return %l, %s : tensor<f32>, tensor<64xf32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-note@+1 {{the first one is @step}}
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %l, %s : tensor<f32>, tensor<64xf32>
}
// expected-error@+1 {{expected only one function with the program 'step', found a second one, @again}}
func.func @again(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %l, %s : tensor<f32>, tensor<64xf32>
}
