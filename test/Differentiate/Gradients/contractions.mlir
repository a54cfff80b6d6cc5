// RUN: fsdp-gradcheck %s --quiet | FileCheck %s

// Contractions: all transposes, batches, products that reduce nothing, named ops, and
// an operand that is used twice.
// CHECK: [[N:[0-9]+]] of [[N]] gradients agree

func.func @nn(%a: tensor<3x5xf64>, %b: tensor<5x4xf64>, %c: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<3x5xf64>, tensor<5x4xf64>) outs(%c : tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @nt(%a: tensor<3x5xf64>, %b: tensor<4x5xf64>, %c: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<3x5xf64>, tensor<4x5xf64>) outs(%c : tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @tn(%a: tensor<5x3xf64>, %b: tensor<5x4xf64>, %c: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<5x3xf64>, tensor<5x4xf64>) outs(%c : tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @tt(%a: tensor<5x3xf64>, %b: tensor<4x5xf64>, %c: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<5x3xf64>, tensor<4x5xf64>) outs(%c : tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @out_transposed(%a: tensor<3x5xf64>, %b: tensor<5x4xf64>, %c: tensor<4x3xf64>) -> tensor<4x3xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%a, %b : tensor<3x5xf64>, tensor<5x4xf64>) outs(%c : tensor<4x3xf64>) -> tensor<4x3xf64>
  return %y : tensor<4x3xf64>
}
func.func @batch(%a: tensor<2x3x5xf64>, %b: tensor<2x5x4xf64>, %c: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%a, %b : tensor<2x3x5xf64>, tensor<2x5x4xf64>) outs(%c : tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}
func.func @heads(%a: tensor<2x3x3x5xf64>, %b: tensor<2x4x3x5xf64>, %c: tensor<2x3x3x4xf64>) -> tensor<2x3x3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (b, n, h, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
      ins(%a, %b : tensor<2x3x3x5xf64>, tensor<2x4x3x5xf64>) outs(%c : tensor<2x3x3x4xf64>) -> tensor<2x3x3x4xf64>
  return %y : tensor<2x3x3x4xf64>
}
func.func @heads_out(%a: tensor<2x3x3x4xf64>, %b: tensor<2x4x3x5xf64>, %c: tensor<2x3x3x5xf64>) -> tensor<2x3x3x5xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, n)>, affine_map<(b, h, m, n, k) -> (b, n, h, k)>, affine_map<(b, h, m, n, k) -> (b, m, h, k)>]
      ins(%a, %b : tensor<2x3x3x4xf64>, tensor<2x4x3x5xf64>) outs(%c : tensor<2x3x3x5xf64>) -> tensor<2x3x3x5xf64>
  return %y : tensor<2x3x3x5xf64>
}
func.func @two_batches_inside(%a: tensor<3x2x5xf64>, %b: tensor<5x2x4xf64>, %c: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (k, b, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%a, %b : tensor<3x2x5xf64>, tensor<5x2x4xf64>) outs(%c : tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}
func.func @two_reduced(%a: tensor<3x3x5xf64>, %b: tensor<5x3x4xf64>, %c: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(h, m, n, k) -> (m, h, k)>, affine_map<(h, m, n, k) -> (k, h, n)>, affine_map<(h, m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<3x3x5xf64>, tensor<5x3x4xf64>) outs(%c : tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @matvec(%a: tensor<3x5xf64>, %b: tensor<5xf64>, %c: tensor<3xf64>) -> tensor<3xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>]
      ins(%a, %b : tensor<3x5xf64>, tensor<5xf64>) outs(%c : tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func @inner(%a: tensor<5xf64>, %b: tensor<5xf64>, %c: tensor<f64>) -> tensor<f64> {
  %y = linalg.contract indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>]
      ins(%a, %b : tensor<5xf64>, tensor<5xf64>) outs(%c : tensor<f64>) -> tensor<f64>
  return %y : tensor<f64>
}
func.func @row_times_column(%a: tensor<3x5xf64>, %b: tensor<3x5xf64>, %c: tensor<3xf64>) -> tensor<3xf64> {
  %y = linalg.contract indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>]
      ins(%a, %b : tensor<3x5xf64>, tensor<3x5xf64>) outs(%c : tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func @named(%a: tensor<4x5xf64>, %b: tensor<5x6xf64>, %d: tensor<6x5xf64>, %v: tensor<5xf64>, %p: tensor<2x4x5xf64>, %q: tensor<2x5x3xf64>)
    -> (tensor<4x6xf64>, tensor<4x6xf64>, tensor<4xf64>, tensor<2x4x3xf64>, tensor<f64>) {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x6xf64>
  %i = linalg.fill ins(%z : f64) outs(%e : tensor<4x6xf64>) -> tensor<4x6xf64>
  %m = linalg.matmul ins(%a, %b : tensor<4x5xf64>, tensor<5x6xf64>) outs(%i : tensor<4x6xf64>) -> tensor<4x6xf64>
  %n = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %d : tensor<4x5xf64>, tensor<6x5xf64>) outs(%m : tensor<4x6xf64>) -> tensor<4x6xf64>
  %e1 = tensor.empty() : tensor<4xf64>
  %i1 = linalg.fill ins(%z : f64) outs(%e1 : tensor<4xf64>) -> tensor<4xf64>
  %w = linalg.matvec ins(%a, %v : tensor<4x5xf64>, tensor<5xf64>) outs(%i1 : tensor<4xf64>) -> tensor<4xf64>
  %e3 = tensor.empty() : tensor<2x4x3xf64>
  %i3 = linalg.fill ins(%z : f64) outs(%e3 : tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  %t = linalg.batch_matmul ins(%p, %q : tensor<2x4x5xf64>, tensor<2x5x3xf64>) outs(%i3 : tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  %e0 = tensor.empty() : tensor<f64>
  %i0 = linalg.fill ins(%z : f64) outs(%e0 : tensor<f64>) -> tensor<f64>
  %s = linalg.dot ins(%v, %v : tensor<5xf64>, tensor<5xf64>) outs(%i0 : tensor<f64>) -> tensor<f64>
  return %m, %n, %w, %t, %s : tensor<4x6xf64>, tensor<4x6xf64>, tensor<4xf64>, tensor<2x4x3xf64>, tensor<f64>
}
// x · xᵀ.
func.func @gram(%x: tensor<4x5xf64>) -> tensor<4x4xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x4xf64>
  %i = linalg.fill ins(%z : f64) outs(%e : tensor<4x4xf64>) -> tensor<4x4xf64>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %x : tensor<4x5xf64>, tensor<4x5xf64>) outs(%i : tensor<4x4xf64>) -> tensor<4x4xf64>
  return %y : tensor<4x4xf64>
}
// exp(a) · b resembles a contraction but is none.
func.func @no_product(%a: tensor<3x5xf64>, %b: tensor<5x4xf64>, %c: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3x5xf64>, tensor<5x4xf64>) outs(%c : tensor<3x4xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = math.exp %p : f64
    %1 = arith.mulf %0, %q : f64
    %2 = arith.addf %o, %1 : f64
    linalg.yield %2 : f64
  } -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
