// RUN: fsdp-gradcheck %s --quiet | FileCheck %s

// The loss runs on attention written element by element, the gradient on the
// compiler's form. Cases: grouped heads, lengths and head dimensions that
// differ, every kind of captured tensor, and masks with rows that keep no key.
// CHECK: [[N:[0-9]+]] of [[N]] gradients agree

func.func @plain(%q: tensor<2x2x3x5xf64>, %k: tensor<2x2x4x5xf64>, %v: tensor<2x2x4x3xf64>) -> tensor<2x2x3x3xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7
      : tensor<2x2x3x5xf64>, tensor<2x2x4x5xf64>, tensor<2x2x4x3xf64> -> tensor<2x2x3x3xf64>, tensor<2x2x3xf64>
  return %o : tensor<2x2x3x3xf64>
}

// Four query heads on two; causal, bottom-right: Sq = 3, Sk = 5.
func.func @grouped_causal(%q: tensor<2x4x3x5xf64>, %k: tensor<2x2x5x5xf64>, %v: tensor<2x2x5x5xf64>) -> tensor<2x4x3x5xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7
      : tensor<2x4x3x5xf64>, tensor<2x2x5x5xf64>, tensor<2x2x5x5xf64> -> tensor<2x4x3x5xf64>, tensor<2x4x3xf64>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %c2 = arith.constant 2 : index
    %end = arith.addi %i, %c2 : index
    %keep = arith.cmpi sge, %end, %j : index
    fsdp.yield %keep : i1
  }
  return %o : tensor<2x4x3x5xf64>
}

// A causal mask aligned to the top left with more queries than keys. It is strict, so row 0 has no key.
func.func @empty_rows(%q: tensor<1x2x4x3xf64>, %k: tensor<1x1x4x3xf64>, %v: tensor<1x1x4x3xf64>, %slope: tensor<2xf64>) -> tensor<1x2x4x3xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7 capture(%slope : tensor<2xf64>)
      : tensor<1x2x4x3xf64>, tensor<1x1x4x3xf64>, tensor<1x1x4x3xf64> -> tensor<1x2x4x3xf64>, tensor<1x2x4xf64>
      score_mod(%s: f64, %b: index, %h: index, %i: index, %j: index, %m: tensor<2xf64>) {
    %slope_h = tensor.extract %m[%h] : tensor<2xf64>
    %d = arith.subi %j, %i : index
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f64
    %bias = arith.mulf %slope_h, %distance : f64
    %r = arith.addf %s, %bias : f64
    fsdp.yield %r : f64
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<2xf64>) {
    %keep = arith.cmpi sgt, %i, %j : index
    fsdp.yield %keep : i1
  }
  return %o : tensor<1x2x4x3xf64>
}

// Softcap with a learned cap; the score itself is in the gradient of the captured scalar.
func.func @softcap(%q: tensor<1x2x3x4xf64>, %k: tensor<1x2x3x4xf64>, %v: tensor<1x2x3x4xf64>,
                   %cap: tensor<f64> {gradcheck.range = [1.0, 2.0]}) -> tensor<1x2x3x4xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7 capture(%cap : tensor<f64>)
      : tensor<1x2x3x4xf64>, tensor<1x2x3x4xf64>, tensor<1x2x3x4xf64> -> tensor<1x2x3x4xf64>, tensor<1x2x3xf64>
      score_mod(%s: f64, %b: index, %h: index, %i: index, %j: index, %c: tensor<f64>) {
    %x = tensor.extract %c[] : tensor<f64>
    %r = arith.divf %s, %x : f64
    %t = math.tanh %r : f64
    %y = arith.mulf %x, %t : f64
    fsdp.yield %y : f64
  }
  return %o : tensor<1x2x3x4xf64>
}

// Biases per row, per column, per head and column, and for all
// positions; a table by distance that is read twice; and ids that mask.
func.func @captures(%q: tensor<2x2x3x4xf64>, %k: tensor<2x2x3x4xf64>, %v: tensor<2x2x3x4xf64>, %row: tensor<3xf64>,
                    %column: tensor<3xf64>, %heads: tensor<3x2xf64>, %bias: tensor<2x2x3x3xf64>, %table: tensor<2x8xf64>,
                    %doc: tensor<3xi32> {gradcheck.limit = 2 : i64}) -> tensor<2x2x3x4xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7
      capture(%row, %column, %heads, %bias, %table, %doc
              : tensor<3xf64>, tensor<3xf64>, tensor<3x2xf64>, tensor<2x2x3x3xf64>, tensor<2x8xf64>, tensor<3xi32>)
      : tensor<2x2x3x4xf64>, tensor<2x2x3x4xf64>, tensor<2x2x3x4xf64> -> tensor<2x2x3x4xf64>, tensor<2x2x3xf64>
      score_mod(%s: f64, %b: index, %h: index, %i: index, %j: index, %r: tensor<3xf64>, %c: tensor<3xf64>,
                %hc: tensor<3x2xf64>, %f: tensor<2x2x3x3xf64>, %t: tensor<2x8xf64>, %d: tensor<3xi32>) {
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %0 = tensor.extract %r[%i] : tensor<3xf64>
    %1 = tensor.extract %c[%j] : tensor<3xf64>
    %2 = tensor.extract %hc[%j, %h] : tensor<3x2xf64>
    %3 = tensor.extract %f[%b, %h, %i, %j] : tensor<2x2x3x3xf64>
    %at = arith.subi %j, %i : index
    %at2 = arith.addi %at, %c2 : index
    %4 = tensor.extract %t[%h, %at2] : tensor<2x8xf64>
    %5 = tensor.extract %t[%h, %c5] : tensor<2x8xf64>
    %s0 = arith.mulf %s, %0 : f64
    %s1 = arith.addf %s0, %1 : f64
    %s2 = arith.mulf %s1, %2 : f64
    %s3 = arith.addf %s2, %3 : f64
    %e4 = math.exp %4 : f64
    %s4 = arith.mulf %s3, %e4 : f64
    %s5 = arith.addf %s4, %5 : f64
    fsdp.yield %s5 : f64
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %r: tensor<3xf64>, %c: tensor<3xf64>,
             %hc: tensor<3x2xf64>, %f: tensor<2x2x3x3xf64>, %t: tensor<2x8xf64>, %d: tensor<3xi32>) {
    %0 = tensor.extract %d[%i] : tensor<3xi32>
    %1 = tensor.extract %d[%j] : tensor<3xi32>
    %same = arith.cmpi eq, %0, %1 : i32
    fsdp.yield %same : i1
  }
  return %o : tensor<2x2x3x4xf64>
}

// score_mod ignores the score, so only V and the captured bias have a gradient.
func.func @no_score(%q: tensor<1x1x2x2xf64>, %k: tensor<1x1x3x2xf64>, %v: tensor<1x1x3x2xf64>, %bias: tensor<3xf64>) -> tensor<1x1x2x2xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7 capture(%bias : tensor<3xf64>)
      : tensor<1x1x2x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x3x2xf64> -> tensor<1x1x2x2xf64>, tensor<1x1x2xf64>
      score_mod(%s: f64, %b: index, %h: index, %i: index, %j: index, %m: tensor<3xf64>) {
    %x = tensor.extract %m[%j] : tensor<3xf64>
    fsdp.yield %x : f64
  }
  return %o : tensor<1x1x2x2xf64>
}

// Dropout: random numbers by position, and factors that are a function of them.
func.func @dropout(%q: tensor<2x4x3x5xf64>, %k: tensor<2x2x4x5xf64>, %v: tensor<2x2x4x3xf64>) -> tensor<2x4x3x3xf64> {
  %seed = arith.constant dense<11> : tensor<i64>
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7 capture(%seed : tensor<i64>)
      : tensor<2x4x3x5xf64>, tensor<2x2x4x5xf64>, tensor<2x2x4x3xf64> -> tensor<2x4x3x3xf64>, tensor<2x4x3xf64>
      score_mod(%s: f64, %b: index, %h: index, %i: index, %j: index, %key: tensor<i64>) {
    %t = math.tanh %s : f64
    fsdp.yield %t : f64
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %key: tensor<i64>) {
    %keep = arith.cmpi ugt, %i, %j : index
    fsdp.yield %keep : i1
  } weight_mod(%b: index, %h: index, %i: index, %j: index, %key: tensor<i64>) {
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %word = tensor.extract %key[] : tensor<i64>
    %n = arith.index_cast %b : index to i64
    %e0 = arith.muli %h, %c3 : index
    %e1 = arith.addi %e0, %i : index
    %e2 = arith.muli %e1, %c4 : index
    %e = arith.addi %e2, %j : index
    %f = fsdp.random_element bernoulli keep 0.7 seed %word step %word sample %n element %e site 3 : f64
    fsdp.yield %f : f64
  }
  return %o : tensor<2x4x3x3xf64>
}

func.func @factors(%q: tensor<1x2x3x5xf64>, %k: tensor<1x2x4x5xf64>, %v: tensor<1x2x4x3xf64>) -> tensor<1x2x3x3xf64> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.7
      : tensor<1x2x3x5xf64>, tensor<1x2x4x5xf64>, tensor<1x2x4x3xf64> -> tensor<1x2x3x3xf64>, tensor<1x2x3xf64>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %d = arith.subi %i, %j : index
    %d64 = arith.index_cast %d : index to i64
    %f = arith.sitofp %d64 : i64 to f64
    fsdp.yield %f : f64
  }
  return %o : tensor<1x2x3x3xf64>
}
