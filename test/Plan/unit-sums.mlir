// RUN: fsdp-opt %s --fsdp-assign-buffers --split-input-file --verify-roundtrip | FileCheck %s

// Kernels write parts of gradients to the flat buffer. One all-reduce in place adds those of a and b. A gap is before c.
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>, #fsdp.axis<"tensor", [2]>]
fsdp.unit @u shards 2 x 32 : f32 reshard true [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<4x4xf32>, 16, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"c", tensor<16xf32>, 48, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @part(%p: tensor<32xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<32xf32> {fsdp.inout = 0 : i64}, %g: tensor<32xf32>) -> tensor<32xf32> attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 128], @step.0[0, 64])
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 128], @step.0[192, 64])
// CHECK-NEXT: fsdp.collective 0 all_reduce @step.0[192, 64] -> @step.0[192, 64] of 16 x f32 over ["tensor"] reduce sum
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 128], @step.0[64, 64])
// CHECK-NEXT: fsdp.collective 1 all_reduce @step.0[0, 128] -> @step.0[0, 128] of 32 x f32 over ["tensor"] reduce sum
// CHECK-NEXT: fsdp.fill @step.0[128, 64] "padding of u"
// CHECK-NEXT: fsdp.collective 2 reduce_scatter @step.0[0, 256] -> @step.1[0, 128] of 32 x f32 over ["shard"] reduce avg unit @u
// CHECK-NEXT: fsdp.launch @sgd
func.func @step(%p: tensor<32xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<32xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %x = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<16xf32>
  %a = fsdp.all_reduce %x @mesh ["tensor"] sum : tensor<16xf32>
  %z = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<16xf32>
  %c = fsdp.all_reduce %z @mesh ["tensor"] sum : tensor<16xf32>
  %y = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<16xf32>
  %s = fsdp.all_reduce %y @mesh ["tensor"] sum : tensor<16xf32>
  %b = tensor.expand_shape %s [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %g = fsdp.reduce_scatter @u avg params [0, 1, 2] (%a, %b, %c) : (tensor<16xf32>, tensor<4x4xf32>, tensor<16xf32>) -> tensor<32xf32>
  %q = fsdp.kernel_call @sgd(%p, %g) inplace [0] : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  return %q : tensor<32xf32>
}

// -----

// Parts that are cast after the sum get a buffer of their own. The cast of a is after the sum of b.
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>, #fsdp.axis<"tensor", [2]>]
fsdp.unit @u shards 2 x 32 : f32 reshard true [
  #fsdp.param<"a", tensor<32xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<32xf32>, 32, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @part(%p: tensor<32xf32>, %o: tensor<32xbf16> {fsdp.out = 0 : i64}) -> tensor<32xbf16> attributes {fsdp.kernel}
func.func private @cast(%x: tensor<32xbf16>, %o: tensor<32xf32> {fsdp.out = 0 : i64}) -> tensor<32xf32> attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<32xf32> {fsdp.inout = 0 : i64}, %g: tensor<32xf32>) -> tensor<32xf32> attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 128], @step.1[0, 64])
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 128], @step.1[64, 64])
// CHECK-NEXT: fsdp.collective 0 all_reduce @step.1[0, 128] -> @step.1[0, 128] of 64 x bf16 over ["tensor"] reduce sum
// CHECK-NEXT: fsdp.launch @cast (@step.1[0, 64], @step.0[0, 128])
// CHECK-NEXT: fsdp.launch @cast (@step.1[64, 64], @step.0[128, 128])
// CHECK-NEXT: fsdp.collective 1 reduce_scatter @step.0[0, 256]
// CHECK: fsdp.buffer @step.1 "sums of u" staging 128 in @step from 0 to 4
func.func @step(%p: tensor<32xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<32xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %x = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<32xbf16>
  %s = fsdp.all_reduce %x @mesh ["tensor"] sum : tensor<32xbf16>
  %y = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<32xbf16>
  %t = fsdp.all_reduce %y @mesh ["tensor"] sum : tensor<32xbf16>
  %a = fsdp.kernel_call @cast(%s) inplace [-1] : (tensor<32xbf16>) -> tensor<32xf32>
  %b = fsdp.kernel_call @cast(%t) inplace [-1] : (tensor<32xbf16>) -> tensor<32xf32>
  %g = fsdp.reduce_scatter @u avg params [0, 1] (%a, %b) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %q = fsdp.kernel_call @sgd(%p, %g) inplace [0] : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  return %q : tensor<32xf32>
}

// -----

// The part of a is read after its sum, and the sum of b is read by a kernel too. Neither is computed in the flat buffer.
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>, #fsdp.axis<"tensor", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"a", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<16xf32>, 16, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @part(%p: tensor<16xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<16xf32> {fsdp.inout = 0 : i64}, %x: tensor<16xf32>, %b: tensor<16xf32>, %g: tensor<16xf32>) -> tensor<16xf32>
    attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 64], @step.1[0, 64])
// CHECK-NEXT: fsdp.collective 0 all_reduce @step.1[0, 64] -> @step.2[0, 64] of 16 x f32 over ["tensor"] reduce sum
// CHECK-NEXT: fsdp.launch @part (@state.0[0, 64], @step.3[0, 64])
// CHECK-NEXT: fsdp.collective 1 all_reduce @step.3[0, 64] -> @step.4[0, 64] of 16 x f32 over ["tensor"] reduce sum
// CHECK-NEXT: fsdp.copy @step.2[0, 64] -> @step.0[0, 64]
// CHECK-NEXT: fsdp.copy @step.4[0, 64] -> @step.0[64, 64]
// CHECK-NEXT: fsdp.collective 2 reduce_scatter @step.0[0, 128]
func.func @step(%p: tensor<16xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<16xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %x = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %a = fsdp.all_reduce %x @mesh ["tensor"] sum : tensor<16xf32>
  %y = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<16xf32>) -> tensor<16xf32>
  %b = fsdp.all_reduce %y @mesh ["tensor"] sum : tensor<16xf32>
  %g = fsdp.reduce_scatter @u avg params [0, 1] (%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %q = fsdp.kernel_call @sgd(%p, %x, %b, %g) inplace [0] : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %q : tensor<16xf32>
}

// -----

// A kernel reads the sum of a before that of b is complete, so each has its own all-reduce.
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>, #fsdp.axis<"tensor", [2]>]
fsdp.unit @u shards 2 x 32 : f32 reshard true [
  #fsdp.param<"a", tensor<32xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"b", tensor<32xf32>, 32, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @part(%p: tensor<32xf32>, %o: tensor<32xbf16> {fsdp.out = 0 : i64}) -> tensor<32xbf16> attributes {fsdp.kernel}
func.func private @cast(%x: tensor<32xbf16>, %o: tensor<32xf32> {fsdp.out = 0 : i64}) -> tensor<32xf32> attributes {fsdp.kernel}
func.func private @sgd(%p: tensor<32xf32> {fsdp.inout = 0 : i64}, %g: tensor<32xf32>) -> tensor<32xf32> attributes {fsdp.kernel}
// CHECK-LABEL: fsdp.program @step layout @arena mesh @mesh {
// CHECK-NEXT: fsdp.launch @part
// CHECK-NEXT: fsdp.collective 0 all_reduce [[A:@step.[0-9]+\[0, 64\]]] -> [[A]] of 32 x bf16
// CHECK-NEXT: fsdp.launch @cast ([[A]], @step.0[0, 128])
// CHECK-NEXT: fsdp.launch @part
// CHECK-NEXT: fsdp.collective 1 all_reduce [[B:@step.[0-9]+\[64, 64\]]] -> [[B]] of 32 x bf16
// CHECK-NEXT: fsdp.launch @cast ([[B]], @step.0[128, 128])
// CHECK-NEXT: fsdp.collective 2 reduce_scatter @step.0[0, 256]
func.func @step(%p: tensor<32xf32> {fsdp.unit = @u, fsdp.state = "parameter"})
    -> (tensor<32xf32> {fsdp.updates = 0 : i64}) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %x = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<32xbf16>
  %s = fsdp.all_reduce %x @mesh ["tensor"] sum : tensor<32xbf16>
  %a = fsdp.kernel_call @cast(%s) inplace [-1] : (tensor<32xbf16>) -> tensor<32xf32>
  %y = fsdp.kernel_call @part(%p) inplace [-1] : (tensor<32xf32>) -> tensor<32xbf16>
  %t = fsdp.all_reduce %y @mesh ["tensor"] sum : tensor<32xbf16>
  %b = fsdp.kernel_call @cast(%t) inplace [-1] : (tensor<32xbf16>) -> tensor<32xf32>
  %g = fsdp.reduce_scatter @u avg params [0, 1] (%a, %b) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %q = fsdp.kernel_call @sgd(%p, %g) inplace [0] : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  return %q : tensor<32xf32>
}
