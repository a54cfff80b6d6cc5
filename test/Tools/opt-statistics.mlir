// --mlir-pass-statistics either reports, or says that this LLVM does not count.
// RUN: fsdp-opt %s --fsdp-pack-arenas --mlir-pass-statistics 2>&1 | FileCheck %s

// CHECK: {{fsdp-opt: warning: --mlir-pass-statistics prints nothing with this LLVM|PackArenasPass}}
module {}
