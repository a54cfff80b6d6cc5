// RUN: fsdp-opt %s --fsdp-assign-buffers --split-input-file --verify-diagnostics

func.func @step(%block: tensor<16xf32> {fsdp.block}) -> (tensor<16xf32> {fsdp.updates = 0 : i64})
    attributes {fsdp.program = "step"} {
  // expected-error @below {{'tensor.empty' op cannot become a command of a program; expected only kernel calls, collectives, contiguous views and one level of 'scf.for' (run the Fuse stage first)}}
  %e = tensor.empty() : tensor<16xf32>
  return %e : tensor<16xf32>
}

// -----

func.func @step(%block: tensor<16xf32> {fsdp.block}, %x: tensor<4x4xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step"} {
  // expected-error @below {{expected a slice that is one contiguous range, at a constant offset plus a multiple of the loop index, found gaps between its elements or another offset; make it part of an 'fsdp.dispatch'}}
  %e = tensor.extract_slice %x[0, 1] [4, 2] [1, 1] : tensor<4x4xf32> to tensor<4x2xf32>
  return %block : tensor<16xf32>
}

// -----

// expected-error @below {{argument 0 of @step: expected one of 'fsdp.unit' (a state), 'fsdp.batch' (an input), 'fsdp.block' and 'fsdp.rank', found none of them}}
func.func @step(%x: tensor<16xf32>) attributes {fsdp.program = "step"} {
  return
}

// -----

// expected-error @below {{argument 0 of @step: expected a tensor of static shape, found 'tensor<?xf32>'}}
func.func @step(%x: tensor<?xf32> {fsdp.batch = "x"}) attributes {fsdp.program = "step"} {
  return
}

// -----

fsdp.unit @u shards 1 x 16 : f32 reshard true []
// expected-error @below {{argument 0 of @step: expected 'fsdp.state' to be parameter, first_moment, second_moment, momentum or master, found "velocity"}}
func.func @step(%x: tensor<16xf32> {fsdp.unit = @u, fsdp.state = "velocity"}) attributes {fsdp.program = "step"} {
  return
}

// -----

fsdp.unit @u shards 1 x 16 : f32 reshard true []
// expected-error @below {{expected 'fsdp.state' to be parameter, first_moment, second_moment, momentum or master, found no 'fsdp.state'}}
func.func @step(%x: tensor<16xf32> {fsdp.unit = @u}) attributes {fsdp.program = "step"} {
  return
}

// -----

func.func @step(%block: tensor<16xf32> {fsdp.block}) -> tensor<16xf32> attributes {fsdp.program = "step"} {
  // expected-error @below {{result 0 of @step: expected 'fsdp.updates' with the index of the argument that the result updates, found none}}
  return %block : tensor<16xf32>
}

// -----

func.func @step(%block: tensor<16xf32> {fsdp.block}) -> (tensor<16xf32> {fsdp.updates = 5 : i64}) attributes {fsdp.program = "step"} {
  // expected-error @below {{result 0 of @step: 'fsdp.updates = 5' names argument 5; expected the index of an argument, less than 1}}
  return %block : tensor<16xf32>
}

// -----

func.func @step(%block: tensor<16xf32> {fsdp.block}) -> (tensor<16xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step"} {
  // expected-error @below {{result 1 of @step: 'fsdp.updates = 0' names argument 0, which result 0 updates too; expected each result to update another argument}}
  return %block, %block : tensor<16xf32>, tensor<16xf32>
}

// -----

// expected-note @below {{the first use is here}}
func.func @step(%x: tensor<16xf32> {fsdp.batch = "x"}) attributes {fsdp.program = "step"} {
  return
}
// expected-error @below {{argument 0 of @eval has type 'tensor<8xf32>', expected 'tensor<16xf32>' as in @step}}
func.func @eval(%x: tensor<8xf32> {fsdp.batch = "x"}) attributes {fsdp.program = "eval"} {
  return
}

// -----

// expected-error @below {{batch argument "x" of @step: expected the first dimension to be the number of micro-batches, 3, found 'tensor<2x16xf32>'}}
func.func @step(%x: tensor<2x16xf32> {fsdp.batch = "x"})
    attributes {fsdp.program = "step", fsdp.micro_batches = 3 : i64} {
  return
}

// -----

// expected-note @below {{the mesh is declared here}}
fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func @eval(%p: tensor<16xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  // expected-error @below {{communicates among 2 ranks; expected the 4 ranks of axis 'shard' of @mesh}}
  %a = fsdp.unshard %p @u site 0 : tensor<16xf32> -> tensor<16xf32>
  return
}

// -----

// The state argument is larger than a shard, but it is not the half of a unit that a rank keeps if the unit is gathered within 2 ranks.
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true within 2 [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func @eval(%p: tensor<32xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  // expected-error @below {{communicates among 2 ranks; expected the 4 ranks of axis 'shard' of @mesh}}
  %a = fsdp.unshard %p @u site 0 : tensor<32xf32> -> tensor<16xf32>
  return
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true within 2 [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func @eval(%x: tensor<16xf32> {fsdp.batch = "x"})
    attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  // expected-error @below {{expected the results of one 'fsdp.unshard' of the unit as operands, in order, found a block argument as operand 0}}
  %a = fsdp.shard @u (%x) : (tensor<16xf32>) -> tensor<32xf32>
  return
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true within 2 [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @v shards 4 x 16 : f32 reshard true within 2 [
  #fsdp.param<"b", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func @eval(%p: tensor<16xf32> {fsdp.unit = @v, fsdp.state = "parameter"})
    attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  %w = fsdp.unshard %p @v site 0 : tensor<16xf32> -> tensor<16xf32>
  // expected-error @below {{of the unit as operands, in order, found a result of an 'fsdp.unshard' of @v as operand 0}}
  %a = fsdp.shard @u (%w) : (tensor<16xf32>) -> tensor<32xf32>
  return
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true within 2 [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<16xf32>, 16, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func @eval(%p: tensor<16xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  %w:2 = fsdp.unshard %p @u site 0 : tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>
  // expected-error @below {{in order, found result 1 of the 'fsdp.unshard' as operand 0}}
  %a = fsdp.shard @u (%w#1, %w#0) : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
  return
}

// -----

fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func @eval(%p: tensor<32xf32> {fsdp.unit = @u, fsdp.state = "parameter"}) -> (tensor<32xf32> {fsdp.updates = 0 : i64})
    attributes {fsdp.program = "eval"} {
  %a = fsdp.unshard %p @u site 0 : tensor<32xf32> -> tensor<16xf32>
  // expected-error @below {{expected gradients with the element type of the shard, 'bf16', found 'tensor<16xf32>'; run fsdp-cast-collectives first}}
  %g = fsdp.reduce_scatter @u avg params [0] (%a) : (tensor<16xf32>) -> tensor<32xbf16>
  return %p : tensor<32xf32>
}

// -----

// expected-error @below {{symbol @arena is reserved for the arena of the programs; rename this 'fsdp.mesh'}}
fsdp.mesh @arena [#fsdp.axis<"shard", [4]>]
func.func @step(%x: tensor<16xf32> {fsdp.batch = "x"}) attributes {fsdp.program = "step"} {
  return
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>, #fsdp.axis<"tensor", [2]>]
func.func @step(%block: tensor<16xf32> {fsdp.block}, %x: tensor<16xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step"} {
  // expected-error @below {{takes the piece of a rank of axis 'tensor'; expected axes among 'replicate', 'shard' and 'context', of which slices of an artifact can have pieces}}
  %own = fsdp.own_piece %x @mesh ["tensor"] : tensor<16xf32> -> tensor<8xf32>
  return %block : tensor<16xf32>
}
