// --mlir-pass-statistics prints statistics, or a warning if this LLVM has none.
// RUN: fsdp-opt %s --fsdp-pack-arenas --mlir-pass-statistics 2>&1 | FileCheck %s

// CHECK: {{fsdp-opt: warning: --mlir-pass-statistics prints nothing with this LLVM|PackArenasPass}}
module {}
