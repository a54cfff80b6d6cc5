// RUN: not fsdp-opt %s --fsdp-differentiate=reduce-dtype=int8 2>&1 | FileCheck %s

// CHECK: error: reduce-dtype: expected f32, f64, bf16 or f16, found 'int8'
module {}
