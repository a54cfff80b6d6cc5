// RUN: fsdp-opt %s --fsdp-assign-buffers --split-input-file --verify-roundtrip | FileCheck %s

// A value that is read again is copied before it is overwritten. A value without later readers is not copied.
// DOC-BEFORE-BEGIN fsdp-assign-buffers
func.func private @over(%x: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @make(%x: tensor<16xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @join(%x: tensor<16xf32>, %y: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64})
    -> tensor<16xf32> attributes {fsdp.kernel}
// DOC-BEFORE-END
// CHECK-LABEL: fsdp.program @step layout @arena {
// CHECK-NEXT: fsdp.launch @make (@input.0[0, 64], @step.0[0, 64])
// CHECK-NEXT: fsdp.copy @step.0[0, 64] -> @step.1[0, 64] "value that is read again"
// CHECK-NEXT: fsdp.launch @over (@step.1[0, 64])
// CHECK-NEXT: fsdp.launch @over (@step.0[0, 64])
// CHECK-NEXT: fsdp.launch @join (@step.1[0, 64], @step.0[0, 64], @block[0, 64])
// CHECK-NEXT: }
// CHECK: fsdp.buffer @step.0 "kernel x" activations 64 in @step from 0 to 4
// CHECK: fsdp.buffer @step.1 "copy" staging 64 in @step from 1 to 4
// DOC-BEFORE-BEGIN fsdp-assign-buffers
func.func @step(%block: tensor<16xf32> {fsdp.block}, %x: tensor<16xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step"} {
  %a = fsdp.kernel_call @make(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %b = fsdp.kernel_call @over(%a) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
  %c = fsdp.kernel_call @over(%a) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
  %d = fsdp.kernel_call @join(%b, %c, %block) inplace [2]
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %d : tensor<16xf32>
}
// DOC-BEFORE-END

// -----

// An input is never overwritten. State that the program does not update is not overwritten either.
func.func private @over(%x: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @join(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @eval layout @arena {
// CHECK-NEXT: fsdp.copy @input.0[0, 64] -> @eval.0[0, 64] "x"
// CHECK-NEXT: fsdp.launch @over (@eval.0[0, 64])
// CHECK-NEXT: fsdp.launch @join (@eval.0[0, 64], @block[0, 64])
func.func @eval(%block: tensor<16xf32> {fsdp.block}, %x: tensor<16xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "eval"} {
  %a = fsdp.kernel_call @over(%x) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
  %b = fsdp.kernel_call @join(%a, %block) inplace [1] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %b : tensor<16xf32>
}

// -----

// Micro-batches: each iteration reads the next slice of the inputs. Sums are updated in place and start from a fill with
// zero. Two sums that start from one zero get two buffers. A slice of 24 bytes is not aligned, so the input is copied.
func.func private @zero(%o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %f : tensor<16xf32>
}
func.func private @add(%x: tensor<4x4xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @odd(%x: tensor<3xi64>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @join(%x: tensor<16xf32>, %y: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64})
    -> tensor<16xf32> attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena {
// CHECK-NEXT: fsdp.fill @step.0[0, 64]
// CHECK-NEXT: fsdp.fill @step.1[0, 64] "zero"
// CHECK-NEXT: fsdp.loop 5 {
// CHECK-NEXT:   fsdp.launch @add (@input.0[0, 64] step 64, @step.0[0, 64])
// CHECK-NEXT:   fsdp.copy @input.1[0, 24] step 24 -> @step.2[0, 24] "ids"
// CHECK-NEXT:   fsdp.launch @odd (@step.2[0, 24], @step.1[0, 64])
// CHECK-NEXT: }
// CHECK-NEXT: fsdp.launch @join (@step.0[0, 64], @step.1[0, 64], @block[0, 64])
// CHECK: fsdp.input_slot "x" @input.0 : tensor<5x16xf32> micro_batches 5
// CHECK: fsdp.input_slot "ids" @input.1 : tensor<5x3xi64> limit 7 micro_batches 5
// CHECK: fsdp.buffer @step.0 {{.*}} in @step from 0 to 6
// CHECK: fsdp.buffer @step.1 {{.*}} in @step from 1 to 6
// CHECK: fsdp.buffer @step.2 {{.*}} in @step from 4 to 5
// CHECK-NOT: func.func private @zero
func.func @step(%block: tensor<16xf32> {fsdp.block}, %x: tensor<5x16xf32> {fsdp.batch = "x"},
                %ids: tensor<5x3xi64> {fsdp.batch = "ids", fsdp.limit = 7 : i64})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.micro_batches = 5 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %z = fsdp.kernel_call @zero() inplace [-1] : () -> tensor<16xf32>
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %z, %t = %z) -> (tensor<16xf32>, tensor<16xf32>) {
    %v = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<5x16xf32> to tensor<16xf32>
    %e = tensor.expand_shape %v [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
    %u = fsdp.kernel_call @add(%e, %s) inplace [1] : (tensor<4x4xf32>, tensor<16xf32>) -> tensor<16xf32>
    %w = tensor.extract_slice %ids[%i, 0] [1, 3] [1, 1] : tensor<5x3xi64> to tensor<3xi64>
    %q = fsdp.kernel_call @odd(%w, %t) inplace [1] : (tensor<3xi64>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %u, %q : tensor<16xf32>, tensor<16xf32>
  }
  %b = fsdp.kernel_call @join(%r#0, %r#1, %block) inplace [2]
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %b : tensor<16xf32>
}

// -----

// An iteration that exchanges two carried values copies them through two temporary buffers.
func.func private @make(%x: tensor<16xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @join(%x: tensor<16xf32>, %y: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64})
    -> tensor<16xf32> attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena {
// CHECK: fsdp.loop 2 {
// CHECK-NEXT: fsdp.copy @step.1[0, 64] -> @step.2[0, 64] "exchange"
// CHECK-NEXT: fsdp.copy @step.0[0, 64] -> @step.3[0, 64] "exchange"
// CHECK-NEXT: fsdp.copy @step.2[0, 64] -> @step.0[0, 64]
// CHECK-NEXT: fsdp.copy @step.3[0, 64] -> @step.1[0, 64]
func.func @step(%block: tensor<16xf32> {fsdp.block}, %x: tensor<16xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = fsdp.kernel_call @make(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %b = fsdp.kernel_call @make(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %a, %t = %b) -> (tensor<16xf32>, tensor<16xf32>) {
    scf.yield %t, %s : tensor<16xf32>, tensor<16xf32>
  }
  %j = fsdp.kernel_call @join(%r#0, %r#1, %block) inplace [2]
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %j : tensor<16xf32>
}

// -----

// On one rank nothing is gathered or reduced: parameters are ranges of the state, and the flat buffer
// is the gradient. The padding and the range of the parameter without a gradient are filled with zero.
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 2 x 32 : f32 reshard true [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<16xf32>, 16, trainable = false, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"c", tensor<16xf32>, 32, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @grad(%x: tensor<16xf32>, %y: tensor<16xf32>, %z: tensor<16xf32>,
                        %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<64xf32> {fsdp.inout = 0 : i64}, %g: tensor<64xf32>) -> tensor<64xf32>
    attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @reference layout @reference_arena mesh @solo {
// CHECK-NEXT: fsdp.launch @grad (@state.0[0, 64], @state.0[64, 64], @state.0[128, 64], @reference.0[0, 64])
// CHECK-NEXT: fsdp.copy @reference.0[0, 64] -> @reference.0[128, 64] "gradient of a"
// CHECK-NEXT: fsdp.fill @reference.0[64, 64] "padding of u"
// CHECK-NEXT: fsdp.fill @reference.0[192, 64] "padding of u"
// CHECK-NEXT: fsdp.launch @sgd (@state.0[0, 256], @reference.0[0, 256])
// CHECK: fsdp.buffer @reference.0 "gradients of u" gradients 256 in @reference from 0 to 4
func.func @reference(%p: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<64xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "reference", fsdp.mesh = @solo} {
  %a, %b, %c = fsdp.unshard %p @u site 0 : tensor<64xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  %d = fsdp.kernel_call @grad(%a, %b, %c) inplace [-1]
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %g = fsdp.reduce_scatter @u avg params [0, 2] (%d, %d) : (tensor<16xf32>, tensor<16xf32>) -> tensor<64xf32>
  %q = fsdp.kernel_call @sgd(%p, %g) inplace [0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %q : tensor<64xf32>
}

// -----

// After a gather over 4 ranks each of 2 neighbours keeps half of the unit and gathers from the halves again.
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [4]>]
fsdp.unit @u shards 4 x 16 : f32 reshard true within 2 [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<16xf32>, 32, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @use(%x: tensor<16xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<16xf32> {fsdp.inout = 0 : i64}, %g: tensor<16xf32>, %h: tensor<16xf32>) -> tensor<16xf32>
    attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT: fsdp.collective 0 all_gather @state.0[0, 64] -> @step.0[0, 256] of 16 x f32 over ["shard"] unit @u
// CHECK-NEXT: fsdp.launch @use (@step.0[128, 64], @step.1[0, 64])
// CHECK-NEXT: fsdp.copy @step.0[0, 128] piece 128 of ["shard:2"] -> @step.2[0, 128] "u"
// CHECK-NEXT: fsdp.collective 1 all_gather @step.2[0, 128] -> @step.3[0, 256] of 32 x f32 over ["shard:2"] unit @u
// CHECK-NEXT: fsdp.launch @sgd (@state.0[0, 64], @step.3[0, 64], @step.1[0, 64])
// CHECK: fsdp.buffer @step.0 "gathered u" gathered 256 in @step from 0 to 2
// CHECK: fsdp.buffer @step.2 "kept part of u" gathered 128 in @step from 2 to 3
func.func @step(%p: tensor<16xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %a, %b = fsdp.unshard %p @u site 0 : tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>
  %x = fsdp.kernel_call @use(%b) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %k = fsdp.shard @u (%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
  %c, %d = fsdp.unshard %k @u site 1 : tensor<32xf32> -> tensor<16xf32>, tensor<16xf32>
  %q = fsdp.kernel_call @sgd(%p, %c, %x) inplace [0] : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %q : tensor<16xf32>
}

// -----

// A gradient that is summed over micro-batches is accumulated in its range of the flat buffer.
fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"a", tensor<4x4xf32>, 16, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @start(%x: tensor<16xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @add(%s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<16xf32> {fsdp.inout = 0 : i64}, %g: tensor<16xf32>) -> tensor<16xf32>
    attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT: fsdp.launch @start (@state.0[0, 64], @step.0[64, 64])
// CHECK-NEXT: fsdp.loop 3 {
// CHECK-NEXT:   fsdp.launch @add (@step.0[64, 64])
// CHECK-NEXT: }
// CHECK-NEXT: fsdp.fill @step.0[0, 64]
// CHECK-NEXT: fsdp.collective 0 reduce_scatter @step.0[0, 128] -> @step.1[0, 64] of 16 x f32 over ["shard"] reduce avg unit @u
// CHECK-NEXT: fsdp.collective 1 all_reduce @step.1[0, 64] -> @step.1[0, 64] of 16 x f32 over ["replicate"] reduce avg
// CHECK-NEXT: fsdp.launch @sgd (@state.0[0, 64], @step.1[0, 64])
// CHECK: fsdp.buffer @step.1 "gradient shard of u" gradients 64
func.func @step(%p: tensor<16xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = fsdp.kernel_call @start(%p) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %z) -> tensor<16xf32> {
    %t = fsdp.kernel_call @add(%s) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
    scf.yield %t : tensor<16xf32>
  }
  %e = tensor.expand_shape %r [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %g = fsdp.reduce_scatter @u avg params [0] (%e) : (tensor<4x4xf32>) -> tensor<16xf32>
  %h = fsdp.all_reduce %g @mesh ["replicate"] avg : tensor<16xf32>
  %q = fsdp.kernel_call @sgd(%p, %h) inplace [0] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %q : tensor<16xf32>
}

// -----

// The sums of rows that are sent to other ranks are staging buffers. The result for the rank's shard is a gradient.
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @table shards 2 x 16 : f32 reshard false rows [
  #fsdp.param<"table", tensor<8x4xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
func.func private @add(%x: tensor<3x4xf32>, %o: tensor<5x4xf32> {fsdp.out = 0 : i64}) -> tensor<5x4xf32> attributes {fsdp.kernel} {
  %r = tensor.empty() : tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}
func.func private @mean(%x: tensor<5x4xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel} {
  %r = tensor.empty() : tensor<16xf32>
  return %r : tensor<16xf32>
}
func.func private @other(%x: tensor<16xf32>, %o: tensor<5x4xf32> {fsdp.out = 0 : i64}) -> tensor<5x4xf32> attributes {fsdp.kernel} {
  %r = tensor.empty() : tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}
func.func private @step_sgd(%p: tensor<16xf32> {fsdp.inout = 0 : i64}, %g: tensor<16xf32>, %o: tensor<5x4xf32>) -> tensor<16xf32> attributes {fsdp.kernel} {
  return %p : tensor<16xf32>
}
// CHECK: fsdp.layout @arena
// CHECK: fsdp.buffer @step.0 {{.*}} staging 80
// CHECK: fsdp.buffer @step.1 {{.*}} gradients 64
// CHECK: fsdp.buffer @step.2 {{.*}} activations 80
func.func @step(%p: tensor<16xf32> {fsdp.unit = @table, fsdp.state = "parameter"}, %x: tensor<3x4xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %s = fsdp.kernel_call @add(%x) inplace [-1] {fsdp.rows = @table} : (tensor<3x4xf32>) -> tensor<5x4xf32>
  %g = fsdp.kernel_call @mean(%s) inplace [-1] {fsdp.unit = @table} : (tensor<5x4xf32>) -> tensor<16xf32>
  %o = fsdp.kernel_call @other(%g) inplace [-1] : (tensor<16xf32>) -> tensor<5x4xf32>
  %q = fsdp.kernel_call @step_sgd(%p, %g, %o) inplace [0] : (tensor<16xf32>, tensor<16xf32>, tensor<5x4xf32>) -> tensor<16xf32>
  return %q : tensor<16xf32>
}

// -----

// The next iteration reads a value from before the loop again: the value is copied before it is written over.
func.func private @make(%x: tensor<16xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @over(%x: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @join(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena {
// CHECK: fsdp.launch @make (@input.0[0, 64], @step.[[A:[0-9]+]][0, 64])
// CHECK: fsdp.loop 3 {
// CHECK-NEXT: fsdp.copy @step.[[A]][0, 64] -> @step.[[B:[0-9]+]][0, 64] "value that is read again"
// CHECK-NEXT: fsdp.launch @over (@step.[[B]][0, 64])
// CHECK-NEXT: fsdp.launch @join (@step.[[B]][0, 64],
func.func @step(%block: tensor<16xf32> {fsdp.block}, %x: tensor<16xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = fsdp.kernel_call @make(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %z = fsdp.kernel_call @make(%x) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %z) -> tensor<16xf32> {
    %b = fsdp.kernel_call @over(%a) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
    %t = fsdp.kernel_call @join(%b, %s) inplace [1] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %t : tensor<16xf32>
  }
  %d = fsdp.kernel_call @join(%r, %block) inplace [1] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %d : tensor<16xf32>
}
