// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// mesh (C1)
// expected-error @below {{expected at least one axis, found none}}
fsdp.mesh @m []

// -----

// mesh (C1)
// expected-error @below {{expected axes with different names, found two called 'a'}}
fsdp.mesh @m [#fsdp.axis<"a", [2]>, #fsdp.axis<"a", [2]>]

// -----

// mesh (C2)
// expected-error @below {{axis 'a' expected factors of at least 1, found [2, 0]}}
fsdp.mesh @m [#fsdp.axis<"a", [2, 0]>]

// -----

// unit (C1)
// expected-error @below {{parameter 'w' expected elements of the type of the unit, 'f32', found 'tensor<4xf64>'}}
fsdp.unit @u shards 1 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4xf64>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unit (C2)
// expected-error @below {{parameter 'b' expected an offset of at least 4, the end of the parameters before it, found 3}}
fsdp.unit @u shards 1 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>,
  #fsdp.param<"b", tensor<4xf32>, 3, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unit (C2)
// expected-error @below {{the last parameter ends at element 36, after the end of the flat buffer of 32 elements}}
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4xf32>, 32, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unit (C3)
// expected-error @below {{expected parameters with different names, found two called 'w'}}
fsdp.unit @u shards 1 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>,
  #fsdp.param<"w", tensor<4xf32>, 4, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unshard (C1)
func.func @f(%s: tensor<16xf32>) {
  // expected-error @below {{expected @u to be an 'fsdp.unit', found no symbol @u}}
  %w = fsdp.unshard %s @u site 0 : tensor<16xf32> -> tensor<4x4xf32>
  return
}

// -----

// unshard (C2)
// expected-note @below {{the unit is declared here}}
fsdp.unit @u shards 1 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<16xf32>) {
  // expected-error @below {{expected result 0 to have the shape of parameter 'w' ('tensor<4x4xf32>'), found 'tensor<8x2xf32>'}}
  %w = fsdp.unshard %s @u site 0 : tensor<16xf32> -> tensor<8x2xf32>
  return
}

// -----

// unshard (C2)
fsdp.unit @u shards 1 x 16 : f32 reshard true []
func.func @f(%s: tensor<16xf32>) {
  // expected-error @below {{expected 0 results, one per parameter of @u, found 1}}
  %w = fsdp.unshard %s @u site 0 : tensor<16xf32> -> tensor<8x2xf32>
  return
}

// -----

// unshard (C3)
// expected-note @below {{the unit is declared here}}
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<12xf32>) {
  // expected-error @below {{expected a shard whose size divides the 32 elements of the flat buffer of @u, found 12 elements}}
  %w = fsdp.unshard %s @u site 0 : tensor<12xf32> -> tensor<4x4xf32>
  return
}

// -----

// reduce_scatter (C2)
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%g: tensor<4x4xf32>) {
  // expected-error @below {{'params' contains index 1; expected indices of parameters, which are less than 1 for @u}}
  %w = fsdp.reduce_scatter @u sum params [1] (%g) : (tensor<4x4xf32>) -> tensor<16xf32>
  return
}

// -----

// reduce_scatter (C2)
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<4x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%g: tensor<4x4xf32>) {
  // expected-error @below {{expected 0 operands, one per entry of 'params', found 1}}
  %w = fsdp.reduce_scatter @u sum params [] (%g) : (tensor<4x4xf32>) -> tensor<16xf32>
  return
}

// -----

// all_reduce (C1)
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{expected @m to be an 'fsdp.mesh', found no symbol @m}}
  %w = fsdp.all_reduce %g @m ["a"] sum : tensor<4xf32>
  return
}

// -----

// all_reduce (C2)
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" whose N divides the size of the axis, found "b"}}
  %w = fsdp.all_reduce %g @m ["b"] sum : tensor<4xf32>
  return
}

// -----

// all_gather (C3)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{expected a result of type 'tensor<8xf32>', the inputs of 2 ranks one after another, found 'tensor<12xf32>'}}
  %w = fsdp.all_gather %g @m ["a"] : tensor<4xf32> -> tensor<12xf32>
  return
}

// -----

// flat_reduce_scatter (C3)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{expected a result of type 'tensor<2xf32>', the input divided among 2 ranks, found 'tensor<4xf32>'}}
  %w = fsdp.flat_reduce_scatter %g @m ["a"] sum : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// flat_reduce_scatter (C3): an input that the ranks cannot divide
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%g: tensor<5xf32>) {
  // expected-error @below {{expected an input that 2 ranks can divide equally, found 'tensor<5xf32>'}}
  %w = fsdp.flat_reduce_scatter %g @m ["a"] sum : tensor<5xf32> -> tensor<2xf32>
  return
}

// -----

// cross_entropy (C4): an axis that the mesh does not have
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%x: tensor<6x10xf32>, %t: tensor<6xi64>, %c: tensor<i64>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" whose N divides the size of the axis, found "b"}}
  %l, %e = fsdp.cross_entropy %x, %t classes %c over @m ["b"] : tensor<6x10xf32>, tensor<6xi64>, tensor<i64> -> tensor<f32>, tensor<6xf32>
  return
}

// -----

// cross_entropy (C4): a coordinate without axes
func.func @f(%x: tensor<6x10xf32>, %t: tensor<6xi64>, %c: tensor<i64>) {
  // expected-error @below {{expected 'mesh', 'axes' and the coordinate of the rank, or none of them}}
  %l, %e = "fsdp.cross_entropy"(%x, %t, %c) : (tensor<6x10xf32>, tensor<6xi64>, tensor<i64>) -> (tensor<f32>, tensor<6xf32>)
  return
}

// -----

// cross_entropy (C1): another number of normalizers
func.func @f(%x: tensor<6x10xf32>, %t: tensor<6xi64>) {
  // expected-error @below {{expected 6 normalizers (lse), one per row of the logits, found 4}}
  %l, %e = fsdp.cross_entropy %x, %t : tensor<6x10xf32>, tensor<6xi64> -> tensor<f32>, tensor<4xf32>
  return
}

// -----

// dispatch (C3): one operand for two results
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'inplace' contains operand 0 twice; expected each operand at most once}}
  %y:2 = fsdp.dispatch (%x) inplace [0, 0] : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%a: tensor<8xf32>):
    fsdp.yield %a, %a : tensor<8xf32>, tensor<8xf32>
  }
  return
}

// -----

// own_piece (C3)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%g: tensor<6xf32>) {
  // expected-error @below {{expected a result of type 'tensor<3xf32>', the input divided among 2 ranks, found 'tensor<2xf32>'}}
  %w = fsdp.own_piece %g @m ["a"] : tensor<6xf32> -> tensor<2xf32>
  return
}

// -----

// unit (C5)
// expected-error @below {{expected 'reshard false' with 'hoisted', found 'reshard true'; a hoisted unit is gathered once per step, not again in the backward}}
fsdp.unit @u shards 1 x 16 : f32 reshard true hoisted []

// -----

// unit (C6)
// expected-error @below {{'within' expected a number from 2 to 3 that divides the number of shards, 4, found 3}}
fsdp.unit @u shards 4 x 16 : f32 reshard true within 3 []

// -----

// unit (C6)
// expected-error @below {{'within' expected shards that can be divided into several groups of at least 2, found 2 shards}}
fsdp.unit @u shards 2 x 16 : f32 reshard true within 2 []

// -----

// unit (C7)
// expected-error @below {{expected a float type for trainable parameters, found 'i8'}}
fsdp.unit @u shards 1 x 64 : i8 reshard true [#fsdp.param<"q", tensor<4xi8>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// -----

// unit (C6)
// expected-error @below {{'within' expected a number from 2 to 3 that divides the number of shards, 4, found 4}}
fsdp.unit @u shards 4 x 16 : f32 reshard true within 4 []

// -----

// unit (C6)
// expected-error @below {{'within' expected 'reshard true', found 'reshard false'}}
fsdp.unit @u shards 4 x 16 : f32 reshard false within 2 []

// -----

// unit (C6)
// expected-error @below {{'within' expected parameters that are sharded over "shard", found parameters that every rank stores}}
fsdp.unit @u shards 4 x 16 : f32 reshard true within 2 [] placement <parameters = [], gradients = ["shard"], optimizer = ["shard"]>

// -----

// mesh (C1)
// expected-error @below {{expected no ':' in the name of axis 'shard:2': 'axis:N' denotes groups of N neighbours on an axis}}
fsdp.mesh @m [#fsdp.axis<"shard:2", [4]>]

// -----

// all_reduce (C2): a group size that does not divide the axis
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"shard", [4]>]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" whose N divides the size of the axis, found "shard:3"}}
  %y = fsdp.all_reduce %x @m ["shard:3"] sum : tensor<4xf32>
  return
}

// -----

// all_reduce (C2): a group size that is not a number
// expected-note @below {{the mesh is declared here}}
fsdp.mesh @m [#fsdp.axis<"shard", [4]>]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected axes of @m, or groups "AXIS:N" whose N divides the size of the axis, found "shard:"}}
  %y = fsdp.all_reduce %x @m ["shard:"] sum : tensor<4xf32>
  return
}

// -----

// all_reduce (C2): an axis together with groups on it
fsdp.mesh @m [#fsdp.axis<"shard", [4]>]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected each axis once, whole or as groups, found "shard:2" after "shard"}}
  %y = fsdp.all_reduce %x @m ["shard", "shard:2"] sum : tensor<4xf32>
  return
}

// -----

// unit (C7)
// expected-error @below {{expected a float or integer type, found 'index'}}
fsdp.unit @u shards 1 x 64 : index reshard true []

// -----

// unit (C4)
// expected-error @below {{'placement' expected gradients to be [], ["shard"] or ["shard", "replicate"], found ["replicate"]}}
fsdp.unit @u shards 1 x 16 : f32 reshard false [] placement <parameters = [], gradients = ["replicate"], optimizer = ["shard"]>

// -----

// unit (C4)
// expected-error @below {{'placement' expected gradients to have at least the axes of parameters, ["shard"], found []}}
fsdp.unit @u shards 1 x 16 : f32 reshard false [] placement <parameters = ["shard"], gradients = [], optimizer = ["shard"]>

// -----

// broadcast (C3)
fsdp.mesh @m [#fsdp.axis<"a", [2]>]
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{expected 'root' to be the index of a rank in its group, from 0 to 1, found 2}}
  %w = fsdp.broadcast %g @m ["a"] root 2 : tensor<4xf32>
  return
}

// -----

// gather_rows (C2)
func.func @f(%t: tensor<10x4xf32>, %i: tensor<3xi64>) {
  // expected-error @below {{expected rows of type 'tensor<3x4xf32>', found 'tensor<3x5xf32>'}}
  %w = fsdp.gather_rows %t[%i] : tensor<10x4xf32>, tensor<3xi64> -> tensor<3x5xf32>
  return
}

// -----

// scatter_add_rows (C3)
func.func @f(%u: tensor<3x4xf32>, %i: tensor<3xi64>, %t: tensor<9x4xf32>) {
  // expected-error @below {{expected init of type 'tensor<10x4xf32>', found 'tensor<9x4xf32>'}}
  %w = fsdp.scatter_add_rows %u at %i into %t (tensor<9x4xf32>) : tensor<3x4xf32>, tensor<3xi64> -> tensor<10x4xf32>
  return
}

// -----

// cross_entropy (C1)
func.func @f(%x: tensor<6x10xf32>, %t: tensor<5xi64>) {
  // expected-error @below {{expected 6 targets, one per row of the logits, found 5}}
  %l, %e = fsdp.cross_entropy %x, %t : tensor<6x10xf32>, tensor<5xi64> -> tensor<f32>, tensor<6xf32>
  return
}

// -----

// dispatch (C1)
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected block arguments of types ('tensor<8xf32>'), found ('tensor<4xf32>')}}
  fsdp.dispatch (%x) inplace [] : (tensor<8xf32>) -> () {
  ^bb0(%a: tensor<4xf32>):
    fsdp.yield
  }
  return
}

// -----

// dispatch (C2)
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected the body to end with an 'fsdp.yield' whose operands have the types ('tensor<8xf32>'), found 'fsdp.yield' with operands of types ()}}
  %y = fsdp.dispatch (%x) inplace [-1] : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    fsdp.yield
  }
  return
}

// -----

// dispatch (C3)
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'inplace' expected 1 entry, one per result, found 0}}
  %y = fsdp.dispatch (%x) inplace [] : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    fsdp.yield %a : tensor<8xf32>
  }
  return
}

// -----

// dispatch (C3)
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'inplace' contains 1; expected -1 or indices of operands, which are less than 1}}
  %y = fsdp.dispatch (%x) inplace [1] : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    fsdp.yield %a : tensor<8xf32>
  }
  return
}

// -----

// dispatch (C4)
func.func @f(%x: tensor<?xf32>) {
  // expected-error @below {{expected static shapes, found 'tensor<?xf32>'}}
  fsdp.dispatch (%x) inplace [] : (tensor<?xf32>) -> () {
  ^bb0(%a: tensor<?xf32>):
    fsdp.yield
  }
  return
}

// -----

// unit (C9)
// expected-error @below {{expected names in UTF-8 without control characters, found "w\1B\FF"}}
fsdp.unit @u shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w\1B\FF", tensor<10x12xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unit (C8)
// expected-error @below {{with 'rows' expected a shard size that is a multiple of the row length 12, found 64}}
fsdp.unit @u shards 2 x 64 : f32 reshard true rows [
  #fsdp.param<"w", tensor<10x12xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unit (C8)
// expected-error @below {{with 'rows' expected one parameter, a float tensor of rank 2 at offset 0; found 1 parameter, 'tensor<10xf32>' at offset 0}}
fsdp.unit @u shards 2 x 64 : f32 reshard true rows [
  #fsdp.param<"w", tensor<10xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// -----

// unshard_rows (C1)
// expected-note @below {{the unit is declared here}}
fsdp.unit @u shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<16x8xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<64xf32>, %ids: tensor<3xi64>) {
  // expected-error @below {{expected @u to be a unit with 'rows', found a unit without it}}
  %e = fsdp.unshard_rows %s[%ids] @u : tensor<64xf32>, tensor<3xi64> -> tensor<3x8xf32>
  return
}

// -----

// unshard_rows (C2)
fsdp.unit @u shards 2 x 64 : f32 reshard true rows [
  #fsdp.param<"w", tensor<16x8xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%s: tensor<64xf32>, %ids: tensor<3xi64>) {
  // expected-error @below {{expected rows of type 'tensor<3x8xf32>', found 'tensor<3x4xf32>'}}
  %e = fsdp.unshard_rows %s[%ids] @u : tensor<64xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return
}

// -----

// reduce_rows (C3)
fsdp.unit @u shards 2 x 64 : f32 reshard true rows [
  #fsdp.param<"w", tensor<16x8xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func @f(%g: tensor<3x8xf32>, %ids: tensor<3xi64>) {
  // expected-error @below {{expected the shard tensor to have 64 elements (one shard of @u) or 128 (the flat buffer of @u), found 32}}
  %s = fsdp.reduce_rows @u avg %g at %ids : tensor<3x8xf32>, tensor<3xi64> -> tensor<32xf32>
  return
}
