// The verifier after Import checks the values and the seed of a module.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/fine.mlir --fsdp-lift-parameters="params=x" | FileCheck %s --check-prefix=MERGED
// RUN: fsdp-opt %t/fine.mlir --fsdp-import="attach-loss=cross_entropy params=w,x batch=1=b" | FileCheck %s --check-prefix=FINE
// RUN: not fsdp-opt %t/nobody.mlir --fsdp-verify-imported 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not fsdp-opt %t/shape.mlir --fsdp-verify-imported 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not fsdp-opt %t/elided.mlir --fsdp-verify-imported 2>&1 | FileCheck %s --check-prefix=ELIDED
// RUN: not fsdp-opt %t/short.mlir --fsdp-verify-imported 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: not fsdp-opt %t/seed.mlir --fsdp-verify-imported 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: not fsdp-opt %t/extra.mlir --fsdp-verify-imported 2>&1 | FileCheck %s --check-prefix=EXTRA

//--- fine.mlir
// The module keeps its values; values of named constants are added.
// MERGED: module attributes {fsdp.seed = 7 : i64, fsdp.values = {w = dense<5.000000e-01> : tensor<2x3xbf16>, x = dense_resource<x> : tensor<4x2xf32>}}
// FINE: module attributes {fsdp.seed = 7 : i64, fsdp.values = {w = dense<5.000000e-01> : tensor<2x3xbf16>, x = dense_resource<x> : tensor<4x2xf32>}}
// FINE: fsdp.param = "w"
module attributes {fsdp.seed = 7 : i64, fsdp.values = {w = dense<0.5> : tensor<2x3xbf16>}} {
func.func @f(%w: tensor<2x3xf32> {fsdp.param = "w"}, %b: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %x = arith.constant dense_resource<x> : tensor<4x2xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x2xf32>, tensor<2x3xf32>) outs(%b : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
}
{-#
  dialect_resources: { builtin: { x: "0x040000000000803F00000040000040400000804000000000000000000000000000000000" } }
#-}

//--- nobody.mlir
// NOBODY: error: 'fsdp.values' has values for "v", which is no parameter of '@f'
module attributes {fsdp.values = {v = dense<0.5> : tensor<2xf32>}} {
func.func @f(%w: tensor<f32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  return %w : tensor<f32>
}
}

//--- shape.mlir
// SHAPE: error: parameter "w" expected float values of its shape, 'tensor<f32>', found 'tensor<2xf32>'
module attributes {fsdp.values = {w = dense<0.5> : tensor<2xf32>}} {
func.func @f(%w: tensor<f32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  return %w : tensor<f32>
}
}

//--- elided.mlir
// ELIDED: error: the values of parameter "w" are missing: the module was printed without its resources
module attributes {fsdp.values = {w = dense_resource<__elided__> : tensor<f32>}} {
func.func @f(%w: tensor<f32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  return %w : tensor<f32>
}
}

//--- short.mlir
// SHORT: error: the values of parameter "w" expected 4 bytes, found 2
module attributes {fsdp.values = {w = dense_resource<w> : tensor<f32>}} {
func.func @f(%w: tensor<f32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  return %w : tensor<f32>
}
}
{-#
  dialect_resources: { builtin: { w: "0x040000000000" } }
#-}

//--- seed.mlir
// SEED: error: expected 'fsdp.seed' of type i64, found 7 : i128
module attributes {fsdp.seed = 7 : i128} {
func.func @f(%w: tensor<f32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) -> tensor<f32> {
  return %w : tensor<f32>
}
}

//--- extra.mlir
// EXTRA: error: argument 1 expected 'fsdp.extra_ids' as array<i64: ..> beside 'fsdp.limit', found array<i64: -100>
func.func @f(%w: tensor<f32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
             %t: tensor<2xi64> {fsdp.batch = "targets", fsdp.extra_ids = array<i64: -100>}) -> tensor<f32> {
  return %w : tensor<f32>
}
