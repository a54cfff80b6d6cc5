// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// start (S1)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected a channel of at least 1 and an id of at least 0, found 0 and 3}}
  %t = fsdp.all_reduce_start %s @m ["a"] sum channel 0 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// start (S2): never awaited
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected one 'fsdp.await' of its token, in the same block; found 0 uses}}
  %t = fsdp.all_reduce_start %s @m ["a"] sum channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  return
}

// -----

// start (S2): awaited twice
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected one 'fsdp.await' of its token, in the same block; found 2 uses}}
  %t = fsdp.all_reduce_start %s @m ["a"] sum channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  // expected-note @below {{used here}}
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  // expected-note @below {{used here}}
  %q = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// all_reduce_start: results
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected a token of 'tensor<16xf32>', found 'tensor<8xf32>'}}
  %t = fsdp.all_reduce_start %s @m ["a"] sum channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<8xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<8xf32>>
  return
}

// -----

// all_reduce_start: number of results
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected a token of 1 result}}
  %t = fsdp.all_reduce_start %s @m ["a"] sum channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>, tensor<16xf32>>
  %r:2 = fsdp.await %t : !fsdp.token<tensor<16xf32>, tensor<16xf32>>
  return
}

// -----

// all_reduce_start (C2)
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" with N that divides the size of the axis, found "b"}}
  %t = fsdp.all_reduce_start %s @m ["b"] sum channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// all_gather_start (C3)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected a result of type 'tensor<32xf32>', one input from each of 2 ranks, found 'tensor<16xf32>'}}
  %t = fsdp.all_gather_start %s @m ["a"] channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// broadcast_start (C3)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected a root in [0, 2), found 2}}
  %t = fsdp.broadcast_start %s @m ["a"] root 2 channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// unshard_start (C2)
// expected-note @below {{the unit is declared here}}
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{expected token value 0 to have the shape of parameter 'w' ('tensor<4x4xf32>'), found 'tensor<16xf32>'}}
  %t = fsdp.unshard_start %s @u site 0 channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// reduce_scatter_start (C2)
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{'params' expected increasing indices below 1, found [1]}}
  %t = fsdp.reduce_scatter_start @u sum params [1] (%g) channel 1 id 3 : (tensor<4x4xf32>) -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// reduce_scatter_start (C4)
// expected-note @below {{the unit is declared here}}
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<16xf32>, %g: tensor<4x4xf32>) {
  // expected-error @below {{a shard of 12 elements does not divide the flat size 32}}
  %t = fsdp.reduce_scatter_start @u sum params [0] (%g) channel 1 id 3 : (tensor<4x4xf32>) -> !fsdp.token<tensor<12xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<12xf32>>
  return
}

// -----

// await (C1)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>) {
  %t = "fsdp.all_reduce_start"(%s) <{mesh = @m, axes = ["a"], reduction = #fsdp<reduction sum>, channel = 1 : i64, id = 0 : i64}>
      : (tensor<16xf32>) -> !fsdp.token<tensor<16xf32>>
  // expected-error @below {{expected results of types 'tensor<16xf32>', found 'tensor<8xf32>'}}
  %r = "fsdp.await"(%t) : (!fsdp.token<tensor<16xf32>>) -> tensor<8xf32>
  return
}

// -----

// await (C2)
func.func @f(%t: !fsdp.token<tensor<16xf32>>) {
  // expected-error @below {{expected the token of a collective that was started in the same block, found a block argument}}
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// await (C2)
func.func @f(%s: tensor<16xf32>) {
  %t = builtin.unrealized_conversion_cast %s : tensor<16xf32> to !fsdp.token<tensor<16xf32>>
  // expected-error @below {{started in the same block, found a 'builtin.unrealized_conversion_cast'}}
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return
}

// -----

// await (C2)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%s: tensor<16xf32>, %c: i1) {
  %t = fsdp.all_reduce_start %s @m ["a"] sum channel 1 id 3 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  scf.if %c {
    // expected-error @below {{started in the same block, found a collective of another block}}
    %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  }
  return
}
