// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=5" --split-input-file -verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=5 param-storage=both" --split-input-file | FileCheck %s --check-prefix=BOTH
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=5 auto-storage=both" --split-input-file | FileCheck %s --check-prefix=BOTH
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=5 auto-storage=both param-storage=master" --split-input-file -verify-diagnostics | FileCheck %s

// Frozen parameters and other element types have units of
// their own. The smaller unit is named by its type.
// CHECK-LABEL: fsdp.mesh @mesh
// CHECK: fsdp.unit @layers.0 shards 5 x 64 : f32 reshard true [#fsdp.param<"layers.0.w", tensor<4x4xf32>, 0,
// CHECK: fsdp.unit @layers.0.frozen shards 5 x 64 : f32 reshard true [#fsdp.param<"layers.0.rope", tensor<6xf32>, 0, trainable = false, decay = false,
// CHECK: fsdp.unit @layers.0.bf16 shards 5 x 64 : f32 reshard true [#fsdp.param<"layers.0.s", tensor<4xf32>, 0, trainable = true,
// BOTH:  fsdp.unit @layers.0.bf16 shards 5 x 64 : bf16 reshard true [#fsdp.param<"layers.0.s", tensor<4xbf16>, 0, trainable = true,
// CHECK-NOT: fsdp.unit
func.func @loss(
    %w: tensor<4x4xf32> {fsdp.param = "layers.0.w", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %r: tensor<6xf32> {fsdp.param = "layers.0.rope", fsdp.frozen, fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %s: tensor<4xbf16> {fsdp.param = "layers.0.s", fsdp.init = #fsdp.init<constant, 1.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

// -----

// Parameters of size 0 take no elements. A unit that has only such parameters still has a shard.
// CHECK-LABEL: fsdp.mesh @mesh
// CHECK: fsdp.unit @h.0 shards 5 x 128 : f32 reshard true
// CHECK-SAME: "h.0.none", tensor<0x3xf32>, 0,
// CHECK-SAME: "h.0.w", tensor<20x20xf32>, 0,
// CHECK-SAME: "h.0.empty", tensor<0xf32>, 416,
// CHECK: fsdp.unit @h.1 shards 5 x 64 : f32 reshard true [#fsdp.param<"h.1.none", tensor<0xf32>, 0,
func.func @loss(
    %e: tensor<0xf32> {fsdp.param = "h.0.empty", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %n: tensor<0x3xf32> {fsdp.param = "h.0.none", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %w: tensor<20x20xf32> {fsdp.param = "h.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %m: tensor<0xf32> {fsdp.param = "h.1.none", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

// -----

// Names without layers give one unit, and a remark with advice. Large
// units have shards of a multiple of 1024: 70003 / 5 = 14000.6 -> 14336.
// CHECK-LABEL: fsdp.mesh @mesh
// CHECK: fsdp.unit @root shards 5 x 14336 : f32 reshard false
// CHECK-NOT: fsdp.unit
// expected-remark@+1 {{no layer found in the names of the parameters ('param.12'): the model is one unit, which is gathered as a whole; name the parameters or give transformer-layer}}
func.func @loss(
    %w: tensor<7x10000xf32> {fsdp.param = "param.12", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %x: tensor<3xf32> {fsdp.param = "cst_48", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

// -----

// No component is a number. Components that end in a number make layers
// if they have matrices (fc1, fc2), but not otherwise (ln_1, ln_2).
// CHECK-LABEL: fsdp.mesh @mesh
// CHECK: fsdp.unit @root {{.*}}"ln_1.w"{{.*}}"ln_2.w"
// CHECK: fsdp.unit @fc1 {{.*}}"fc1.w"{{.*}}"fc1.b"
// CHECK: fsdp.unit @fc2 {{.*}}"fc2.w"
func.func @loss(
    %n1: tensor<4xf32> {fsdp.param = "ln_1.w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %n2: tensor<4xf32> {fsdp.param = "ln_2.w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %w1: tensor<4x4xf32> {fsdp.param = "fc1.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %b1: tensor<4xf32> {fsdp.param = "fc1.b", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %w2: tensor<4x4xf32> {fsdp.param = "fc2.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

// -----

// The model is wrapped in a list: the number that all names share is skipped.
// Experts belong to their layer; encoder and decoder layers are both found.
// CHECK-LABEL: fsdp.mesh @mesh
// CHECK: fsdp.unit @"0.enc/h.0" {{.*}}"0.enc/h.0.experts.0.w"{{.*}}"0.enc/h.0.experts.1.w"
// CHECK: fsdp.unit @"0.enc/h.1"
// CHECK: fsdp.unit @"0.dec/h.0"
func.func @loss(
    %a: tensor<4x4xf32> {fsdp.param = "0.enc/h.0.experts.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %b: tensor<4x4xf32> {fsdp.param = "0.enc/h.0.experts.1.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %c: tensor<4x4xf32> {fsdp.param = "0.enc/h.1.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %d: tensor<4x4xf32> {fsdp.param = "0.dec/h.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

// -----

// Integers are not trained and keep their type. Integers of one byte start at multiples of 64.
// CHECK-LABEL: fsdp.mesh @mesh
// CHECK: fsdp.unit @h.0 shards 5 x 64 : f32 reshard true [#fsdp.param<"h.0.w",
// CHECK: fsdp.unit @h.0.frozen shards 5 x 64 : i8 reshard true [#fsdp.param<"h.0.q", tensor<4x4xi8>, 0, trainable = false, {{.*}}"h.0.r", tensor<3x2xi8>, 64,
// CHECK: fsdp.unit @h.0.frozen.i1 shards 5 x 64 : i1
func.func @loss(
    %w: tensor<4x8xf32> {fsdp.param = "h.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %q: tensor<4x4xi8> {fsdp.param = "h.0.q", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %r: tensor<3x2xi8> {fsdp.param = "h.0.r", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %m: tensor<9xi1> {fsdp.param = "h.0.m", fsdp.init = #fsdp.init<constant, 1.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}
