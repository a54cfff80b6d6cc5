// Single elements written into a tensor.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s


// At a constant index and at one that depends on data.
// CHECK: @insert: phases 23/1, {{.*}} ok
func.func private @insert(%x: tensor<23x23xf32>, %s: tensor<f32>, %at: tensor<2xi64> {fsdp.limit = 23}, %y: tensor<23x23xf32> {fsdp.out = 0}) -> tensor<23x23xf32> attributes {fsdp.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %v = tensor.extract %s[] : tensor<f32>
  %a = tensor.extract %at[%c0] : tensor<2xi64>
  %b = tensor.extract %at[%c1] : tensor<2xi64>
  %i = arith.index_cast %a : i64 to index
  %j = arith.index_cast %b : i64 to index
  %0 = tensor.insert %v into %x[%c3, %c1] : tensor<23x23xf32>
  %1 = tensor.insert %v into %0[%i, %j] : tensor<23x23xf32>
  return %1 : tensor<23x23xf32>
}
