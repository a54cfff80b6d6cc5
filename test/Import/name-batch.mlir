// Batch inputs that the types do not distinguish need names.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/one.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: fsdp-opt %t/two.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: fsdp-opt %t/loss.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: fsdp-opt %t/unread.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not fsdp-opt %t/three.mlir --fsdp-select-entry --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: fsdp-opt %t/three.mlir --fsdp-select-entry --fsdp-mark-batch="batch=1=tokens,2=mask,labels=targets" --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: not fsdp-opt %t/three.mlir --fsdp-select-entry --fsdp-mark-batch="batch=2=mask" --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=SOME
// RUN: not fsdp-opt %t/shapes.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=SHAPES
// RUN: not fsdp-opt %t/floats.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=FLOATS
// RUN: not fsdp-opt %t/named.mlir --fsdp-name-batch 2>&1 | FileCheck %s --check-prefix=REST

// RUN: not fsdp-opt %t/three.mlir --fsdp-mark-batch="batch=7=mask" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not fsdp-opt %t/three.mlir --fsdp-mark-batch="batch=-1=mask" 2>&1 | FileCheck %s --check-prefix=MINUS
// RUN: not fsdp-opt %t/three.mlir --fsdp-mark-batch="batch=2" 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not fsdp-opt %t/three.mlir --fsdp-mark-batch="batch=2=" 2>&1 | FileCheck %s --check-prefix=SYNTAX2
// RUN: not fsdp-opt %t/three.mlir --fsdp-mark-batch="batch=0=mask" 2>&1 | FileCheck %s --check-prefix=PARAM
// RUN: not fsdp-opt %t/three.mlir --fsdp-mark-batch="batch=1=x,2=x" 2>&1 | FileCheck %s --check-prefix=SAME
// NOBODY: error: --batch=7=mask: expected one argument of '@f' at '7', found 0
// NOBODY: note: it has 4 arguments
// MINUS: error: --batch=-1=mask: expected one argument of '@f' at '-1', found 0
// SYNTAX: error: --batch expected INDEX=NAME, such as 3=labels, found '2'
// SYNTAX2: error: --batch expected INDEX=NAME, such as 3=labels, found '2='
// PARAM: error: --batch=0=mask: argument 0 carries 'fsdp.param' = "w", so it is not a batch input
// SAME: error: arguments 1 and 2 are both the batch input "x"; names must differ

//--- one.mlir
// ONE: remark: argument 1, 'tensor<2x4xi64>', is taken for the tokens: nothing names it; --batch=1=tokens confirms that, another name corrects it
// ONE: func.func @f({{.*}}, %{{.*}}: tensor<2x4xi64> {fsdp.batch = "tokens", fsdp.limit = 9 : i64})
// DOC-BEFORE-BEGIN fsdp-name-batch
func.func @f(%w: tensor<4xf32> {fsdp.param = "w"}, %i: tensor<2x4xi64> {fsdp.limit = 9 : i64}) -> (tensor<4xf32>, tensor<2x4xi64>) {
  return %w, %i : tensor<4xf32>, tensor<2x4xi64>
}
// DOC-BEFORE-END
//--- two.mlir
// TWO: remark: argument 0, {{.*}} is taken for the tokens
// TWO: warning: argument 1, {{.*}} is taken for the targets: nothing names it, and no lookup reads it directly, so that it may be a mask; --batch=1=targets confirms that
// TWO: func.func @f(%{{.*}}: tensor<2x4xi64> {fsdp.batch = "tokens", fsdp.limit = 9 : i64}, %{{.*}}: tensor<2x4xi64> {fsdp.batch = "targets"})
func.func @f(%i: tensor<2x4xi64> {fsdp.limit = 9 : i64}, %j: tensor<2x4xi64>) -> (tensor<2x4xi64>, tensor<2x4xi64>) {
  return %i, %j : tensor<2x4xi64>, tensor<2x4xi64>
}
//--- loss.mlir
// The targets of an attached loss have a name and may have another shape.
// LOSS: func.func @f(%{{.*}}: tensor<2x4xi64> {fsdp.batch = "tokens"}, %{{.*}}: tensor<8xi64> {fsdp.batch = "targets"})
func.func @f(%i: tensor<2x4xi64>, %j: tensor<8xi64> {fsdp.batch = "targets"}) -> (tensor<2x4xi64>, tensor<8xi64>) {
  return %i, %j : tensor<2x4xi64>, tensor<8xi64>
}
//--- unread.mlir
// UNREAD: remark: argument 1, 'tensor<3xf32>', is not read: the model has no input for it
// UNREAD: func.func @f(%{{.*}}: tensor<2x4xi64> {fsdp.batch = "tokens"}, %{{.*}}: tensor<2xi64> {fsdp.batch = "targets"}) -> tensor<2x4xi64>
func.func @f(%i: tensor<2x4xi64>, %x: tensor<3xf32>, %y: tensor<3xf32> , %k: tensor<2xi64> {fsdp.batch = "targets"}) -> tensor<2x4xi64> {
  return %i : tensor<2x4xi64>
}
//--- three.mlir
// THREE: error: cannot tell what each batch input of '@f' is: 3 are of integers; name them
// THREE: note: argument 1, 'tensor<2x4xi64>', has no name: --batch=1=NAME, or {fsdp.batch = "NAME"}
// THREE: note: argument 2, 'tensor<2x4xi64>', has no name: --batch=2=NAME
// THREE: note: {{.*}}argument 3, 'tensor<2x4xi64>', has no name: --batch=3=NAME
// THREE: note: fsdp-run --text and --data feed 'tokens' and, shifted by one token, 'targets'; fsdp-run --input NAME=FILE feeds any input
// NAMED: func.func @f({{.*}}{fsdp.batch = "tokens"}, %{{.*}}: tensor<2x4xi64> {fsdp.batch = "mask"}, %{{.*}}: tensor<2x4xi64> {fsdp.batch = "targets"})
// SOME: error: cannot tell what each batch input of '@f' is: one is called 'mask', others have no name
func.func @f(%w: tensor<4xf32> {fsdp.param = "w"}, %i: tensor<2x4xi64>, %m: tensor<2x4xi64>, %l: tensor<2x4xi64> loc("labels")) -> (tensor<2x4xi64>, tensor<2x4xi64>, tensor<2x4xi64>) {
  return %i, %m, %l : tensor<2x4xi64>, tensor<2x4xi64>, tensor<2x4xi64>
}
//--- shapes.mlir
// SHAPES: error: cannot tell what each batch input of '@f' is: two are of integers, and differ in shape
func.func @f(%i: tensor<2x4xi64>, %l: tensor<2xi64>) -> (tensor<2x4xi64>, tensor<2xi64>) {
  return %i, %l : tensor<2x4xi64>, tensor<2xi64>
}
//--- floats.mlir
// FLOATS: error: cannot tell what each batch input of '@f' is: argument 1 is of floats; name them
// FLOATS: note: argument 0, 'tensor<2x4xi64>', has no name: --batch=0=NAME, or {fsdp.batch = "NAME"}
// FLOATS-NOT: parameter
// FLOATS: note: argument 1, 'tensor<3xf32>', has no name: --batch=1=NAME, or {fsdp.batch = "NAME"}; if it is a parameter, --params=1 beside the others
func.func @f(%i: tensor<2x4xi64>, %x: tensor<3xf32>) -> (tensor<2x4xi64>, tensor<3xf32>) {
  return %i, %x : tensor<2x4xi64>, tensor<3xf32>
}
//--- named.mlir
// REST: error: cannot tell what each batch input of '@f' is: one is called 'images', others have no name
func.func @f(%x: tensor<2x4xf32> {fsdp.batch = "images"}, %l: tensor<2xi64>) -> (tensor<2x4xf32>, tensor<2xi64>) {
  return %x, %l : tensor<2x4xf32>, tensor<2xi64>
}
