// RUN: fsdp-opt %s --fsdp-verify-updated -verify-diagnostics -split-input-file

// A module that meets all conditions.
fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
fsdp.unit @f shards 1 x 64 : f32 reshard false [#fsdp.param<"f", tensor<4xf32>, 0, trainable = false, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %f: tensor<64xf32> {fsdp.unit = @f, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank}, %x: tensor<f32> {fsdp.batch = "x"})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 2 : i64}) attributes {fsdp.program = "step"} {
  return %p, %block : tensor<64xf32>, tensor<16xf32>
}
func.func @eval(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %f: tensor<64xf32> {fsdp.unit = @f, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank}, %x: tensor<f32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 2 : i64}) attributes {fsdp.program = "eval"} {
  return %block : tensor<16xf32>
}
func.func @reference(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %f: tensor<64xf32> {fsdp.unit = @f, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank}, %x: tensor<f32> {fsdp.batch = "x"})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 2 : i64}) attributes {fsdp.program = "reference"} {
  return %p, %block : tensor<64xf32>, tensor<16xf32>
}

// -----

// expected-error@+2 {{after Update: expected one function of program 'eval'}}
// expected-error@+1 {{after Update: expected one function of program 'reference'}}
module {
  fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
  // expected-error@+2 {{expected result 1 of '@step' to update one argument of its type ('fsdp.updates')}}
  // expected-error@+1 {{expected result 2 of '@step' to update one argument of its type ('fsdp.updates')}}
  func.func @step(
      %p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"},
      // expected-error@+1 {{expected argument 1 of '@step' to be updated}}
      %m: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "momentum"},
      // expected-error@+2 {{expected the step block as 'tensor<16xf32>', found 'tensor<8xf32>'}}
      // expected-error@+1 {{expected argument 2 of '@step' to be updated}}
      %block: tensor<8xf32> {fsdp.block},
      // expected-error@+1 {{expected the rank block as 'tensor<8xi64>', found 'tensor<4xi32>'}}
      %rank: tensor<4xi32> {fsdp.rank},
      // expected-error@+1 {{expected argument 4 of '@step' to be state of a unit, the step block, the rank block or a batch argument}}
      %x: tensor<f32>)
      -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<8xf32> {fsdp.updates = 9 : i64}) attributes {fsdp.program = "step"} {
    return %p, %m, %block : tensor<64xf32>, tensor<64xf32>, tensor<8xf32>
  }
}

// -----

fsdp.unit @u shards 1 x 64 : f32 reshard false [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 1 : i64}) attributes {fsdp.program = "step"} {
  return %p, %block : tensor<64xf32>, tensor<16xf32>
}
// expected-error@+1 {{after Update: expected the arguments of '@eval' to have the roles of those of '@step'}}
func.func @eval(
    // expected-error@+1 {{after Update: expected argument 0 of '@eval' to be left alone}}
    %p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 1 : i64}) attributes {fsdp.program = "eval"} {
  return %p, %block : tensor<64xf32>, tensor<16xf32>
}
func.func @reference(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 1 : i64}) attributes {fsdp.program = "reference"} {
  return %p, %block : tensor<64xf32>, tensor<16xf32>
}
