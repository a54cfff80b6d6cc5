// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// (kernel_call C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func @f(%x: tensor<16xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{expected @f to be a function with 'fsdp.kernel', found a function without it}}
  %0 = fsdp.kernel_call @f(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// (kernel_call C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func @f(%x: tensor<16xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{expected argument 1 of @k to have 'fsdp.out = 0', found 'fsdp.inout = 0'}}
  %0 = fsdp.kernel_call @k(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// (kernel_call C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func @f(%x: tensor<16xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{expected argument 0 of @k to have 'fsdp.inout = 0', found neither 'fsdp.out' nor 'fsdp.inout'}}
  %0 = fsdp.kernel_call @k(%x, %x) inplace [0] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// (kernel_call C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func @f(%x: tensor<16xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{expected operands and results without 'inplace' to have the argument types of @k, ('tensor<16xf32>', 'tensor<16xf32>'), found ('tensor<16xf32>', 'tensor<8xf32>')}}
  %0 = fsdp.kernel_call @k(%x, %y) inplace [1] : (tensor<16xf32>, tensor<8xf32>) -> tensor<16xf32>
  return
}

// -----

// (kernel_call C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func @f(%x: tensor<16xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{'inplace' expected 1 entry, found 0}}
  %0 = fsdp.kernel_call @k(%x, %x) inplace [] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// (kernel_call C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func @f(%x: tensor<16xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{expected the result types of @k, ('tensor<16xf32>'), found ('tensor<8xf32>')}}
  %0 = fsdp.kernel_call @k(%x, %x) inplace [1] : (tensor<16xf32>, tensor<16xf32>) -> tensor<8xf32>
  return
}

// -----

// (layout C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{'fsdp.fill' op is not allowed in 'fsdp.layout'; expected only buffers, state slots and input slots}}
  fsdp.fill @b[0, 4]
}

// -----

// (layout C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected the 64 bytes at offset 32 to lie in the device arena of 512 bytes, at a multiple of 64}}
  fsdp.buffer @c "c" inputs 64 at 32
}

// -----

// (layout C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected the 64 bytes at offset 512 to lie in the device arena of 512 bytes, at a multiple of 64}}
  fsdp.buffer @c "c" inputs 64 at 512
}

// -----

// (layout C3)
fsdp.layout @arena arena 512 {
  // expected-error @below {{expected the 128 bytes at offset 448 to lie in the device arena of 512 bytes, at a multiple of 64}}
  fsdp.buffer @c "c" inputs 128 at 448
}

// -----

// (layout C3)
fsdp.layout @arena arena 512 attributes {fsdp.file_bytes = 128 : i64} {
  // expected-error @below {{expected the 128 bytes at offset 64 to lie in the file of 128 bytes, at a multiple of 64}}
  fsdp.buffer @c "c" optimizer 128 at 64 {fsdp.file}
}

// -----

// (layout C2)
// expected-error @below {{expected @block to be a buffer of the layout, found no symbol @block in it}}
fsdp.layout @arena arena 512 block @block {
}

// -----

// (layout C3)
// expected-error @below {{expected the workspace of 1024 bytes at 0 to lie in the arena of 512 bytes, at a multiple of 64}}
fsdp.layout @arena arena 512 attributes {shared_bytes = 1024 : i64} {
}

// -----

// (layout C4)
// expected-error @below {{expected 'workers' to be at least 0, found -64}}
fsdp.layout @arena arena 512 attributes {workers = -64 : i64} {
}

// -----

// (buffer C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected a size of at least 0, found -1}}
  fsdp.buffer @c "c" inputs -1
}

// -----

// (buffer C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected all of 'in', 'from' and 'to', or none of them, found 'in' and 'from'}}
  fsdp.buffer @c "c" inputs 64 in @step from 3
}

// -----

// (buffer C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected 0 ≤ from ≤ to, found 3 and 2}}
  fsdp.buffer @c "c" inputs 64 in @step from 3 to 2
}

// -----

// (state_slot C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected @k to be an 'fsdp.unit', found a 'func.func'}}
  fsdp.state_slot @k parameter @b : tensor<16xf32>
}

// -----

// (state_slot C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected a buffer of 128 bytes, found @b of 64}}
  fsdp.state_slot @u parameter @b : tensor<32xf32>
}

// -----

// (state_slot C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected @c to be a persistent buffer of the layout (without 'in'), found no symbol @c in it}}
  fsdp.state_slot @u parameter @c : tensor<16xf32>
}

// -----

// (state_slot C2)
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" gathered 64 in @step from 0 to 3
  // expected-error @below {{expected @b to be a persistent buffer of the layout (without 'in'), found a buffer with 'in'}}
  fsdp.state_slot @u parameter @b : tensor<16xf32>
}

// -----

// (input_slot C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected a tensor type of static shape, found 'tensor<?xf32>'}}
  fsdp.input_slot "x" @b : tensor<?xf32>
}

// -----

// (input_slot C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected a leading dimension of 3 micro-batches, found 'tensor<2x8xf32>'}}
  fsdp.input_slot "x" @b : tensor<2x8xf32> micro_batches 3
}

// -----

// (input_slot C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @b "b" inputs 64
  // expected-error @below {{expected extra ids outside [0, limit), found 3 with limit 7}}
  fsdp.input_slot "x" @b : tensor<8xi64> limit 7 or [-100, 3]
}

// -----

// (program C1)
// expected-error @below {{expected @nowhere to be an 'fsdp.layout', found no symbol @nowhere}}
fsdp.program @step layout @nowhere {
}

// -----

// (program C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
// expected-error @below {{expected @u to be an 'fsdp.mesh', found an 'fsdp.unit'}}
fsdp.program @step layout @arena mesh @u {
}

// -----

// (program C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{is not a command; expected only commands in 'fsdp.program'}}
  %0 = arith.constant 0 : index
}

// -----

// (S1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
// expected-note @below {{the layout is declared here}}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected @nothing to be a buffer of @arena, found no symbol @nothing in it}}
  fsdp.fill @nothing[0, 4]
}

// -----

// (S1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
// expected-note @below {{the buffer is declared here}}
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{the slice of 65 bytes at offset 0 ends at 65, after the end of its buffer of 64 bytes}}
  fsdp.fill @s[0, 65]
}

// -----

// (S1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
// expected-note @below {{the buffer is declared here}}
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected a slice with an offset, a size and a step of at least 0, found -4, 4 and 0}}
  fsdp.fill @s[-4, 4]
}

// -----

// (S1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
// expected-note @below {{the buffer is declared here}}
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{ends at 18446744073709551614, after the end of its buffer of 64 bytes}}
  fsdp.fill @s[9223372036854775807, 9223372036854775807]
}

// -----

// (S1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
// expected-note @below {{the buffer is declared here}}
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena {
  fsdp.loop 3 {
    // expected-error @below {{the slice of 32 bytes at offset 0 ends at 96 in the last of 3 iterations (step 32), after the end of its buffer of 64 bytes}}
    fsdp.fill @s[0, 32] step 32
  }
}

// -----

// (S2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{a slice outside a loop cannot have a step, found step 4}}
  fsdp.fill @g[0, 4] step 4
}

// -----

// (launch C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected @nothing to be a function with 'fsdp.kernel', found no symbol @nothing}}
  fsdp.launch @nothing (@s[0, 64])
}

// -----

// (launch C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected 2 bindings, found 1}}
  fsdp.launch @k (@s[0, 64])
}

// -----

// (launch C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{binding 0 expected 64 bytes for 'tensor<16xf32>', found 32}}
  fsdp.launch @k (@g[0, 32], @s[0, 64])
}

// -----

// (launch C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{binding 0 expected an offset, a step and a piece that are multiples of 64, found 32, 0 and 0}}
  fsdp.launch @k (@g[32, 64], @s[0, 64])
}

// -----

// (collective C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected axes of the program's mesh, or one group of neighbours such as "shard:2", found ["rows"]}}
  fsdp.collective 0 all_gather @s[0, 64] -> @g[0, 128] of 16 x f32 over ["rows"]
}

// -----

// (collective C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected 64 bytes of source and 128 of target for 16 x 'f32' on 2 ranks, found 64 and 64}}
  fsdp.collective 0 all_gather @s[0, 64] -> @g[0, 64] of 16 x f32 over ["shard"]
}

// -----

// (slice S1): the piece of the last rank is outside the buffer
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.layout @arena arena 512 {
  // expected-note @below {{the buffer is declared here}}
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{the slice of 64 bytes at offset 64 ends at 192 for the last of 2 ranks (piece 64), after the end of its buffer of 128 bytes}}
  fsdp.fill @g[64, 64] piece 64 of ["shard"]
}

// -----

// (slice S3)
fsdp.layout @arena arena 512 {
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena {
  // expected-error @below {{the slice has pieces over ["shard"], but the program names no mesh}}
  fsdp.fill @g[0, 64] piece 64 of ["shard"]
}

// -----

// (slice S3): a group size that does not divide the axis
fsdp.mesh @mesh [#fsdp.axis<"shard", [4]>]
fsdp.layout @arena arena 512 {
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected a piece of at least 0 bytes over axes of the program's mesh, found 32 bytes over ["shard:3"]}}
  fsdp.fill @g[0, 32] piece 32 of ["shard:3"]
}

// -----

// (collective C1): groups together with another axis
fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [4]>]
fsdp.layout @arena arena 512 {
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected axes of the program's mesh, or one group of neighbours such as "shard:2", found ["replicate", "shard:2"]}}
  fsdp.collective 0 all_reduce @g[0, 64] -> @g[64, 64] of 16 x f32 over ["replicate", "shard:2"] reduce sum
}

// -----

// (collective C3): a piece over other axes
fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [2]>]
fsdp.layout @arena arena 512 {
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected source and target not to overlap}}
  fsdp.collective 0 all_gather @g[0, 64] piece 64 of ["replicate"] -> @g[0, 128] of 16 x f32 over ["shard"]
}

// -----

// (collective C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected source and target not to overlap}}
  fsdp.collective 0 broadcast @s[0, 8] -> @s[4, 8] of 2 x f32 over ["shard"]
}

// -----

// (collective C4)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.collective 3 broadcast @s[0, 8] -> @s[8, 8] of 2 x f32 over ["shard"]
  // expected-error @below {{expected a unique id, found 3 a second time}}
  fsdp.collective 3 broadcast @s[0, 8] -> @s[8, 8] of 2 x f32 over ["shard"]
}

// -----

// (collective C5)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{on channel 1 expected an 'fsdp.wait' for id 0 later in the same block}}
  fsdp.collective 0 broadcast @s[0, 8] -> @s[8, 8] of 2 x f32 over ["shard"] channel 1
}

// -----

// (collective C6)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{all_reduce requires 'reduce'}}
  fsdp.collective 0 all_reduce @s[0, 8] -> @s[8, 8] of 2 x f32 over ["shard"]
}

// -----

// (collective C6)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{broadcast takes no 'reduce'}}
  fsdp.collective 0 broadcast @s[0, 8] -> @s[8, 8] of 2 x f32 over ["shard"] reduce sum
}

// -----

// (wait C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected an asynchronous collective or copy with id 4 before this wait}}
  fsdp.wait 4
}

// -----

// (copy C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected source and target of equal size, found 8 and 4 bytes}}
  fsdp.copy @s[0, 8] -> @g[0, 4]
}

// -----

// (copy C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected source and target not to overlap}}
  fsdp.copy @s[0, 8] -> @s[4, 8]
}

// -----

// (initialise C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{@u has no parameter 1: expected an index below 1}}
  fsdp.initialise @u parameter 1
}

// -----

// (collective C1)
fsdp.layout @arena arena 512 {
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena {
  // expected-error @below {{has the axes ["shard"], but the program names no mesh}}
  fsdp.collective 0 broadcast @g[0, 8] -> @g[8, 8] of 2 x f32 over ["shard"]
}

// -----

// (initialise C1)
fsdp.layout @arena arena 512 {
}
fsdp.program @step layout @arena {
  // expected-error @below {{expected @arena to be an 'fsdp.unit', found an 'fsdp.layout'}}
  fsdp.initialise @arena parameter 0
}

// -----

// (initialise C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected a state slot of @u with role master in @arena}}
  fsdp.initialise @u master 0
}

// -----

// (loop C1)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected at least one iteration, found 0}}
  fsdp.loop 0 {
  }
}

// -----

// (loop C2)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena {
  fsdp.loop 3 {
    // expected-error @below {{'fsdp.loop' op is not allowed in 'fsdp.loop'; expected commands other than 'fsdp.loop'}}
    fsdp.loop 2 {
    }
  }
}

// -----

fsdp.layout @arena arena 4096 attributes {host_bytes = 64 : i64} {
  // expected-error @below {{expected the 64 bytes at offset 64 to lie in the host arena of 64 bytes, at a multiple of 64}}
  fsdp.buffer @s "s" optimizer 64 host at 64
}

// -----

// (copy C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{on channel 3 expected an 'fsdp.wait' for id 5 later in the same block}}
  fsdp.copy @s[0, 8] -> @g[0, 8] {fsdp.channel = 3 : i64, fsdp.id = 5 : i64}
}

// -----

// (copy C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  // expected-error @below {{expected channel 0, or a positive channel and an id; found channel 3 without an id}}
  fsdp.copy @s[0, 8] -> @g[0, 8] {fsdp.channel = 3 : i64}
}

// -----

// (copy C3)
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
fsdp.layout @arena arena 512 {
  fsdp.buffer @s "s" parameters 64 at 0
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @g "g" gathered 128 at 64 in @step from 0 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.copy @s[0, 8] -> @g[0, 8] {fsdp.channel = 3 : i64, fsdp.id = 5 : i64}
  // expected-error @below {{expected a unique id, found 5 a second time}}
  fsdp.copy @s[0, 8] -> @g[8, 8] {fsdp.channel = 3 : i64, fsdp.id = 5 : i64}
  fsdp.wait 5
}
