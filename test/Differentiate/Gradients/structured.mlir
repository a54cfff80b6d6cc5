// RUN: fsdp-gradcheck %s --quiet | FileCheck %s

// Every kind of structured op (maps, sums, extremes) and of indexing map.
// CHECK: [[N:[0-9]+]] of [[N]] gradients agree

#id1 = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
#t2 = affine_map<(i, j) -> (j, i)>
#r2 = affine_map<(i, j) -> (i)>
#c2 = affine_map<(i, j) -> (j)>
#n2 = affine_map<(i, j) -> ()>

// A row, a column and a rank-0 operand broadcast over a map.
func.func @broadcast(%x: tensor<4x6xf64>, %row: tensor<6xf64> {gradcheck.range = [0.5, 1.0]}, %col: tensor<4xf64>,
                     %s: tensor<f64> {gradcheck.range = [1.0, 2.0]}) -> tensor<4x6xf64> {
  %e = tensor.empty() : tensor<4x6xf64>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #r2, #n2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %row, %col, %s : tensor<4x6xf64>, tensor<6xf64>, tensor<4xf64>, tensor<f64>) outs(%e : tensor<4x6xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64, %d: f64, %o: f64):
    %0 = arith.mulf %a, %b : f64
    %1 = arith.divf %0, %d : f64
    %2 = arith.subf %1, %c : f64
    %3 = arith.maximumf %2, %a : f64
    %4 = arith.minimumf %3, %d : f64
    %5 = arith.cmpf ogt, %4, %c : f64
    %6 = arith.mulf %4, %4 : f64
    %7 = arith.select %5, %6, %c : f64
    %8 = math.fma %7, %a, %b : f64
    linalg.yield %8 : f64
  } -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}

// Unit dimensions by constant maps; one tensor under two maps.
func.func @constant_maps(%x: tensor<6x6xf64>, %b: tensor<1x6xf64>, %c: tensor<6x1xf64>) -> tensor<6x6xf64> {
  %e = tensor.empty() : tensor<6x6xf64>
  %y = linalg.generic {indexing_maps = [#id2, #t2, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, 0)>, #id2],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %x, %b, %c : tensor<6x6xf64>, tensor<6x6xf64>, tensor<1x6xf64>, tensor<6x1xf64>) outs(%e : tensor<6x6xf64>) {
  ^bb0(%p: f64, %q: f64, %r: f64, %s: f64, %o: f64):
    %0 = arith.mulf %p, %q : f64
    %1 = arith.mulf %0, %r : f64
    %2 = arith.mulf %1, %s : f64
    linalg.yield %2 : f64
  } -> tensor<6x6xf64>
  return %y : tensor<6x6xf64>
}

// One row of a larger tensor is read by a constant index: the other rows have gradient 0.
func.func @constant_row(%x: tensor<4xf64>, %b: tensor<3x4xf64>) -> tensor<4xf64> {
  %e = tensor.empty() : tensor<4xf64>
  %y = linalg.generic {indexing_maps = [#id1, affine_map<(i) -> (1, i)>, #id1], iterator_types = ["parallel"]}
      ins(%x, %b : tensor<4xf64>, tensor<3x4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.mulf %p, %q : f64
    linalg.yield %0 : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// An operand, and so its adjoint, has the map d0 + d1.
func.func @convolution(%x: tensor<8xf64>, %w: tensor<3xf64>) -> tensor<6xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<6xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<6xf64>) -> tensor<6xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8xf64>, tensor<3xf64>) outs(%f : tensor<6xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %m = arith.mulf %a, %b : f64
    %s = arith.addf %o, %m : f64
    linalg.yield %s : f64
  } -> tensor<6xf64>
  return %y : tensor<6xf64>
}
func.func @conv_2d(%x: tensor<1x6x6x2xf64>, %w: tensor<2x3x2x3xf64>) -> tensor<1x3x2x3xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<1x3x2x3xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<1x3x2x3xf64>) -> tensor<1x3x2x3xf64>
  %y = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x6x6x2xf64>, tensor<2x3x2x3xf64>) outs(%f : tensor<1x3x2x3xf64>) -> tensor<1x3x2x3xf64>
  return %y : tensor<1x3x2x3xf64>
}
func.func @pooling(%x: tensor<1x6x6x2xf64>) -> tensor<1x2x2x2xf64> {
  %z = arith.constant 0xFFF0000000000000 : f64
  %e = tensor.empty() : tensor<1x2x2x2xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<1x2x2x2xf64>) -> tensor<1x2x2x2xf64>
  %w = tensor.empty() : tensor<3x3xf64>
  %y = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x6x6x2xf64>, tensor<3x3xf64>) outs(%f : tensor<1x2x2x2xf64>) -> tensor<1x2x2x2xf64>
  return %y : tensor<1x2x2x2xf64>
}

// Only the diagonal of an operand is read: the other elements have gradient 0.
func.func @diagonal(%x: tensor<6xf64>, %d: tensor<6x6xf64>) -> tensor<6xf64> {
  %e = tensor.empty() : tensor<6xf64>
  %y = linalg.generic {indexing_maps = [#id1, affine_map<(i) -> (i, i)>, #id1], iterator_types = ["parallel"]}
      ins(%x, %d : tensor<6xf64>, tensor<6x6xf64>) outs(%e : tensor<6xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %m = arith.mulf %a, %b : f64
    linalg.yield %m : f64
  } -> tensor<6xf64>
  return %y : tensor<6xf64>
}

// Sums with subf, several terms and an active init; a mean.
func.func @sum(%x: tensor<4x6xf64>, %init: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf64>) outs(%init : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %q = arith.mulf %a, %a : f64
    %p = arith.subf %o, %q : f64
    %t = arith.addf %a, %p : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}
func.func @mean(%x: tensor<4x6xf64>) -> tensor<f64> {
  %z = arith.constant 0.0 : f64
  %n = arith.constant 24.0 : f64
  %e = tensor.empty() : tensor<f64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %y = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<4x6xf64>) outs(%f : tensor<f64>) {
  ^bb0(%a: f64, %o: f64):
    %q = math.exp %a : f64
    %d = arith.divf %q, %n : f64
    %t = arith.addf %o, %d : f64
    linalg.yield %t : f64
  } -> tensor<f64>
  return %y : tensor<f64>
}

// An extreme whose init is active and sometimes wins, with the argmax beside it.
func.func @maximum(%x: tensor<4x6xf64>, %init: tensor<4xf64> {gradcheck.range = [0.4, 1.0]}) -> tensor<4xf64> {
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<4xi64>
  %i = linalg.fill ins(%c0 : i64) outs(%e : tensor<4xi64>) -> tensor<4xi64>
  %m:2 = linalg.generic {indexing_maps = [#id2, #r2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf64>) outs(%init, %i : tensor<4xf64>, tensor<4xi64>) {
  ^bb0(%a: f64, %o: f64, %oi: i64):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %t = arith.maximumf %a, %o : f64
    %c = arith.cmpf ogt, %a, %o : f64
    %n = arith.select %c, %ki, %oi : i64
    linalg.yield %t, %n : f64, i64
  } -> (tensor<4xf64>, tensor<4xi64>)
  %e1 = tensor.empty() : tensor<4xf64>
  %y = linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%m#0, %m#1 : tensor<4xf64>, tensor<4xi64>) outs(%e1 : tensor<4xf64>) {
  ^bb0(%b: f64, %c: i64, %o: f64):
    %f = arith.sitofp %c : i64 to f64
    %0 = arith.mulf %b, %f : f64
    %1 = arith.addf %0, %b : f64
    linalg.yield %1 : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}
func.func @minimum(%x: tensor<4x6xf64>) -> tensor<6xf64> {
  %z = arith.constant 0x7FF0000000000000 : f64
  %e = tensor.empty() : tensor<6xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<6xf64>) -> tensor<6xf64>
  %m = linalg.generic {indexing_maps = [#id2, #c2], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4x6xf64>) outs(%f : tensor<6xf64>) {
  ^bb0(%a: f64, %o: f64):
    %q = arith.mulf %a, %a : f64
    %t = arith.minimumf %o, %q : f64
    linalg.yield %t : f64
  } -> tensor<6xf64>
  return %m : tensor<6xf64>
}
// If x and y are equal, both differences move x and y together, and each has half the gradient.
func.func @tie(%x: tensor<4xf64>) -> tensor<f64> {
  %z = arith.constant 0xFFF0000000000000 : f64
  %e = tensor.empty() : tensor<f64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %xx = tensor.concat dim(0) %x, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<8xf64>
  %m = linalg.generic {indexing_maps = [#id1, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%xx : tensor<8xf64>) outs(%f : tensor<f64>) {
  ^bb0(%a: f64, %o: f64):
    %t = arith.maximumf %o, %a : f64
    linalg.yield %t : f64
  } -> tensor<f64>
  return %m : tensor<f64>
}
func.func @tie_of_two(%x: tensor<4xf64>) -> tensor<4xf64> {
  %y = arith.maximumf %x, %x : tensor<4xf64>
  return %y : tensor<4xf64>
}

// Softmax as importers write it: the cotangent of the maximum cancels.
func.func @softmax_chain(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %z = arith.constant 0.0 : f64
  %lowest = arith.constant 0xFFF0000000000000 : f64
  %e1 = tensor.empty() : tensor<4xf64>
  %e2 = tensor.empty() : tensor<4x6xf64>
  %f = linalg.fill ins(%lowest : f64) outs(%e1 : tensor<4xf64>) -> tensor<4xf64>
  %m = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf64>) outs(%f : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %t = arith.maximumf %a, %o : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %p = linalg.generic {indexing_maps = [#id2, #r2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x6xf64>, tensor<4xf64>) outs(%e2 : tensor<4x6xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %d = arith.subf %a, %b : f64
    %t = math.exp %d : f64
    linalg.yield %t : f64
  } -> tensor<4x6xf64>
  %g = linalg.fill ins(%z : f64) outs(%e1 : tensor<4xf64>) -> tensor<4xf64>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<4x6xf64>) outs(%g : tensor<4xf64>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#id2, #r2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<4x6xf64>, tensor<4xf64>) outs(%e2 : tensor<4x6xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %t = arith.divf %a, %b : f64
    linalg.yield %t : f64
  } -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}

// Bodies with two results, under different maps, both used.
func.func @two_results(%x: tensor<4x6xf64>, %b: tensor<6xf64>) -> (tensor<4x6xf64>, tensor<6x4xf64>, tensor<4xf64>, tensor<4xf64>) {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x6xf64>
  %e6 = tensor.empty() : tensor<6x4xf64>
  %e1 = tensor.empty() : tensor<4xf64>
  %i = linalg.fill ins(%z : f64) outs(%e1 : tensor<4xf64>) -> tensor<4xf64>
  %m:2 = linalg.generic {indexing_maps = [#id2, #c2, #id2, #t2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<4x6xf64>, tensor<6xf64>) outs(%e, %e6 : tensor<4x6xf64>, tensor<6x4xf64>) {
  ^bb0(%p: f64, %q: f64, %o0: f64, %o1: f64):
    %t = math.tanh %p : f64
    %u = arith.mulf %t, %q : f64
    linalg.yield %t, %u : f64, f64
  } -> (tensor<4x6xf64>, tensor<6x4xf64>)
  %s:2 = linalg.generic {indexing_maps = [#id2, #r2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf64>) outs(%i, %i : tensor<4xf64>, tensor<4xf64>) {
  ^bb0(%p: f64, %o0: f64, %o1: f64):
    %q = arith.mulf %p, %p : f64
    %0 = arith.addf %p, %o0 : f64
    %1 = arith.addf %o1, %q : f64
    linalg.yield %0, %1 : f64, f64
  } -> (tensor<4xf64>, tensor<4xf64>)
  return %m#0, %m#1, %s#0, %s#1 : tensor<4x6xf64>, tensor<6x4xf64>, tensor<4xf64>, tensor<4xf64>
}

// The extent of a loop does not follow from any operand of the adjoint.
func.func @extent(%x: tensor<4xf64>, %d: tensor<4x3xf64> {gradcheck.range = [0.0, 1.0]}) -> tensor<4xf64> {
  %z = arith.constant 0.0 : f64
  %c2 = arith.constant 2.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %i = linalg.fill ins(%z : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %s = linalg.generic {indexing_maps = [#r2, #id2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x, %d : tensor<4xf64>, tensor<4x3xf64>) outs(%i : tensor<4xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.mulf %p, %c2 : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  } -> tensor<4xf64>
  return %s : tensor<4xf64>
}

// transpose, broadcast, map, reduce, elementwise, fill of an active scalar.
func.func @named(%x: tensor<6x4xf64>, %v: tensor<6xf64>, %s: tensor<f64>) -> tensor<4x6xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x6xf64>
  %e1 = tensor.empty() : tensor<6xf64>
  %t = linalg.transpose ins(%x : tensor<6x4xf64>) outs(%e : tensor<4x6xf64>) permutation = [1, 0]
  %b = linalg.broadcast ins(%v : tensor<6xf64>) outs(%e : tensor<4x6xf64>) dimensions = [0]
  %m = linalg.map { math.exp } ins(%b : tensor<4x6xf64>) outs(%e : tensor<4x6xf64>)
  %y = linalg.mul ins(%m, %t : tensor<4x6xf64>, tensor<4x6xf64>) outs(%e : tensor<4x6xf64>) -> tensor<4x6xf64>
  %i = linalg.fill ins(%z : f64) outs(%e1 : tensor<6xf64>) -> tensor<6xf64>
  %r = linalg.reduce { arith.addf } ins(%y : tensor<4x6xf64>) outs(%i : tensor<6xf64>) dimensions = [0]
  %b2 = linalg.broadcast ins(%r : tensor<6xf64>) outs(%e : tensor<4x6xf64>) dimensions = [0]
  %w = linalg.elementwise kind=#linalg.elementwise_kind<sub> ins(%b2, %m : tensor<4x6xf64>, tensor<4x6xf64>) outs(%e : tensor<4x6xf64>) -> tensor<4x6xf64>
  %sc = tensor.extract %s[] : tensor<f64>
  %sq = arith.mulf %sc, %sc : f64
  %f = linalg.fill ins(%sq : f64) outs(%e : tensor<4x6xf64>) -> tensor<4x6xf64>
  %u = linalg.mul ins(%w, %f : tensor<4x6xf64>, tensor<4x6xf64>) outs(%e : tensor<4x6xf64>) -> tensor<4x6xf64>
  return %u : tensor<4x6xf64>
}

// A map that reads the tensor that it overwrites, and linalg.index in the body.
func.func @reads_init(%x: tensor<4x6xf64>, %init: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %y = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf64>) outs(%init : tensor<4x6xf64>) {
  ^bb0(%a: f64, %o: f64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi ule, %i, %j : index
    %0 = arith.mulf %a, %o : f64
    %1 = arith.select %c, %0, %a : f64
    linalg.yield %1 : f64
  } -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}

// x + b: b̄ is the sum of x̄. Both x and b are read again, so each has a second cotangent.
func.func @shared_gradient(%x: tensor<4x6xf64>, %b: tensor<6xf64>) -> (tensor<4x6xf64>, tensor<4x6xf64>, tensor<6xf64>) {
  %e = tensor.empty() : tensor<4x6xf64>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<4x6xf64>, tensor<6xf64>) outs(%e : tensor<4x6xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.addf %p, %q : f64
    %1 = math.tanh %0 : f64
    linalg.yield %1 : f64
  } -> tensor<4x6xf64>
  %s = arith.mulf %x, %x : tensor<4x6xf64>
  %t = math.sin %b : tensor<6xf64>
  return %y, %s, %t : tensor<4x6xf64>, tensor<4x6xf64>, tensor<6xf64>
}
// x + yᵀ: ȳ is the transpose of x̄.
func.func @transposed_residual(%x: tensor<4x4xf64>, %y: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %e = tensor.empty() : tensor<4x4xf64>
  %z = linalg.generic {indexing_maps = [#id2, #t2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x4xf64>, tensor<4x4xf64>) outs(%e : tensor<4x4xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %0 = arith.addf %a, %b : f64
    linalg.yield %0 : f64
  } -> tensor<4x4xf64>
  return %z : tensor<4x4xf64>
}
