// The lookup table gets normally distributed values, and the factor of a product starts from 1.
// RUN: fsdp-opt %s --fsdp-infer-init 2>&1 | FileCheck %s

// CHECK: remark: inferred initial values normal(0, 0.02) for 1 parameters: table
// CHECK: remark: inferred initial values 1 for 1 parameters: gamma
// CHECK: fsdp.init = #fsdp.init<normal, 0.000000e+00, 2.000000e-02>, fsdp.param = "table"

// DOC-BEFORE-BEGIN fsdp-infer-init
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%table: tensor<9x6xf32> {fsdp.param = "table"}, %gamma: tensor<6xf32> {fsdp.param = "gamma"},
             %ids: tensor<4xi64> {fsdp.batch = "tokens"}) -> tensor<4x6xf32> {
  %t = fsdp.gather_rows %table[%ids] : tensor<9x6xf32>, tensor<4xi64> -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t, %gamma : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %g: f32, %o: f32):
    %0 = arith.mulf %a, %g : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
// DOC-BEFORE-END
