// RUN: fsdp-opt %s --fsdp-unroll-loops --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// The loop with the most iterations stays; the other loop is unrolled.
// DOC-BEFORE-BEGIN fsdp-unroll-loops
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32>
    attributes {fsdp.kernel}
// DOC-BEFORE-END
// CHECK-LABEL: func.func @nest
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// DOC-BEFORE-BEGIN fsdp-unroll-loops
// DOC-AFTER: @nest
func.func @nest(%x: tensor<6x16xf32>, %init: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %init) -> tensor<16xf32> {
    %q = scf.for %j = %c0 to %c3 step %c1 iter_args(%t = %s) -> tensor<16xf32> {
      %a = arith.muli %i, %c3 : index
      %n = arith.addi %a, %j : index
      %v = tensor.extract_slice %x[%n, 0] [1, 16] [1, 1] : tensor<6x16xf32> to tensor<16xf32>
      %u = fsdp.kernel_call @k(%v, %t) inplace [1] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      scf.yield %u : tensor<16xf32>
    }
    scf.yield %q : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}
// DOC-BEFORE-END

// -----

func.func @dynamic(%n: index, %init: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a loop over micro-batches to have constant bounds}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %init) -> tensor<16xf32> {
    scf.yield %s : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}
