// Units by size, by a list, by attributes of the IR, and none.

// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-form-units="mesh=shard=2 auto-wrap-policy=size min-num-params=100" | FileCheck %s --check-prefix=SIZE
// `m.h.0.mlp` and `m.h.1.mlp` (128 elements each) are large enough. The remaining 72 elements of each layer are
// not. `m.h`, whose children are only numbers, is never a unit, so the remaining 216 elements belong to `m`.
// SIZE:      fsdp.unit @root {{.*}}[#fsdp.param<"wte.weight"
// SIZE-NEXT: fsdp.unit @m {{.*}}"m.h.0.attn.w"{{.*}}"m.h.1.attn.w"{{.*}}"m.h.2.w"{{.*}}"m.h.0.ln.w"{{.*}}"m.h.1.ln.w"{{.*}}"m.h.2.ln.w"
// SIZE-NEXT: fsdp.unit @m.h.0.mlp {{.*}}"m.h.0.mlp.w1"{{.*}}"m.h.0.mlp.w2"
// SIZE-NEXT: fsdp.unit @m.h.1.mlp {{.*}}"m.h.1.mlp.w1"{{.*}}"m.h.1.mlp.w2"
// SIZE-NOT:  fsdp.unit

// RUN: fsdp-opt %t/model.mlir --fsdp-form-units="mesh=shard=2 auto-wrap-policy=size min-num-params=150" | FileCheck %s --check-prefix=LAYERS
// LAYERS:      fsdp.unit @root {{.*}}[#fsdp.param<"wte.weight"{{.*}}"m.h.2.w"
// LAYERS-NEXT: fsdp.unit @m.h.0 {{.*}}"m.h.0.attn.w"{{.*}}"m.h.0.mlp.w1"
// LAYERS-NEXT: fsdp.unit @m.h.1 {{.*}}"m.h.1.attn.w"
// LAYERS-NOT:  fsdp.unit

// No module has the default minimum of 10^8 elements.
// RUN: fsdp-opt %t/model.mlir --fsdp-form-units="mesh=shard=2 auto-wrap-policy=size" | FileCheck %s --check-prefix=DEFAULT
// DEFAULT:     fsdp.unit @root
// DEFAULT-NOT: fsdp.unit

// RUN: fsdp-opt %t/model.mlir --fsdp-form-units="mesh=shard=2 auto-wrap-policy=manual wrap=%t/wrap.json" | FileCheck %s --check-prefix=MANUAL
// MANUAL:      fsdp.unit @root {{.*}}[#fsdp.param<"m.h.2.w"{{.*}}"m.h.0.ln.w"
// MANUAL-NEXT: fsdp.unit @ends {{.*}}"wte.weight"{{.*}}"m.h.1.ln.w"
// MANUAL-NEXT: fsdp.unit @m.h.0.attn {{.*}}"m.h.0.attn.w"
// MANUAL-NEXT: fsdp.unit @m.h.0.mlp {{.*}}"m.h.0.mlp.w1"{{.*}}"m.h.0.mlp.w2"
// MANUAL-NEXT: fsdp.unit @m.h.1.attn {{.*}}"m.h.1.attn.w"
// MANUAL-NEXT: fsdp.unit @m.h.1.mlp {{.*}}"m.h.1.mlp.w1"
// MANUAL-NOT:  fsdp.unit

// Attributes in the IR take precedence over the policy; "root" means the root unit.
// RUN: fsdp-opt %t/marked.mlir --fsdp-form-units="mesh=shard=2" | FileCheck %s --check-prefix=MARKED
// MARKED:      fsdp.unit @root {{.*}}[#fsdp.param<"h.1.w"
// MARKED-NEXT: fsdp.unit @both {{.*}}"wte"{{.*}}"h.0.w"
// MARKED-NEXT: fsdp.unit @h.0 {{.*}}"h.0.b"
// MARKED-NOT:  fsdp.unit @
// RUN: fsdp-opt %t/marked.mlir --fsdp-form-units="mesh=shard=2 auto-wrap-policy=manual" | FileCheck %s --check-prefix=ATTRIBUTES
// ATTRIBUTES:      fsdp.unit @root {{.*}}"h.1.w"{{.*}}"h.0.b"
// ATTRIBUTES-NEXT: fsdp.unit @both
// ATTRIBUTES-NOT:  fsdp.unit @

// A warning tells the cost of one unit, if units per layer would cost less and parameters are gathered.
// RUN: fsdp-opt %t/model.mlir --fsdp-form-units="mesh=shard=2 auto-wrap-policy=none" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: warning: auto-wrap-policy 'none': the whole model is one unit, so 2112 bytes of parameters are gathered at once on every rank; a unit per layer ('transformer') would need 1824
// NONE:     fsdp.unit @root
// NONE-NOT: fsdp.unit
// RUN: fsdp-opt %t/model.mlir --fsdp-form-units="mesh=shard=1 auto-wrap-policy=none" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE-NOT: warning

//--- wrap.json
[
  "m.h.*.attn",
  {"unit": "ends", "params": ["wte", "m.h.1.ln"]},
  "m.*.*.mlp"
]

//--- model.mlir
func.func @loss(
    %e: tensor<7x8xf32> {fsdp.param = "wte.weight", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %a0: tensor<8x8xf32> {fsdp.param = "m.h.0.attn.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %n0: tensor<8xf32> {fsdp.param = "m.h.0.ln.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %u0: tensor<8x8xf32> {fsdp.param = "m.h.0.mlp.w1", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %d0: tensor<8x8xf32> {fsdp.param = "m.h.0.mlp.w2", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %a1: tensor<8x8xf32> {fsdp.param = "m.h.1.attn.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %n1: tensor<8xf32> {fsdp.param = "m.h.1.ln.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %u1: tensor<8x8xf32> {fsdp.param = "m.h.1.mlp.w1", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %d1: tensor<8x8xf32> {fsdp.param = "m.h.1.mlp.w2", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %a2: tensor<8x8xf32> {fsdp.param = "m.h.2.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %n2: tensor<8xf32> {fsdp.param = "m.h.2.ln.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

//--- marked.mlir
func.func @loss(
    %e: tensor<8x8xf32> {fsdp.param = "wte", fsdp.unit = "both", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %a: tensor<8x8xf32> {fsdp.param = "h.0.w", fsdp.unit = "both", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %b: tensor<8xf32> {fsdp.param = "h.0.b", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %c: tensor<8x8xf32> {fsdp.param = "h.1.w", fsdp.unit = "root", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}
