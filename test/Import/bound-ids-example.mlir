// The number of rows of the table becomes the limit of the ids.
// RUN: fsdp-opt %s --fsdp-bound-ids | FileCheck %s

// CHECK: {fsdp.batch = "tokens", fsdp.limit = 9 : i64}

// DOC-BEFORE-BEGIN fsdp-bound-ids
func.func @f(%w: tensor<9x4xf32>, %ids: tensor<3xi64> {fsdp.batch = "tokens"}) -> tensor<3x4xf32> {
  %0 = fsdp.gather_rows %w[%ids] : tensor<9x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
// DOC-BEFORE-END
