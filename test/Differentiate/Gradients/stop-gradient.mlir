// Finite differences through fsdp.stop_gradient: the checker holds the op's result constant.
// RUN: fsdp-gradcheck %s | FileCheck %s
// RUN: not fsdp-gradcheck %s --sabotage=1 | FileCheck %s --check-prefix=SPOILT
// Without fsdp.stop_gradient the gradients differ, so the check above can fail.
// RUN: fsdp-opt %s --fsdp-add-backward | FileCheck %s --check-prefix=GONE
// CHECK-NOT: FAIL
// CHECK: 10 of 10 gradients agree
// SPOILT: FAIL
// GONE-NOT: = fsdp.stop_gradient

// x * stop(x): the gradient is x, not 2 x.
func.func @square(%x: tensor<5x7xf64>) -> tensor<5x7xf64> {
  %h = fsdp.stop_gradient %x : tensor<5x7xf64>
  %y = arith.mulf %x, %h : tensor<5x7xf64>
  return %y : tensor<5x7xf64>
}

// The whole result is stopped: the differences and the gradient are 0.
func.func @all(%x: tensor<6xf64>) -> tensor<6xf64> {
  %e = math.exp %x : tensor<6xf64>
  %h = fsdp.stop_gradient %e : tensor<6xf64>
  return %h : tensor<6xf64>
}

// A straight-through estimator, x + stop(round(x) - x): the gradient is 1.
func.func @straight_through(%x: tensor<9xf64> {gradcheck.range = [0.1, 0.4]}) -> tensor<9xf64> {
  %r = math.roundeven %x : tensor<9xf64>
  %d = arith.subf %r, %x : tensor<9xf64>
  %h = fsdp.stop_gradient %d : tensor<9xf64>
  %y = arith.addf %x, %h : tensor<9xf64>
  return %y : tensor<9xf64>
}

// An fsdp.stop_gradient of a value that depends on another one. Both results are read.
func.func @nested(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %a = arith.mulf %x, %w : tensor<4xf64>
  %h = fsdp.stop_gradient %a : tensor<4xf64>
  %b = arith.mulf %h, %w : tensor<4xf64>
  %g = fsdp.stop_gradient %b : tensor<4xf64>
  %c = arith.mulf %b, %x : tensor<4xf64>
  %y = arith.mulf %c, %g : tensor<4xf64>
  return %y : tensor<4xf64>
}

// A product is read directly and through a stop, whose result is sliced.
func.func @views(%x: tensor<4x6xf64>, %w: tensor<6x8xf64>) -> tensor<8x8xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x8xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<4x8xf64>) -> tensor<4x8xf64>
  %p = linalg.matmul ins(%x, %w : tensor<4x6xf64>, tensor<6x8xf64>) outs(%f : tensor<4x8xf64>) -> tensor<4x8xf64>
  %h = fsdp.stop_gradient %p : tensor<4x8xf64>
  %s = tensor.extract_slice %h[0, 2] [4, 6] [1, 1] : tensor<4x8xf64> to tensor<4x6xf64>
  %m = arith.mulf %x, %s : tensor<4x6xf64>
  %q = linalg.matmul ins(%m, %w : tensor<4x6xf64>, tensor<6x8xf64>) outs(%f : tensor<4x8xf64>) -> tensor<4x8xf64>
  %y = tensor.concat dim(0) %p, %q : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<8x8xf64>
  return %y : tensor<8x8xf64>
}

// A table is looked up twice, once through a stop.
func.func @lookup(%t: tensor<5x6xf64>, %i: tensor<3xi64> {gradcheck.limit = 5}, %n: tensor<3xi64> {gradcheck.limit = 6}) -> tensor<f64> {
  %h = fsdp.stop_gradient %t : tensor<5x6xf64>
  %a = fsdp.gather_rows %t[%i] : tensor<5x6xf64>, tensor<3xi64> -> tensor<3x6xf64>
  %b = fsdp.gather_rows %h[%i] : tensor<5x6xf64>, tensor<3xi64> -> tensor<3x6xf64>
  %l = arith.mulf %a, %b : tensor<3x6xf64>
  %loss, %lse = fsdp.cross_entropy %l, %n : tensor<3x6xf64>, tensor<3xi64> -> tensor<f64>, tensor<3xf64>
  return %loss : tensor<f64>
}

// The marker function of an exporter, in f32.
func.func private @fsdp.stop_gradient(tensor<4x4xf32>) -> tensor<4x4xf32>
func.func @marker(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %h = call @fsdp.stop_gradient(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = arith.mulf %h, %x : tensor<4x4xf32>
  %y = arith.mulf %m, %w : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
