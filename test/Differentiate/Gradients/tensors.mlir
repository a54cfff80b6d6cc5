// RUN: fsdp-gradcheck %s --quiet | FileCheck %s

// Views, slices, joins and scalars between tensors.
// CHECK: [[N:[0-9]+]] of [[N]] gradients agree

// Slices that cover the whole tensor: their cotangents are joined without zeros.
func.func @split(%x: tensor<4x18xf64>) -> tensor<4x6xf64> {
  %a = tensor.extract_slice %x[0, 0] [4, 6] [1, 1] : tensor<4x18xf64> to tensor<4x6xf64>
  %b = tensor.extract_slice %x[0, 6] [4, 6] [1, 1] : tensor<4x18xf64> to tensor<4x6xf64>
  %c = tensor.extract_slice %x[0, 12] [4, 6] [1, 1] : tensor<4x18xf64> to tensor<4x6xf64>
  %ab = arith.mulf %a, %b : tensor<4x6xf64>
  %abc = arith.mulf %ab, %c : tensor<4x6xf64>
  return %abc : tensor<4x6xf64>
}
// Overlapping, strided and rank-reducing slices, together with a use of the whole tensor.
func.func @overlap(%x: tensor<4x18xf64>) -> (tensor<4x6xf64>, tensor<6xf64>, tensor<4x18xf64>) {
  %a = tensor.extract_slice %x[0, 0] [4, 6] [1, 1] : tensor<4x18xf64> to tensor<4x6xf64>
  %b = tensor.extract_slice %x[0, 3] [4, 6] [1, 2] : tensor<4x18xf64> to tensor<4x6xf64>
  %c = tensor.extract_slice %x[0, 4] [4, 6] [1, 2] : tensor<4x18xf64> to tensor<4x6xf64>
  %d = tensor.extract_slice %x[2, 0] [1, 6] [1, 1] : tensor<4x18xf64> to tensor<6xf64>
  %0 = arith.mulf %a, %b : tensor<4x6xf64>
  %1 = arith.addf %0, %c : tensor<4x6xf64>
  %2 = math.sin %d : tensor<6xf64>
  %3 = math.cos %x : tensor<4x18xf64>
  return %1, %2, %3 : tensor<4x6xf64>, tensor<6xf64>, tensor<4x18xf64>
}
func.func @insert_slice(%x: tensor<4x6xf64>, %p: tensor<2x3xf64>, %d: tensor<6xf64>) -> tensor<4x6xf64> {
  %i = tensor.insert_slice %p into %x[1, 2] [2, 3] [1, 1] : tensor<2x3xf64> into tensor<4x6xf64>
  %j = tensor.insert_slice %d into %i[0, 0] [1, 6] [1, 1] : tensor<6xf64> into tensor<4x6xf64>
  %y = arith.mulf %j, %x : tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @concat(%x: tensor<4x2xf64>, %y: tensor<4x3xf64>, %c: tensor<4x1xf64> {fsdp.frozen}) -> tensor<4x8xf64> {
  %k = tensor.concat dim(1) %x, %c, %y, %x : (tensor<4x2xf64>, tensor<4x1xf64>, tensor<4x3xf64>, tensor<4x2xf64>) -> tensor<4x8xf64>
  %s = arith.mulf %k, %k : tensor<4x8xf64>
  return %s : tensor<4x8xf64>
}
func.func @pad(%x: tensor<2x3xf64>) -> tensor<4x6xf64> {
  %c2 = arith.constant 2.0 : f64
  %p = tensor.pad %x low[1, 2] high[1, 1] {
  ^bb0(%u: index, %v: index):
    tensor.yield %c2 : f64
  } : tensor<2x3xf64> to tensor<4x6xf64>
  %s = arith.mulf %p, %p : tensor<4x6xf64>
  return %s : tensor<4x6xf64>
}
func.func @reshape(%x: tensor<6x6xf64>) -> (tensor<4x6xf64>, tensor<1xf64>) {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<6x6xf64> into tensor<36xf64>
  %x2 = tensor.expand_shape %c [[0, 1, 2]] output_shape [3, 2, 6] : tensor<36xf64> into tensor<3x2x6xf64>
  %s = tensor.extract_slice %x2[0, 0, 0] [2, 2, 6] [1, 1, 1] : tensor<3x2x6xf64> to tensor<2x2x6xf64>
  %d = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x2x6xf64> into tensor<4x6xf64>
  %e = tensor.extract_slice %x[5, 5] [1, 1] [1, 1] : tensor<6x6xf64> to tensor<f64>
  %f = tensor.expand_shape %e [] output_shape [1] : tensor<f64> into tensor<1xf64>
  %g = math.exp %d : tensor<4x6xf64>
  return %g, %f : tensor<4x6xf64>, tensor<1xf64>
}
func.func @cast(%x: tensor<4xf64>) -> tensor<4xf64> {
  %d = tensor.cast %x : tensor<4xf64> to tensor<?xf64>
  %y = tensor.cast %d : tensor<?xf64> to tensor<4xf64>
  %z = math.exp %y : tensor<4xf64>
  return %z : tensor<4xf64>
}
// Scalars: extract, arith and math, from_elements, insert, splat; fully overwritten.
func.func @scalars(%x: tensor<4x6xf64>, %y: tensor<2xf64> {gradcheck.range = [0.5, 1.0]}) -> (tensor<3xf64>, tensor<4x6xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %y[%c0] : tensor<2xf64>
  %b = tensor.extract %y[%c1] : tensor<2xf64>
  %l = math.log %a : f64
  %m = arith.divf %l, %b : f64
  %v = tensor.from_elements %m, %a, %b : tensor<3xf64>
  %w = tensor.insert %b into %v[%c0] : tensor<3xf64>
  %e = tensor.extract %v[%c0] : tensor<3xf64>
  %s = tensor.splat %e : tensor<4x6xf64>
  %t = arith.mulf %s, %x : tensor<4x6xf64>
  return %w, %t : tensor<3xf64>, tensor<4x6xf64>
}
// Neighbouring slices: slices that share one element, slices that touch, and interleaved rows.
func.func @windows(%x: tensor<7xf64>, %z: tensor<8xf64>, %w: tensor<8x3xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4x3xf64>) {
  %a = tensor.extract_slice %x[0] [4] [1] : tensor<7xf64> to tensor<4xf64>
  %b = tensor.extract_slice %x[3] [4] [1] : tensor<7xf64> to tensor<4xf64>
  %ab = arith.mulf %a, %b : tensor<4xf64>
  %c = tensor.extract_slice %z[0] [4] [1] : tensor<8xf64> to tensor<4xf64>
  %d = tensor.extract_slice %z[4] [4] [1] : tensor<8xf64> to tensor<4xf64>
  %cd = arith.mulf %c, %d : tensor<4xf64>
  %e = tensor.extract_slice %w[0, 0] [4, 3] [2, 1] : tensor<8x3xf64> to tensor<4x3xf64>
  %f = tensor.extract_slice %w[1, 0] [4, 3] [2, 1] : tensor<8x3xf64> to tensor<4x3xf64>
  %g = tensor.extract_slice %w[3, 0] [4, 3] [1, 1] : tensor<8x3xf64> to tensor<4x3xf64>
  %ef = arith.mulf %e, %f : tensor<4x3xf64>
  %efg = arith.mulf %ef, %g : tensor<4x3xf64>
  return %ab, %cd, %efg : tensor<4xf64>, tensor<4xf64>, tensor<4x3xf64>
}
