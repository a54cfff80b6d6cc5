// RUN: not fsdp-opt %s --fsdp-add-backward=reduce-dtype=int8 2>&1 | FileCheck %s
// RUN: not fsdp-opt %s --fsdp-add-backward=grad-predivide=0 2>&1 | FileCheck %s --check-prefix=PREDIVIDE

// CHECK: error: reduce-dtype: expected f32, f64, bf16 or f16, found 'int8'
// PREDIVIDE: error: grad-predivide: expected a number above 0, found 0
module {}
