// A read outside of a tensor and an integer division by 0 are errors of fsdp-gradcheck; no signal ends the process.
// RUN: split-file %s %t
// RUN: not fsdp-gradcheck %t/far.mlir 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: sed s/100000000000/-9/ %t/far.mlir | not fsdp-gradcheck 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: sed s/100000000000/0/ %t/far.mlir | fsdp-gradcheck | FileCheck %s --check-prefix=FINE
// RUN: not fsdp-gradcheck %t/divide.mlir 2>&1 | FileCheck %s --check-prefix=DIVIDE

// FAR: far.mlir:9:10: error: this lookup has index 10000000000{{[0-3]}}, expected one in [0, 4), the elements of its dimension
// FAR: note: give the ids a fsdp.limit or gradcheck.limit, or clamp the index
// NEGATIVE: error: this lookup has index -{{[6-9]}}, expected one in [0, 4)
// FINE: 1 of 1 gradients agree
// DIVIDE: divide.mlir:8:10: error: this division of integers has a divisor of 0, or its quotient overflows

//--- far.mlir
func.func @far(%t: tensor<4xf64>, %ids: tensor<3xi64> {gradcheck.limit = 4 : i64}) -> tensor<3xf64> {
  %e = tensor.empty() : tensor<3xf64>
  %c = arith.constant 100000000000 : i64
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<3xi64>) outs(%e : tensor<3xf64>) {
  ^bb0(%id: i64, %o: f64):
    %far = arith.addi %id, %c : i64
    %at = arith.index_cast %far : i64 to index
    %x = tensor.extract %t[%at] : tensor<4xf64>
    linalg.yield %x : f64
  } -> tensor<3xf64>
  return %r : tensor<3xf64>
}

//--- divide.mlir
#m = affine_map<(i) -> (i)>
func.func @divide(%t: tensor<3xf64>, %ids: tensor<3xi64>, %by: tensor<3xi64> {gradcheck.limit = 1 : i64}) -> tensor<3xf64> {
  %e = tensor.empty() : tensor<3xf64>
  %r = linalg.generic {indexing_maps = [#m, #m, #m, #m],
                       iterator_types = ["parallel"]}
      ins(%t, %ids, %by : tensor<3xf64>, tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3xf64>) {
  ^bb0(%w: f64, %id: i64, %n: i64, %o: f64):
    %q = arith.divsi %id, %n : i64
    %x = arith.sitofp %q : i64 to f64
    %y = arith.mulf %w, %x : f64
    linalg.yield %y : f64
  } -> tensor<3xf64>
  return %r : tensor<3xf64>
}
