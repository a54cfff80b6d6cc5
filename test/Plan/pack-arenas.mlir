// RUN: fsdp-opt %s --fsdp-pack-arenas --split-input-file --verify-diagnostics --mlir-pass-statistics 2>%t.statistics | FileCheck %s

// State comes first. The programs share the bytes after the state. Buffers of at least 1 MiB begin on a page.
// CHECK: fsdp.layout @arena arena 2101248 attributes {lower_bound = 2097344 : i64}
// CHECK: fsdp.buffer @state.0 "s" parameters 100 at 0
// CHECK: fsdp.buffer @step.0 "a" activations 1048576 at 4096 in @step from 0 to 1
// CHECK: fsdp.buffer @step.1 "b" activations 1048576 at 1052672 in @step from 1 to 2
// CHECK: fsdp.buffer @step.2 "c" activations 64 at 4096 in @step from 2 to 3
// CHECK: fsdp.buffer @eval.0 "d" activations 10 at 4096 in @eval from 0 to 0
// CHECK: fsdp.buffer @input.0 "i" inputs 64 at 128
// DOC-BEFORE-BEGIN fsdp-pack-arenas
fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "s" parameters 100
  fsdp.buffer @step.0 "a" activations 1048576 in @step from 0 to 1
  fsdp.buffer @step.1 "b" activations 1048576 in @step from 1 to 2
  fsdp.buffer @step.2 "c" activations 64 in @step from 2 to 3
  fsdp.buffer @eval.0 "d" activations 10 in @eval from 0 to 0
  fsdp.buffer @input.0 "i" inputs 64
}
// DOC-BEFORE-END

// -----

// expected-error @below {{'fsdp.layout' op has no bytes; expected at least one state or input}}
fsdp.layout @arena arena 0 {
}
