// RUN: split-file %s %t
// RUN: fsdp-opt %t/marks.mlir --fsdp-lift-parameters | FileCheck %s --check-prefix=MARKS
// RUN: fsdp-opt %t/plain.mlir --fsdp-lift-parameters | FileCheck %s --check-prefix=DEFAULT
// RUN: fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params=1,w*" | FileCheck %s --check-prefix=LIST
// RUN: fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/side.json" | FileCheck %s --check-prefix=SIDE
// RUN: fsdp-opt %t/frozen.mlir --fsdp-select-entry --fsdp-lift-parameters --mlir-print-local-scope | FileCheck %s --check-prefix=FROZEN
// RUN: fsdp-opt %t/elided.mlir --fsdp-select-entry --inline="default-pipeline=" --symbol-dce --fsdp-lift-parameters | FileCheck %s --check-prefix=ELIDED
// RUN: fsdp-opt %t/literal.mlir --fsdp-lift-parameters | FileCheck %s --check-prefix=LITERAL
// RUN: fsdp-opt %t/marked.mlir --fsdp-lift-parameters="params=0-1" 2>&1 | FileCheck %s --check-prefix=NOEFFECT
// NOEFFECT: warning: --params has no effect: '@f' marks these parameters itself, and --params cannot remove any
// RUN: fsdp-opt %t/marked.mlir --fsdp-lift-parameters="params=auto" 2>&1 | FileCheck %s --check-prefix=NOEFFECT
// RUN: not fsdp-opt %t/marked.mlir --fsdp-lift-parameters --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=UNMARKED
// UNMARKED: error: cannot tell what each batch input of '@f' is: argument 2 is of floats; name them
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params=0-1,7-9" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params=5-2" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params=0,2" | FileCheck %s --check-prefix=INTEGER
// RUN: not fsdp-opt %t/narrow.mlir --fsdp-lift-parameters="params=0" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params=0,nobody" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/missing.json" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/bad.json" 2>&1 | FileCheck %s --check-prefix=JSON
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/field.json" 2>&1 | FileCheck %s --check-prefix=FIELD
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/nobody.json" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/word.json" 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not fsdp-opt %t/plain.mlir --fsdp-lift-parameters="params-file=%t/bound.json" 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not fsdp-opt %t/floats.mlir --fsdp-lift-parameters 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fsdp-opt %t/twice.mlir --fsdp-lift-parameters 2>&1 | FileCheck %s --check-prefix=TWICE

//--- marks.mlir
// The value of a mark is the parameter's name. Without a value the name is the location, and without a location the position.
// MARKS: func.func @f(%{{.*}}: tensor<2xf32> {fsdp.param = "a.b"}, %{{.*}}: tensor<4xi64>, %{{.*}}: tensor<3xf32> {fsdp.param = "layers.0.w"}, %{{.*}}: tensor<3xf32> {fsdp.param = "param.3"}, %{{.*}}: tensor<2xf32>)
func.func @f(%a: tensor<2xf32> {train.param = "a.b"}, %i: tensor<4xi64>, %b: tensor<3xf32> {train.param} loc("params['layers'][0]['w']"), %c: tensor<3xf32> {fsdp.param}, %x: tensor<2xf32>) {
  return
}

//--- narrow.mlir
// TYPE: error: argument 0 is listed as a parameter but has type 'tensor<2xi4>'; parameters are tensors of floats, or of integers of 1, 8, 16, 32 or 64 bits, which are not trained
func.func @f(%a: tensor<2xi4>) {
  return
}

//--- plain.mlir
// Float arguments before the first integer argument.
// DEFAULT: func.func @f(%{{.*}}: tensor<2xf32> {fsdp.param = "w"}, %{{.*}}: tensor<3xf32> {fsdp.param = "param.1"}, %{{.*}}: tensor<4xi64>, %{{.*}}: tensor<2xf32>)
// LIST: func.func @f(%{{.*}}: tensor<2xf32> {fsdp.param = "w"}, %{{.*}}: tensor<3xf32> {fsdp.param = "param.1"}, %{{.*}}: tensor<4xi64>, %{{.*}}: tensor<2xf32>)
// SIDE: func.func @f(%{{.*}}: tensor<2xf32> {fsdp.frozen, fsdp.param = "w"}, %{{.*}}: tensor<3xf32>, %{{.*}}: tensor<4xi64>, %{{.*}}: tensor<2xf32> {fsdp.init = #fsdp.init<uniform, -1.000000e+00, 1.000000e+00>, fsdp.param = "last"})
// RANGE: error: --params: '7-9' does not match the arguments of '@f', which has 4
// ORDER: error: --params: expected N or N-M with N <= M, found '5-2'
// INTEGER: tensor<4xi64> {fsdp.frozen, fsdp.param = "param.2"}
// NAME: error: --params: 'nobody' does not match the arguments
// MISSING: error: --params-file: cannot read
// JSON: error: --params-file: {{.*}}: not JSON
// FIELD: error: --params-file: unknown field "frozn" at index 0
// WORD: word.json:1:25: error: --params-file: "frozen": expected true or false, found the string "no"
// BOUND: bound.json:2:35: error: --params-file: "b": expected a number, found the string "1"
// NOBODY: error: --params-file: the entry with name 'nobody' matches no argument or constant of '@f'
// DOC-BEFORE-BEGIN fsdp-lift-parameters
// DOC-ARGS: '--fsdp-lift-parameters=params=1,w*'
func.func @f(%a: tensor<2xf32> loc("w"), %b: tensor<3xf32>, %i: tensor<4xi64>, %x: tensor<2xf32>) {
  return
}
// DOC-BEFORE-END

//--- side.json
[{"name": "w", "frozen": true},
 {"index": 3, "rename": "last", "init": {"kind": "uniform", "a": -1, "b": 1}}]
//--- bad.json
[{"name": "w",
//--- field.json
[{"index": 0, "frozn": true}]
//--- word.json
[{"index": 0, "frozen": "no"}]
//--- bound.json
[{"index": 0, "init":
  {"kind": "normal", "a": 0, "b": "1"}}]
//--- nobody.json
[{"name": "nobody"}]

//--- frozen.mlir
// Constants with values: the module keeps the values. Constants with equal keys
// are one parameter. Frequencies that only reach sin and cos stay constants.
// FROZEN: module attributes {fsdp.constants = ["frequencies"], fsdp.values = {torch_tensor_2_2 = dense_resource<torch_tensor_2_2> : tensor<2x2xf32>}}
// FROZEN: func.func @f(%{{.*}}: tensor<4xi64> {fsdp.position = 0 : i64}, %[[W:.*]]: tensor<2x2xf32> {fsdp.param = "torch_tensor_2_2"})
// FROZEN: arith.constant {{.*}}dense<[1.000000e+00, 2.000000e+00]>
// FROZEN: return %[[W]], %[[W]],
func.func @f(%i: tensor<4xi64>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) {
  %a = arith.constant dense_resource<torch_tensor_2_2> : tensor<2x2xf32>
  %b = arith.constant dense_resource<torch_tensor_2_2> : tensor<2x2xf32>
  %q = arith.constant dense_resource<frequencies> : tensor<2xf32>
  %c = math.cos %q : tensor<2xf32>
  return %a, %b, %c : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      torch_tensor_2_2: "0x040000000000803F000000400000404000008040",
      frequencies: "0x040000000000803F00000040"
    }
  }
#-}

//--- elided.mlir
// Elided constants of one type are different parameters, but a constant of a function
// that is called twice is one parameter.
// ELIDED: func.func @f(%{{.*}}: tensor<4xi64> {fsdp.position = 0 : i64}, %[[A:.*]]: tensor<2xf32> {fsdp.param = "param.0"}, %[[B:.*]]: tensor<2xf32> {fsdp.param = "param.1"}, %[[C:.*]]: tensor<2xf32> {fsdp.param = "param.2"})
// ELIDED: return %[[A]], %[[B]], %[[C]], %[[C]]
func.func @f(%i: tensor<4xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = arith.constant dense_resource<__elided__> : tensor<2xf32>
  %b = arith.constant dense_resource<__elided__> : tensor<2xf32>
  %c = call @g() : () -> tensor<2xf32>
  %d = call @g() : () -> tensor<2xf32>
  return %a, %b, %c, %d : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
func.func private @g() -> tensor<2xf32> {
  %a = arith.constant dense_resource<__elided__> : tensor<2xf32>
  return %a : tensor<2xf32>
}

//--- literal.mlir
// Constants with inline values are weights only in a module without parameter arguments.
// LITERAL: func.func @f(%{{.*}}: tensor<2xf32> {fsdp.param = "w"}, %{{.*}}: tensor<4xi64>)
// LITERAL: arith.constant dense<[1.000000e+00, 2.000000e+00]>
func.func @f(%a: tensor<2xf32> {fsdp.param = "w"}, %i: tensor<4xi64>) -> tensor<2xf32> {
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %t : tensor<2xf32>
}

//--- floats.mlir
// NONE: error: found no parameter in '@f'; mark arguments with {fsdp.param = "name"}, or list them: --params=0-147 or --params-file=FILE.json
func.func @f(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  return
}

//--- twice.mlir
// TWICE: error: two parameters are called 'w'; names must differ
func.func @f(%a: tensor<2xf32> {fsdp.param = "w"}, %b: tensor<3xf32> {fsdp.param = "w"}) {
  return
}
//--- marked.mlir
func.func @f(%w: tensor<4xf32> {fsdp.param = "w"}, %v: tensor<4xf32> {fsdp.param = "v"}, %x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
