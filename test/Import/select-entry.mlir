// RUN: split-file %s %t
// RUN: fsdp-opt %t/one.mlir --allow-unregistered-dialect --fsdp-select-entry | FileCheck %s
// RUN: fsdp-opt %t/two.mlir --fsdp-select-entry=entry=g | FileCheck %s --check-prefix=TWO
// RUN: not fsdp-opt %t/two.mlir --fsdp-select-entry 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not fsdp-opt %t/two.mlir --fsdp-select-entry=entry=h 2>&1 | FileCheck %s --check-prefix=NOBODY

//--- one.mlir
// CHECK: module {
// CHECK-NOT: ml_program
// CHECK: func.func @main(%{{.*}}: tensor<2xf32> {fsdp.position = 0 : i64}, %{{.*}}: tensor<2xf32> {fsdp.position = 1 : i64}) -> tensor<2xf32> {
// CHECK: arith.constant {fsdp.position = 0 : i64} dense_resource<__elided__> : tensor<2xf32>
// CHECK: arith.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK: arith.constant {fsdp.position = 1 : i64} dense<[1, 2]> : tensor<2xi64>
// DOC-BEFORE-BEGIN fsdp-select-entry
module attributes {torch.debug_module_name = "x"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32> {jax.result_info = "loss"}) attributes {foreign.mark} {
    %0 = arith.constant dense_resource<__elided__> : tensor<2xf32>
    %1 = arith.constant dense<1.0> : tensor<2xf32>
    %2 = arith.constant dense<[1, 2]> : tensor<2xi64>
    return %0 : tensor<2xf32>
  }
}
// DOC-BEFORE-END

//--- two.mlir
// TWO: func.func private @f
// TWO: func.func @g
// MANY: error: expected one public function, found 2; choose one with --entry=NAME
// MANY: note: '@f' is public
// MANY: note: '@g' is public
// NOBODY: error: expected a function '@h' with a body, as --entry says; found none
// NOBODY: note: there is '@f'
func.func @f() { return }
func.func @g() { return }
