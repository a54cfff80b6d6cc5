// Equal kernels give equal bytes, and the image has no undefined symbols.
// RUN: fsdp-kernel-test %S/math.mlir --bench --save-image=%t.a.so > /dev/null
// RUN: fsdp-kernel-test %S/math.mlir --bench --save-image=%t.b.so > /dev/null
// RUN: cmp %t.a.so %t.b.so
// RUN: llvm-nm -D --undefined-only %t.a.so | count 0
// RUN: llvm-nm -D --defined-only %t.a.so | FileCheck %s
// CHECK-DAG: T edges
// CHECK-DAG: T exps

// The oracle in the kernels' own types.
// RUN: fsdp-kernel-test %S/map-kernels.mlir --widen=false > /dev/null
// RUN: fsdp-kernel-test %S/row-kernels.mlir --widen=false > /dev/null
// RUN: fsdp-kernel-test %S/copy-kernels.mlir --widen=false > /dev/null

// A CPU below AVX2 and FMA, and an unknown CPU.
// RUN: not fsdp-kernel-test %S/math.mlir --target-cpu=x86-64-v2 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: expected a cpu of level x86-64-v3 or above (AVX2 and FMA), but 'x86-64-v2' has no avx
// RUN: not fsdp-kernel-test %S/math.mlir --target-cpu=zen9 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: expected 'native' or the name of an x86-64 cpu (x86-64-v3, znver4, sapphirerapids), found 'zen9'
