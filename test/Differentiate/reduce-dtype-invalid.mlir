// RUN: not fsdp-opt %s --fsdp-add-backward=reduce-dtype=int8 2>&1 | FileCheck %s
// RUN: not fsdp-opt %s --fsdp-add-backward=grad-predivide=0 2>&1 | FileCheck %s --check-prefix=PREDIVIDE
// RUN: not fsdp-opt %s --fsdp-add-backward=grad-predivide=1e300 2>&1 | FileCheck %s --check-prefix=LARGE

// CHECK: error: reduce-dtype: expected f32, f64, bf16 or f16, found 'int8'
// PREDIVIDE: error: grad-predivide: expected a number in [2^-100, 2^100], found 0
// LARGE: error: grad-predivide: expected a number in [2^-100, 2^100], found 1.000000e+300
module {}
