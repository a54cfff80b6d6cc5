// RUN: fsdp-opt %s --fsdp-outline-kernels --verify-roundtrip | FileCheck %s

// The text that names a kernel has hashes of large tables: equal tables share a kernel, different ones do not.
// CHECK-LABEL: func.func @tables
// CHECK: fsdp.kernel_call @[[TABLE:k_[0-9a-f]{16}]]
// CHECK-NEXT: fsdp.kernel_call @[[TABLE]]
// CHECK-NOT: @[[TABLE]]
// CHECK: fsdp.kernel_call @k_
func.func @tables(%x: tensor<80xi8>) -> (tensor<80xi8>, tensor<80xi8>, tensor<80xi8>) {
  %a = fsdp.dispatch (%x) inplace [-1] {kind = "map"} : (tensor<80xi8>) -> tensor<80xi8> {
  ^bb0(%in: tensor<80xi8>):
    %t = arith.constant dense<"0x0100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : tensor<80xi8>
    %r = arith.addi %in, %t : tensor<80xi8>
    fsdp.yield %r : tensor<80xi8>
  }
  %b = fsdp.dispatch (%x) inplace [-1] {kind = "map"} : (tensor<80xi8>) -> tensor<80xi8> {
  ^bb0(%in: tensor<80xi8>):
    %t = arith.constant dense<"0x0100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : tensor<80xi8>
    %r = arith.addi %in, %t : tensor<80xi8>
    fsdp.yield %r : tensor<80xi8>
  }
  %c = fsdp.dispatch (%x) inplace [-1] {kind = "map"} : (tensor<80xi8>) -> tensor<80xi8> {
  ^bb0(%in: tensor<80xi8>):
    %t = arith.constant dense<"0x0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001"> : tensor<80xi8>
    %r = arith.addi %in, %t : tensor<80xi8>
    fsdp.yield %r : tensor<80xi8>
  }
  return %a, %b, %c : tensor<80xi8>, tensor<80xi8>, tensor<80xi8>
}
