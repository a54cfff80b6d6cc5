// Only named values are trained; other constants and arguments are not.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/buffer.mlir --fsdp-select-entry --fsdp-lift-parameters="params=0" 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: fsdp-opt %t/buffer.mlir --fsdp-select-entry --fsdp-lift-parameters="params=0,scale_*" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: fsdp-opt %t/buffer.mlir --fsdp-select-entry --fsdp-lift-parameters="params-file=%t/side.json" 2>&1 | FileCheck %s --check-prefix=SIDE
// RUN: fsdp-opt %t/buffer.mlir --fsdp-select-entry --fsdp-lift-parameters 2>&1 | FileCheck %s --check-prefix=GUESS
// RUN: fsdp-opt %t/buffer.mlir --fsdp-select-entry --fsdp-lift-parameters="params=auto" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: fsdp-opt %t/marked.mlir --fsdp-select-entry --fsdp-lift-parameters 2>&1 | FileCheck %s --check-prefix=MARKED
// RUN: fsdp-opt %t/module.mlir --fsdp-select-entry --fsdp-lift-parameters 2>&1 | FileCheck %s --check-prefix=MODULE
// RUN: fsdp-opt %t/module.mlir --fsdp-select-entry --fsdp-lift-parameters="params=w*" 2>&1 | FileCheck %s --check-prefix=CHOSEN
// RUN: not fsdp-opt %t/elided.mlir --fsdp-select-entry --fsdp-lift-parameters="params=0" 2>&1 | FileCheck %s --check-prefix=ELIDED
// RUN: not fsdp-opt %t/images.mlir --fsdp-select-entry --fsdp-lift-parameters 2>&1 | FileCheck %s --check-prefix=IMAGES
// RUN: not fsdp-opt %t/images.mlir --fsdp-select-entry --fsdp-lift-parameters="params=auto" 2>&1 | FileCheck %s --check-prefix=IMAGES
// RUN: fsdp-opt %t/images.mlir --fsdp-select-entry --fsdp-mark-batch="batch=1=images" --fsdp-lift-parameters="params=auto" 2>&1 | FileCheck %s --check-prefix=TOLD
// RUN: not fsdp-opt %t/images.mlir --fsdp-select-entry --fsdp-mark-batch="batch=1=images" --fsdp-lift-parameters="params=0-1" 2>&1 | FileCheck %s --check-prefix=TWICE

// A table of more than 1 MiB becomes a frozen parameter with its values.
// RUN: %python %S/Inputs/large-constant.py %t/large.mlir
// RUN: fsdp-opt %t/large.mlir --fsdp-select-entry --fsdp-lift-parameters="params=0" --mlir-elide-resource-strings-if-larger=10 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: module attributes {fsdp.values = {large = dense_resource<{{.*}}> : tensor<307200xf32>}}
// LARGE: func.func @f(%{{.*}}: tensor<4xf32> {fsdp.param = "param.0"{{.*}}}, %{{.*}}: tensor<4xi64>{{.*}}, %{{.*}}: tensor<307200xf32> {fsdp.frozen, fsdp.param = "large"})

//--- buffer.mlir
// NAMED-NOT: warning
// NAMED: module attributes {fsdp.constants = ["scale_buffer"]}
// NAMED: func.func @f(%{{.*}}: tensor<8xf32> {fsdp.param = "param.0", fsdp.position = 0 : i64}, %{{.*}}: tensor<4xi64> {fsdp.position = 1 : i64})
// NAMED: arith.constant {{.*}}dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// BOTH-NOT: fsdp.constants
// BOTH: func.func @f({{.*}}tensor<4xf32> {fsdp.param = "scale_buffer"})
// SIDE-NOT: warning
// SIDE: func.func @f(%{{.*}}: tensor<8xf32> {fsdp.param = "param.0", fsdp.position = 0 : i64}, {{.*}}tensor<4xf32> {fsdp.frozen, fsdp.param = "scale"})
// GUESS: warning: nothing names the parameters of '@f', so they are a guess: 1 trained: param.0 (8); 1 not trained: scale_buffer (4)
// GUESS: note: name what is trained: {{.*}}--params=auto takes this guess without a warning
// GUESS: fsdp.constants = ["scale_buffer"]
// AUTO-NOT: warning
// AUTO: func.func @f(%{{.*}}: tensor<8xf32> {fsdp.param = "param.0", fsdp.position = 0 : i64}, %{{.*}}: tensor<4xi64> {fsdp.position = 1 : i64})
func.func @f(%w: tensor<8xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %t = arith.constant dense_resource<scale_buffer> : tensor<4xf32>
  return %t : tensor<4xf32>
}
{-#
  dialect_resources: { builtin: { scale_buffer: "0x040000000000803F000000400000404000008040" } }
#-}
//--- side.json
[{"resource": "scale_buffer", "rename": "scale", "frozen": true}, {"index": 0, "frozen": false}]

//--- marked.mlir
// MARKED: fsdp.constants = ["constant"]
// MARKED: func.func @f(%{{.*}}: tensor<8xf32> {fsdp.param = "w", fsdp.position = 0 : i64}, %{{.*}}: tensor<8xf32> {fsdp.position = 1 : i64}) -> tensor<2xf32> {
func.func @f(%w: tensor<8xf32> {fsdp.param = "w"}, %x: tensor<8xf32>) -> tensor<2xf32> {
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32> loc("constant")
  return %t : tensor<2xf32>
}

//--- module.mlir
// In a frozen module the compiler guesses that the constants are the weights.
// MODULE: warning: nothing names the parameters of '@f', so they are a guess: 2 trained: w1 (2), bias (2)
// CHOSEN-NOT: warning
// CHOSEN: fsdp.constants = ["bias"]
// CHOSEN: func.func @f(%{{.*}}: tensor<4xi64> {fsdp.position = 0 : i64}, %{{.*}}: tensor<2xf32> {fsdp.param = "w1"})
func.func @f(%i: tensor<4xi64>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = arith.constant dense_resource<w1> : tensor<2xf32>
  %b = arith.constant dense_resource<bias> : tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}
{-#
  dialect_resources: { builtin: { w1: "0x040000000000803F00000040", bias: "0x040000000000803F00000040" } }
#-}

//--- elided.mlir
// ELIDED: elided.mlir:4:{{[0-9]+}}: error: the content of this 'tensor<4xf32>' is not in the file (its text was elided), and nothing names it as a parameter
// ELIDED: note: give its content with --buffer=scale=FILE, or name it in --params-file
func.func @f(%w: tensor<8xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %t = arith.constant dense_resource<scale> : tensor<4xf32>
  return %t : tensor<4xf32>
}

//--- images.mlir
// IMAGES: error: cannot tell whether argument 1, 'tensor<2x4xf32>', is a parameter or a batch input: nothing names it, and its leading dimension is that of argument 2, 'tensor<2xi64>'
// IMAGES: note: if it comes with each batch, name it: --batch=1=NAME or {fsdp.batch = "NAME"}
// IMAGES: note: if it is trained, list all parameters: --params=0-N
// TOLD-NOT: warning
// TOLD: tensor<4x4xf32> {fsdp.param = "param.0", {{.*}}tensor<2x4xf32> {fsdp.batch = "images"
// TWICE: error: argument 1 is listed as a parameter, and is the batch input "images"; expected one of them
func.func @f(%w: tensor<4x4xf32>, %images: tensor<2x4xf32>, %labels: tensor<2xi64>) -> tensor<2x4xf32> {
  return %images : tensor<2x4xf32>
}
