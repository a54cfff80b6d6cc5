// Only functions with `fsdp.kernel` remain.
// RUN: fsdp-opt %s --fsdp-keep-kernels | FileCheck %s

// CHECK-NOT: fsdp.mesh
// CHECK: func.func private @k(
// CHECK-NOT: @other

// DOC-BEFORE-BEGIN fsdp-keep-kernels
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
func.func private @k(%x: tensor<8xf32> {fsdp.inout = 0 : i64}) -> tensor<8xf32> attributes {fsdp.kernel, fsdp.kind = "map"} {
  return %x : tensor<8xf32>
}
func.func @other() {
  return
}
// DOC-BEFORE-END
