// RUN: fsdp-gradcheck %s --quiet | FileCheck %s

// Reads at computed indices, repeated indices included, and the raised gather ops.
// CHECK: [[N:[0-9]+]] of [[N]] gradients agree

#id1 = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
#r2 = affine_map<(i, j) -> (i)>

// An embedding tied to the output projection: the rows add into the product's result.
func.func @tied(%w: tensor<5x6xf64> {fsdp.param = "w"}, %ids: tensor<3x4xi64> {fsdp.limit = 5 : i64}) -> tensor<3x4x5xf64> {
  %x = fsdp.gather_rows %w[%ids] : tensor<5x6xf64>, tensor<3x4xi64> -> tensor<3x4x6xf64>
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<3x4x5xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<3x4x5xf64>) -> tensor<3x4x5xf64>
  %s = math.sin %x : tensor<3x4x6xf64>
  %y = linalg.contract indexing_maps = [affine_map<(b, t, v, c) -> (b, t, c)>, affine_map<(b, t, v, c) -> (v, c)>, affine_map<(b, t, v, c) -> (b, t, v)>]
      ins(%s, %w : tensor<3x4x6xf64>, tensor<5x6xf64>) outs(%f : tensor<3x4x5xf64>) -> tensor<3x4x5xf64>
  return %y : tensor<3x4x5xf64>
}
// The same gather as an importer writes it.
func.func @embedding(%w: tensor<5x6xf64>, %ids: tensor<7xi64> {fsdp.limit = 5 : i64}) -> tensor<7x6xf64> {
  %e = tensor.empty() : tensor<7x6xf64>
  %x = linalg.generic {indexing_maps = [#r2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<7xi64>) outs(%e : tensor<7x6xf64>) {
  ^bb0(%id: i64, %o: f64):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<5x6xf64>
    linalg.yield %v : f64
  } -> tensor<7x6xf64>
  %y = arith.mulf %x, %x : tensor<7x6xf64>
  return %y : tensor<7x6xf64>
}
// jnp.take: wraps, clamps, fills.
func.func @take(%w: tensor<5x6xf64>, %ids: tensor<7xi64> {gradcheck.limit = 5 : i64, gradcheck.ignore = -2 : i64}) -> tensor<7x6xf64> {
  %c0 = arith.constant 0 : i64
  %c4 = arith.constant 4 : i64
  %c5 = arith.constant 5 : i64
  %nan = arith.constant -3.0 : f64
  %e = tensor.empty() : tensor<7x6xf64>
  %x = linalg.generic {indexing_maps = [#r2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<7xi64>) outs(%e : tensor<7x6xf64>) {
  ^bb0(%id: i64, %o: f64):
    %neg = arith.cmpi slt, %id, %c0 : i64
    %wr = arith.addi %id, %c5 : i64
    %i0 = arith.select %neg, %wr, %id : i64
    %i1 = arith.maxsi %i0, %c0 : i64
    %i2 = arith.minsi %i1, %c4 : i64
    %i = arith.index_cast %i2 : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<5x6xf64>
    %ok = arith.cmpi eq, %i2, %i0 : i64
    %s = arith.select %ok, %v, %nan : f64
    linalg.yield %s : f64
  } -> tensor<7x6xf64>
  return %x : tensor<7x6xf64>
}
// A gather that is not of whole columns; a captured scalar; a gathered activation; two gathers of one tensor.
func.func @captures(%x: tensor<4x6xf64>, %s: tensor<f64>, %ids: tensor<4x6xi64> {gradcheck.limit = 6 : i64}) -> tensor<4x6xf64> {
  %sc = tensor.extract %s[] : tensor<f64>
  %e = tensor.empty() : tensor<4x6xf64>
  %t = math.exp %x : tensor<4x6xf64>
  %y = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %ids : tensor<4x6xf64>, tensor<4x6xi64>) outs(%e : tensor<4x6xf64>) {
  ^bb0(%a: f64, %id: i64, %o: f64):
    %i = linalg.index 0 : index
    %c3 = arith.constant 3 : index
    %m = arith.subi %c3, %i : index
    %j = arith.index_cast %id : i64 to index
    %v = tensor.extract %t[%i, %j] : tensor<4x6xf64>
    %r = tensor.extract %t[%m, %j] : tensor<4x6xf64>
    %u = arith.mulf %v, %sc : f64
    %w = arith.mulf %u, %a : f64
    %q = arith.addf %w, %r : f64
    linalg.yield %q : f64
  } -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
// Gathered along the last dimension (a column at a time), and by a reduction.
func.func @columns(%x: tensor<3x4x5xf64>, %ids: tensor<4xi64> {gradcheck.limit = 3 : i64}) -> tensor<5xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<5xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<5xf64>) -> tensor<5xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(k, i) -> (k)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%ids : tensor<4xi64>) outs(%f : tensor<5xf64>) {
  ^bb0(%id: i64, %o: f64):
    %r = arith.index_cast %id : i64 to index
    %k = linalg.index 0 : index
    %i = linalg.index 1 : index
    %v = tensor.extract %x[%r, %k, %i] : tensor<3x4x5xf64>
    %q = arith.mulf %v, %v : f64
    %s = arith.addf %o, %q : f64
    linalg.yield %s : f64
  } -> tensor<5xf64>
  return %y : tensor<5xf64>
}
// Every iteration reads the same element.
func.func @element(%x: tensor<3x4xf64>, %id: tensor<i64> {gradcheck.limit = 3 : i64}) -> tensor<5xf64> {
  %e = tensor.empty() : tensor<5xf64>
  %c2 = arith.constant 2 : index
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, #id1], iterator_types = ["parallel"]}
      ins(%id : tensor<i64>) outs(%e : tensor<5xf64>) {
  ^bb0(%d: i64, %o: f64):
    %r = arith.index_cast %d : i64 to index
    %v = tensor.extract %x[%r, %c2] : tensor<3x4xf64>
    linalg.yield %v : f64
  } -> tensor<5xf64>
  return %y : tensor<5xf64>
}
func.func @softmax_rows(%x: tensor<3x4x5xf64>) -> tensor<3x4x5xf64> {
  %e = tensor.empty() : tensor<3x4x5xf64>
  %y = linalg.softmax dimension(2) ins(%x : tensor<3x4x5xf64>) outs(%e : tensor<3x4x5xf64>) -> tensor<3x4x5xf64>
  return %y : tensor<3x4x5xf64>
}
func.func @softmax_columns(%x: tensor<3x4x5xf64>) -> tensor<3x4x5xf64> {
  %e = tensor.empty() : tensor<3x4x5xf64>
  %y = linalg.softmax dimension(1) ins(%x : tensor<3x4x5xf64>) outs(%e : tensor<3x4x5xf64>) -> tensor<3x4x5xf64>
  return %y : tensor<3x4x5xf64>
}
func.func @cross_entropy(%x: tensor<6x5xf64>, %t: tensor<6xi64> {fsdp.limit = 5 : i64}) -> tensor<f64> {
  %loss, %lse = fsdp.cross_entropy %x, %t : tensor<6x5xf64>, tensor<6xi64> -> tensor<f64>, tensor<6xf64>
  return %loss : tensor<f64>
}
func.func @cross_entropy_ignored(%x: tensor<6x5xf64>, %t: tensor<6xi64> {fsdp.limit = 5 : i64, gradcheck.ignore = -100 : i64}) -> tensor<f64> {
  %loss, %lse = fsdp.cross_entropy %x, %t ignore -100 : tensor<6x5xf64>, tensor<6xi64> -> tensor<f64>, tensor<6xf64>
  return %loss : tensor<f64>
}
// Every target is ignored: the gradient is zero, not NaN.
func.func @cross_entropy_of_nothing(%x: tensor<6x1xf64>, %t: tensor<6xi64> {fsdp.limit = 1 : i64}) -> tensor<f64> {
  %loss, %lse = fsdp.cross_entropy %x, %t ignore 0 : tensor<6x1xf64>, tensor<6xi64> -> tensor<f64>, tensor<6xf64>
  return %loss : tensor<f64>
}
// The log-sum-exp is used together with the loss (z-loss), and alone.
func.func @z_loss(%x: tensor<6x5xf64>, %t: tensor<6xi64> {fsdp.limit = 5 : i64}) -> (tensor<f64>, tensor<6xf64>) {
  %loss, %lse = fsdp.cross_entropy %x, %t : tensor<6x5xf64>, tensor<6xi64> -> tensor<f64>, tensor<6xf64>
  %q = arith.mulf %lse, %lse : tensor<6xf64>
  return %loss, %q : tensor<f64>, tensor<6xf64>
}
func.func @lse(%x: tensor<6x5xf64>, %t: tensor<6xi64> {fsdp.limit = 5 : i64}) -> tensor<6xf64> {
  %loss, %lse = fsdp.cross_entropy %x, %t : tensor<6x5xf64>, tensor<6xi64> -> tensor<f64>, tensor<6xf64>
  return %lse : tensor<6xf64>
}
// The negative log-likelihood as torch-mlir writes it.
func.func @nll(%logp: tensor<6x4xf64>, %tgt: tensor<6xi64> {gradcheck.limit = 4 : i64}) -> tensor<6xf64> {
  %zero = arith.constant 0.0 : f64
  %ign = arith.constant 2 : i64
  %e1 = tensor.empty() : tensor<6xf64>
  %v = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%tgt : tensor<6xi64>) outs(%e1 : tensor<6xf64>) {
  ^bb0(%t: i64, %o: f64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %t : i64 to index
    %x = tensor.extract %logp[%i, %j] : tensor<6x4xf64>
    %n = arith.negf %x : f64
    %c = arith.cmpi eq, %t, %ign : i64
    %s = arith.select %c, %zero, %n : f64
    linalg.yield %s : f64
  } -> tensor<6xf64>
  return %v : tensor<6xf64>
}
// Frozen and unused parameters have no gradient.
func.func @unused(%x: tensor<4xf64> {fsdp.param = "x"}, %f: tensor<4xf64> {fsdp.param = "f", fsdp.frozen},
                  %u: tensor<4xf64> {fsdp.param = "u"}) -> tensor<4xf64> {
  %y = arith.mulf %x, %f : tensor<4xf64>
  return %y : tensor<4xf64>
}
