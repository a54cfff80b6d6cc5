// RUN: fsdp-opt %s --fsdp-form-units="mesh=replicate=2,shard=2x2" | FileCheck %s
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=3 reshard-after-forward=false" | FileCheck %s --check-prefix=KEEP
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=2x2 reshard-after-forward=2 reshard-root=forward ignore-params=h.0" | FileCheck %s --check-prefix=WITHIN
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=4 reshard-after-forward=2" | FileCheck %s --check-prefix=LAYERS
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=3 reshard-after-forward=1" | FileCheck %s --check-prefix=KEEP
// RUN: fsdp-opt %s --fsdp-form-units="mesh=replicate=2,shard=4 reshard-after-forward=4 sharding-strategy=hfsdp" | FileCheck %s --check-prefix=ALL
// RUN: fsdp-opt %s --fsdp-form-units="auto-wrap-policy=none" | FileCheck %s --check-prefix=NONE
// RUN: fsdp-opt %s --fsdp-form-units="min-num-params=21" | FileCheck %s --check-prefix=MIN
// RUN: fsdp-opt %s --fsdp-form-units="transformer-layer=h.[1-9],wte" | FileCheck %s --check-prefix=PATTERN

// The root unit comes first. Layers follow in the order of their first use,
// here `h.1` before `h.0`. Matrices precede vectors. A tied parameter (wte)
// is laid out once; an unused parameter (pos) is laid out like the others.

// CHECK:      fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [2, 2]>]
// CHECK-NEXT: fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
// CHECK-NEXT: fsdp.unit @root shards 4 x 64 : f32 reshard false
// CHECK-SAME:   #fsdp.param<"wte.weight", tensor<8x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.000000e+00, 2.000000e-02>>
// CHECK-SAME:   #fsdp.param<"pos", tensor<3x5xf32>, 32, trainable = true, decay = true, init = <uniform, -1.000000e+00, 1.000000e+00>>
// CHECK-NEXT: fsdp.unit @h.1 shards 4 x 64 : f32 reshard true
// CHECK-SAME:   #fsdp.param<"h.1.weight", tensor<4x4xf32>, 0, trainable = true, decay = true,
// CHECK-SAME:   #fsdp.param<"h.1.bias", tensor<4xf32>, 32, trainable = true, decay = false, init = <constant, 0.000000e+00, 0.000000e+00>>
// CHECK-NEXT: fsdp.unit @h.0 shards 4 x 64 : f32 reshard true
// CHECK-SAME:   #fsdp.param<"h.0.weight", tensor<4x4xf32>, 0,
// CHECK-SAME:   #fsdp.param<"h.0.bias", tensor<4xf32>, 32,
// CHECK-NOT:  fsdp.unit
// CHECK:      func.func @loss(%{{.*}}: tensor<8x4xf32> {

// KEEP: fsdp.unit @h.1 shards 3 x 64 : f32 reshard false

// The root unit stays gathered, or is treated like the layers; replicated parameters are not gathered.
// WITHIN: fsdp.unit @root shards 4 x 64 : f32 reshard true within 2 [
// WITHIN: fsdp.unit @h.1 shards 4 x 64 : f32 reshard true within 2 [
// WITHIN: fsdp.unit @h.0.ignored shards 4 x 64 : f32 reshard false [
// LAYERS: fsdp.unit @root shards 4 x 64 : f32 reshard false [
// LAYERS: fsdp.unit @h.1 shards 4 x 64 : f32 reshard true within 2 [
// ALL: fsdp.unit @h.1 shards 4 x {{[0-9]+}} : f32 reshard true [

// NONE:     fsdp.unit @root shards 1 x 192 : f32 reshard false
// NONE-SAME:  "wte.weight", tensor<8x4xf32>, 0,
// NONE-SAME:  "h.0.weight", tensor<4x4xf32>, 32,
// NONE-SAME:  "h.1.weight", tensor<4x4xf32>, 64,
// NONE-SAME:  "pos", tensor<3x5xf32>, 96,
// NONE-SAME:  "h.0.bias", tensor<4xf32>, 128,
// NONE-SAME:  "h.1.bias", tensor<4xf32>, 160,
// NONE-NOT: fsdp.unit

// 20 elements are below the minimum, so the next layer is merged.
// MIN:     fsdp.unit @root
// MIN:     fsdp.unit @h.1 shards 1 x 128 : f32
// MIN-SAME:  "h.1.weight", tensor<4x4xf32>, 0,
// MIN-SAME:  "h.0.weight", tensor<4x4xf32>, 32,
// MIN-SAME:  "h.1.bias", tensor<4xf32>, 64,
// MIN-SAME:  "h.0.bias", tensor<4xf32>, 96,
// MIN-NOT: fsdp.unit

// PATTERN: fsdp.unit @root
// PATTERN-SAME: "h.0.weight"
// PATTERN: fsdp.unit @wte
// PATTERN: fsdp.unit @h.1
// PATTERN-NOT: fsdp.unit
func.func @loss(
    %wte: tensor<8x4xf32> {fsdp.param = "wte.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %b0: tensor<4xf32> {fsdp.param = "h.0.bias", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %w0: tensor<4x4xf32> {fsdp.param = "h.0.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %w1: tensor<4x4xf32> {fsdp.param = "h.1.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %b1: tensor<4xf32> {fsdp.param = "h.1.bias", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %pos: tensor<3x5xf32> {fsdp.param = "pos", fsdp.init = #fsdp.init<uniform, -1.0, 1.0>},
    %ids: tensor<2xi64> {fsdp.batch = "tokens", fsdp.limit = 8 : i64}) -> tensor<f32> {
  %e = fsdp.gather_rows %wte[%ids] : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %i = linalg.exp ins(%b1 : tensor<4xf32>) outs(%b1 : tensor<4xf32>) -> tensor<4xf32>
  %h = linalg.add ins(%w1, %w0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%w1 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %j = linalg.add ins(%i, %b0 : tensor<4xf32>, tensor<4xf32>) outs(%i : tensor<4xf32>) -> tensor<4xf32>
  %t = fsdp.gather_rows %wte[%ids] : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}
