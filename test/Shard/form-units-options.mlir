// Errors about invalid options name the expected values.

// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: mesh 'shard=0': expected the size of axis 'shard' to be a number of at least 1, or factors such as '2x4', found '0'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=2x" 2>&1 | FileCheck %s --check-prefix=FACTOR
// FACTOR: error: mesh 'shard=2x': expected the size of axis 'shard' to be a number of at least 1, or factors such as '2x4', found '2x'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=replicate=-1,shard=2" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: mesh 'replicate=-1,shard=2': expected the size of axis 'replicate' to be a number of at least 1
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=data=2" 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: error: mesh 'data=2': expected sizes of the axes 'replicate', 'shard', 'context' and 'tensor', as in 'replicate=2,shard=4', found 'data=2'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=2,shard=2" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: mesh 'shard=2,shard=2': axis 'shard' is given twice
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=replicate=65536,shard=65536" 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: mesh 'replicate=65536,shard=65536': expected at most 65536 ranks
// RUN: not fsdp-opt %s --fsdp-form-units="auto-wrap-policy=lambda" 2>&1 | FileCheck %s --check-prefix=POLICY
// POLICY: error: auto-wrap-policy: expected transformer, size, manual or none, found 'lambda'
// RUN: not fsdp-opt %s --fsdp-form-units="sharding-strategy=quarter_shard" 2>&1 | FileCheck %s --check-prefix=STRATEGY
// STRATEGY: error: sharding-strategy: expected no_shard, zero1, zero2, shard_grad_op, full_shard, hybrid_shard, hybrid_shard_zero2 or hfsdp, found 'quarter_shard'
// RUN: not fsdp-opt %s --fsdp-form-units="sharding-strategy=hfsdp mesh=shard=4" 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: sharding-strategy 'hfsdp' needs at least 2 groups of ranks: expected a mesh with replicate of at least 2, as in --mesh=replicate=2,shard=4, found 'shard=4'
// RUN: not fsdp-opt %s --fsdp-form-units="reshard-root=never" 2>&1 | FileCheck %s --check-prefix=ROOT
// ROOT: error: reshard-root: expected forward, backward or step, found 'never'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=2x6 reshard-after-forward=5" 2>&1 | FileCheck %s --check-prefix=DIVIDES
// DIVIDES: error: reshard-after-forward: expected 'true', 'false' or a number of ranks that divides shard=12 of the mesh (1, 2, 3, 4, 6, 12), found '5'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=2 reshard-after-forward=4" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: reshard-after-forward: expected 'true', 'false' or a number of ranks that divides shard=2 of the mesh (1, 2), found '4'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=2 reshard-after-forward=maybe" 2>&1 | FileCheck %s --check-prefix=MAYBE
// MAYBE: error: reshard-after-forward: {{.*}}, found 'maybe'
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=4 reshard-after-forward=2 sharding-strategy=shard_grad_op" 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: reshard-after-forward: groups of 2 ranks need a strategy that gathers parameters again in the backward: full_shard, hybrid_shard or hfsdp; found 'shard_grad_op'
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=4 reshard-after-forward=2 auto-wrap-policy=none" -o /dev/null 2>&1 | FileCheck %s --check-prefix=IDLE
// IDLE: warning: reshard-after-forward=2 has no effect: only the root unit is gathered, which is kept until the backward unless reshard-root is 'forward'
// RUN: not fsdp-opt %s --fsdp-form-units="min-num-params=-5" 2>&1 | FileCheck %s --check-prefix=MIN
// MIN: error: min-num-params: expected a number of at least 0, found -5
// RUN: not fsdp-opt %s --fsdp-form-units="transformer-layer=blocks.*" 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: transformer-layer pattern 'blocks.*' matches no parameter; names look like 'h.0.w' and 'h.1.w'
// RUN: not fsdp-opt %s --fsdp-form-units="transformer-layer=h.[" 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: transformer-layer pattern 'h.[' cannot be read: invalid glob pattern, unmatched '['
// RUN: not fsdp-opt %s --fsdp-form-units="transformer-layer=h..0" 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: transformer-layer pattern 'h..0' cannot be read: it has an empty component
// RUN: not fsdp-opt %s --fsdp-form-units="auto-wrap-policy=none transformer-layer=h.*" 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: transformer-layer needs auto-wrap-policy 'transformer', found 'none'
// RUN: not fsdp-opt %s --fsdp-form-units="auto-wrap-policy=size wrap=x.json" 2>&1 | FileCheck %s --check-prefix=WRAP
// WRAP: error: wrap needs auto-wrap-policy 'manual', found 'size'
// RUN: not fsdp-opt %s --fsdp-form-units="auto-wrap-policy=none min-num-params=3" 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: min-num-params needs auto-wrap-policy 'size' or 'transformer', found 'none'
// RUN: not fsdp-opt %s --fsdp-form-units="auto-wrap-policy=manual" 2>&1 | FileCheck %s --check-prefix=LIST
// LIST: error: auto-wrap-policy 'manual' needs a list of units: give wrap=FILE.json, or mark parameters with {fsdp.unit = "name"}
// RUN: not fsdp-opt %s --fsdp-form-units --fsdp-insert-unshard="grad-accum=0" 2>&1 | FileCheck %s --check-prefix=ACCUM
// ACCUM: error: grad-accum: expected a number in [1, 1048576], found 0
// RUN: not fsdp-opt %s --fsdp-form-units="freeze=h.*" 2>&1 | FileCheck %s --check-prefix=FROZEN
// FROZEN: error: no parameter can be trained: all parameters (2) are frozen or integers; remove parameters from --freeze, or remove "frozen" from --params-file or the attribute 'fsdp.frozen' from the model
// RUN: not fsdp-opt %s --fsdp-form-units="freeze=h.0.b,h.1" 2>&1 | FileCheck %s --check-prefix=UNFROZEN
// UNFROZEN: error: freeze: pattern 'h.0.b' matches no parameter; names look like 'h.0.w' and 'h.1.w'
// RUN: not fsdp-opt %s --fsdp-form-units="freeze=h.0,,h.1" 2>&1 | FileCheck %s --check-prefix=NOPATTERN
// NOPATTERN: error: freeze: expected patterns with a comma between them, found an empty pattern in '
// RUN: fsdp-opt %s --fsdp-form-units="freeze=*.0.w" 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: fsdp.unit @h.0.frozen {{.*}}"h.0.w", {{.*}}trainable = false
// HALF: fsdp.unit @h.1 {{.*}}"h.1.w", {{.*}}trainable = true
func.func @loss(
    %a: tensor<4x4xf32> {fsdp.param = "h.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %b: tensor<4x4xf32> {fsdp.param = "h.1.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}
