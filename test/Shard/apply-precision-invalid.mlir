// RUN: not fsdp-opt %s --fsdp-apply-precision=param-dtype=int8 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: param-dtype: expected f32, bf16 or f16, found 'int8'
// RUN: not fsdp-opt %s --fsdp-apply-precision="param-dtype=bf16 output-dtype=f64" 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: output-dtype: expected f32, bf16 or f16, found 'f64'
// RUN: not fsdp-opt %s --fsdp-apply-precision="param-dtype=bf16 output-dtype=f16" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: output-dtype: expected f32 or the param-dtype ('bf16'), found 'f16'
// RUN: not fsdp-opt %s --fsdp-apply-precision=output-dtype=f16 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: output-dtype: expected f32, because no param-dtype is given, found 'f16'

// A type that is wider than the model's type, or another type of the same width.
// RUN: not fsdp-opt %s --fsdp-apply-precision=param-dtype=f32 2>&1 | FileCheck %s --check-prefix=WIDER
// WIDER: [[@LINE+6]]:1: error: param-dtype: expected the type of the model's parameters, 'bf16', found 'f32'; only models in f32 can be computed in another type: leave param-dtype out, or export the model in f32
// WIDER: [[@LINE+6]]:18: note: a parameter of 'bf16' is here
// RUN: not fsdp-opt %s --fsdp-apply-precision=param-dtype=f16 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: error: param-dtype: expected the type of the model's parameters, 'bf16', found 'f16'
// RUN: fsdp-opt %s --fsdp-apply-precision=param-dtype=bf16 | FileCheck %s
// CHECK-NOT: master_dtype
func.func @model(%w: tensor<f32> {fsdp.batch = "x"},
                 %p: tensor<8xbf16> {fsdp.param = "w", fsdp.init = #fsdp.init<normal, 0.0, 0.02>}) -> tensor<f32> {
  return %w : tensor<f32>
}
