// RUN: fsdp-opt %s --fsdp-sink-to-uses | FileCheck %s

// DOC-BEFORE-BEGIN fsdp-sink-to-uses
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @a shards 2 x 64 : f32 reshard true [
  #fsdp.param<"wa", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @b shards 2 x 64 : f32 reshard true [
  #fsdp.param<"wb", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @grow(%x: tensor<16xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32>
    attributes {fsdp.kernel}
func.func private @shrink(%x: tensor<128xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
func.func private @over(%x: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64})
    -> tensor<16xf32> attributes {fsdp.kernel}
// DOC-BEFORE-END

// The second gather waits until the first is used.
// CHECK-LABEL: func.func @gathers
// CHECK: %[[A:.*]] = fsdp.unshard %{{.*}} @a
// CHECK: %[[S:.*]] = fsdp.kernel_call @shrink(%[[A]])
// CHECK: %[[B:.*]] = fsdp.unshard %{{.*}} @b
// CHECK: fsdp.kernel_call @shrink(%[[B]])
// DOC-BEFORE-BEGIN fsdp-sink-to-uses
// DOC-AFTER: @gathers
func.func @gathers(%pa: tensor<64xf32>, %pb: tensor<64xf32>, %s: tensor<16xf32>) -> tensor<16xf32>
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %wb = fsdp.unshard %pb @b site 0 : tensor<64xf32> -> tensor<128xf32>
  %wa = fsdp.unshard %pa @a site 0 : tensor<64xf32> -> tensor<128xf32>
  %x = fsdp.kernel_call @shrink(%wa) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %y = fsdp.kernel_call @shrink(%wb) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %z = fsdp.kernel_call @add(%x, %y, %s) inplace [2] : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}
// DOC-BEFORE-END

// A kernel whose result is smaller than its operand stays early; a kernel whose
// result is larger moves late. Neither moves past a write over its operand.
// CHECK-LABEL: func.func @sizes
// CHECK: %[[X:.*]] = fsdp.kernel_call @shrink(%{{.*}})
// CHECK: %[[G:.*]] = fsdp.kernel_call @grow(%[[X]])
// CHECK: %[[O:.*]] = fsdp.kernel_call @over(%[[X]])
// CHECK: %[[L:.*]] = fsdp.kernel_call @shrink(%[[G]])
// CHECK: fsdp.kernel_call @add(%[[O]], %[[L]]
func.func @sizes(%w: tensor<16xf32>, %s: tensor<16xf32>) -> tensor<16xf32> attributes {fsdp.program = "eval"} {
  %a = fsdp.kernel_call @grow(%w) inplace [-1] : (tensor<16xf32>) -> tensor<128xf32>
  %x = fsdp.kernel_call @shrink(%a) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %g = fsdp.kernel_call @grow(%x) inplace [-1] : (tensor<16xf32>) -> tensor<128xf32>
  %o = fsdp.kernel_call @over(%x) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
  %l = fsdp.kernel_call @shrink(%g) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %z = fsdp.kernel_call @add(%o, %l, %s) inplace [2] : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}

// A read of a view does not move past a write over the viewed tensor, or over another view of it.
// CHECK-LABEL: func.func @views
// CHECK: %[[X:.*]] = fsdp.kernel_call @shrink(%{{.*}})
// CHECK: %[[H:.*]] = tensor.extract_slice %[[X]]
// CHECK: %[[G:.*]] = fsdp.kernel_call @read(%[[H]])
// CHECK: %[[O:.*]] = fsdp.kernel_call @over(%[[X]])
// CHECK: %[[L:.*]] = fsdp.kernel_call @shrink(%[[G]])
func.func private @read(%x: tensor<8xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32>
    attributes {fsdp.kernel}
func.func @views(%w: tensor<128xf32>, %s: tensor<16xf32>) -> tensor<16xf32> attributes {fsdp.program = "eval"} {
  %x = fsdp.kernel_call @shrink(%w) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %h = tensor.extract_slice %x[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
  %g = fsdp.kernel_call @read(%h) inplace [-1] : (tensor<8xf32>) -> tensor<128xf32>
  %o = fsdp.kernel_call @over(%x) inplace [0] : (tensor<16xf32>) -> tensor<16xf32>
  %l = fsdp.kernel_call @shrink(%g) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %z = fsdp.kernel_call @add(%o, %l, %s) inplace [2] : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}
// CHECK-LABEL: func.func @two_views
// CHECK: %[[X:.*]] = fsdp.kernel_call @shrink(%{{.*}})
// CHECK: %[[G:.*]] = fsdp.kernel_call @read(
// CHECK: %[[O:.*]] = fsdp.kernel_call @over_half(
// CHECK: %[[L:.*]] = fsdp.kernel_call @shrink(%[[G]])
func.func private @over_half(%x: tensor<8xf32> {fsdp.inout = 0 : i64}) -> tensor<8xf32> attributes {fsdp.kernel}
func.func private @join(%x: tensor<8xf32>, %y: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64})
    -> tensor<16xf32> attributes {fsdp.kernel}
func.func @two_views(%w: tensor<128xf32>, %s: tensor<16xf32>) -> tensor<16xf32> attributes {fsdp.program = "eval"} {
  %x = fsdp.kernel_call @shrink(%w) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %h = tensor.extract_slice %x[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
  %k = tensor.extract_slice %x[4] [8] [1] : tensor<16xf32> to tensor<8xf32>
  %g = fsdp.kernel_call @read(%h) inplace [-1] : (tensor<8xf32>) -> tensor<128xf32>
  %o = fsdp.kernel_call @over_half(%k) inplace [0] : (tensor<8xf32>) -> tensor<8xf32>
  %l = fsdp.kernel_call @shrink(%g) inplace [-1] : (tensor<128xf32>) -> tensor<16xf32>
  %z = fsdp.kernel_call @join(%o, %l, %s) inplace [2] : (tensor<8xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}
