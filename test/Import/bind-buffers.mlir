// RUN: split-file %s %t
// RUN: fsdp-opt %t/masks.mlir --fsdp-bind-buffers="buffer=keys=causal,0=ones,1=zeros" | FileCheck %s
// RUN: fsdp-opt %t/uses.mlir --fsdp-bind-buffers="buffer=allowed=causal,masked=causal,added=causal,product=causal" | FileCheck %s --check-prefix=USES
// RUN: %python -c "open(r'%t/raw.bin','wb').write(bytes([1,0,0,1,1,0]))"
// RUN: fsdp-opt %t/file.mlir --fsdp-bind-buffers="buffer=0=%t/raw.bin" | FileCheck %s --check-prefix=FILE
// RUN: not fsdp-opt %t/file.mlir --fsdp-bind-buffers="buffer=0=%t/none.bin" 2>&1 | FileCheck %s --check-prefix=NOFILE
// RUN: not fsdp-opt %t/wide.mlir --fsdp-bind-buffers="buffer=0=%t/raw.bin" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not fsdp-opt %t/file.mlir --fsdp-bind-buffers 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not fsdp-opt %t/masks.mlir --fsdp-select-entry --fsdp-bind-buffers="buffer=1=zeros" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fsdp-opt %t/trained.mlir --fsdp-bind-buffers="buffer=0=zeros" 2>&1 | FileCheck %s --check-prefix=TRAINED
// TRAINED: error: --buffer=0=zeros: argument 0 is the parameter "w"; a buffer is not trained: remove its 'fsdp.param'
// RUN: not fsdp-opt %t/file.mlir --fsdp-bind-buffers="buffer=7=ones" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not fsdp-opt %t/file.mlir --fsdp-bind-buffers="buffer=0" 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not fsdp-opt %t/wide.mlir --fsdp-bind-buffers="buffer=0=causal" 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: fsdp-opt %t/known.mlir --fsdp-bind-buffers | FileCheck %s --check-prefix=KNOWN

//--- masks.mlir
// CHECK: func.func @f() -> (tensor<2x3x3xi1>, tensor<2xf32>, tensor<2xi64>)
// CHECK-DAG: arith.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-DAG: arith.constant dense<0> : tensor<2xi64>
// CHECK-DAG: arith.cmpi sle
// CHECK-NOT: dense_resource
// UNKNOWN: error: the content of this 'tensor<2x3x3xi1>' is not in the file (its text was elided); give it with --buffer=0=CONTENTS or --buffer=keys=CONTENTS, CONTENTS being causal (lower-triangular attention mask), zeros, ones, or a file (.npy or raw little-endian)
// DOC-BEFORE-BEGIN fsdp-bind-buffers
// DOC-ARGS: '--fsdp-bind-buffers=buffer=keys=causal,0=ones,1=zeros'
func.func @f(%a: tensor<2xf32>, %b: tensor<2xi64>) -> (tensor<2x3x3xi1>, tensor<2xf32>, tensor<2xi64>) {
  %m = arith.constant dense_resource<keys> : tensor<2x3x3xi1>
  return %m, %a, %b : tensor<2x3x3xi1>, tensor<2xf32>, tensor<2xi64>
}
// DOC-BEFORE-END

//--- uses.mlir
// The form of a causal mask depends on its uses.
// USES-LABEL: func.func @f
// USES-DAG: arith.cmpi sle
// USES-DAG: arith.cmpi sgt
// USES-DAG: arith.constant 0xFF800000 : f32
// USES: return
func.func @f(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %low = arith.constant dense<-1.0e9> : tensor<3x3xf32>
  %a = arith.constant dense_resource<allowed> : tensor<3x3xi1>
  %b = arith.constant dense_resource<masked> : tensor<3x3xi1>
  %c = arith.constant dense_resource<added> : tensor<3x3xf32>
  %d = arith.constant dense_resource<product> : tensor<3x3xf32>
  %0 = arith.select %a, %x, %low : tensor<3x3xi1>, tensor<3x3xf32>
  %1 = arith.select %b, %low, %x : tensor<3x3xi1>, tensor<3x3xf32>
  %2 = arith.addf %x, %c : tensor<3x3xf32>
  %3 = arith.mulf %x, %d : tensor<3x3xf32>
  return %0, %1, %2, %3 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}

//--- file.mlir
// FILE: arith.constant {fsdp.keep} dense<{{\[}}[true, false, false], [true, true, false]]> : tensor<2x3xi1>
// NOFILE: error: --buffer: cannot read {{.*}}none.bin' ({{.*}}); contents are causal, zeros, ones, keep or a file
// ARGUMENT: error: the content of argument 0, 'tensor<2x3xi1>', is not known; give it with --buffer=0=CONTENTS
// NOBODY: error: --buffer=7=ones: '@f' has no constant or argument '7'
// SYNTAX: error: --buffer expected NAME|INDEX=causal|zeros|ones|keep|FILE, found '0'
func.func @f(%m: tensor<2x3xi1>) -> tensor<2x3xi1> {
  return %m : tensor<2x3xi1>
}

//--- wide.mlir
// SIZE: error: --buffer: {{.*}}raw.bin' expected 8 bytes for 'tensor<2xf32>', found 6
// RANK: error: --buffer=0=causal: expected a rank of at least 2, found 'tensor<2xf32>'
func.func @f(%m: tensor<2xf32>) -> tensor<2xf32> {
  return %m : tensor<2xf32>
}

//--- known.mlir
// A causal table in the file becomes a comparison of indices.
// KNOWN-NOT: dense
// KNOWN: arith.cmpi sgt
func.func @f() -> tensor<1x3x3xi1> {
  %m = arith.constant dense<[[[false, true, true], [false, false, true], [false, false, false]]]> : tensor<1x3x3xi1>
  return %m : tensor<1x3x3xi1>
}
//--- trained.mlir
func.func @f(%w: tensor<4xf32> {fsdp.param = "w"}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
