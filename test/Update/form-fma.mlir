// RUN: fsdp-opt %s --fsdp-form-fma | FileCheck %s

// DOC-BEFORE-BEGIN fsdp-form-fma
#v = affine_map<(i) -> (i)>
// DOC-BEFORE-END
#r = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>

// A product whose only reader is a sum, as left or right operand.
// A subtraction negates a factor, preferably a constant factor.
// CHECK-LABEL: func.func @shapes(
// CHECK:       ^bb0(%[[X:[a-z0-9_]+]]: f32, %[[Y:[a-z0-9_]+]]: f32, %[[Z:[a-z0-9_]+]]: f32, %{{.*}}: f32
// CHECK-NEXT:    %[[A0:.*]] = math.fma %[[X]], %[[Y]], %[[Z]] : f32
// CHECK-NEXT:    %[[A1:.*]] = math.fma %[[X]], %[[Y]], %[[A0]] : f32
// CHECK-NEXT:    %[[NZ:.*]] = arith.negf %[[Z]]
// CHECK-NEXT:    %[[A2:.*]] = math.fma %[[X]], %[[Y]], %[[NZ]] : f32
// CHECK-NEXT:    %[[NX:.*]] = arith.negf %[[X]]
// CHECK-NEXT:    %[[A3:.*]] = math.fma %[[NX]], %[[Y]], %[[Z]] : f32
// CHECK-NEXT:    %[[C:.*]] = arith.constant -2.0
// CHECK-NEXT:    %[[A4:.*]] = math.fma %[[X]], %[[C]], %[[Z]] : f32
// CHECK-NEXT:    linalg.yield %[[A1]], %[[A2]], %[[A3]], %[[A4]]
func.func @shapes(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %0:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %y, %z : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
      outs(%e, %e, %e, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o0: f32, %o1: f32, %o2: f32, %o3: f32):
    %p0 = arith.mulf %a, %b : f32
    %s0 = arith.addf %p0, %c : f32
    %p1 = arith.mulf %a, %b : f32
    %s1 = arith.addf %s0, %p1 : f32
    %p2 = arith.mulf %a, %b : f32
    %s2 = arith.subf %p2, %c : f32
    %p3 = arith.mulf %a, %b : f32
    %s3 = arith.subf %c, %p3 : f32
    %p4 = arith.mulf %a, %two : f32
    %s4 = arith.subf %c, %p4 : f32
    linalg.yield %s1, %s2, %s3, %s4 : f32, f32, f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// If both operands of a sum are products, the left product moves into the fma.
// CHECK-LABEL: func.func @two_products(
// CHECK:       ^bb0(%[[X:[a-z0-9_]+]]: f64, %[[Y:[a-z0-9_]+]]: f64
// CHECK-NEXT:    %[[Q:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK-NEXT:    %[[S:.*]] = math.fma %[[X]], %[[X]], %[[Q]] : f64
// CHECK-NEXT:    linalg.yield %[[S]]
// DOC-BEFORE-BEGIN fsdp-form-fma
func.func @two_products(%x: tensor<8xf64>, %y: tensor<8xf64>) -> tensor<8xf64> {
  %e = tensor.empty() : tensor<8xf64>
  %0 = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<8xf64>, tensor<8xf64>) outs(%e : tensor<8xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %p = arith.mulf %a, %a : f64
    %q = arith.mulf %b, %b : f64
    %s = arith.addf %p, %q : f64
    linalg.yield %s : f64
  } -> tensor<8xf64>
  return %0 : tensor<8xf64>
}
// DOC-BEFORE-END

// A reduction adds its product to the state.
// CHECK-LABEL: func.func @squares(
// CHECK:       ^bb0(%[[X:[a-z0-9_]+]]: f32, %[[S:[a-z0-9_]+]]: f32):
// CHECK-NEXT:    %[[F:.*]] = math.fma %[[X]], %[[X]], %[[S]] : f32
// CHECK-NEXT:    linalg.yield %[[F]]
func.func @squares(%x: tensor<8x16xf32>, %init: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %p = arith.mulf %a, %a : f32
    %n = arith.addf %s, %p : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// There is no fma for a product with another reader, in 16 bits, read
// through a cast, or from another block. Then both roundings stay.
// CHECK-LABEL: func.func @kept(
// CHECK-NOT:     math.fma
// CHECK:         return
func.func @kept(%x: tensor<8xf32>, %h: tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %eh = tensor.empty() : tensor<8xbf16>
  %0:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %h : tensor<8xf32>, tensor<8xbf16>)
      outs(%e, %e, %eh, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>) {
  ^bb0(%a: f32, %b: bf16, %o0: f32, %o1: f32, %o2: bf16, %o3: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.addf %p, %a : f32
    %q = arith.mulf %b, %b : bf16
    %t = arith.addf %q, %b : bf16
    %u = arith.mulf %b, %b : bf16
    %w = arith.extf %u : bf16 to f32
    %v = arith.addf %w, %s : f32
    %zero = arith.constant 0.0 : f32
    %positive = arith.cmpf ogt, %a, %zero : f32
    %far = arith.mulf %v, %v : f32
    %i = scf.if %positive -> f32 {
      %n = arith.addf %far, %a : f32
      scf.yield %n : f32
    } else {
      scf.yield %a : f32
    }
    linalg.yield %p, %s, %t, %i : f32, f32, bf16, f32
  } -> (tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>
}

// The body of a contraction stays in the form that Codegen expects.
// CHECK-LABEL: func.func @contraction(
// CHECK-NOT:     math.fma
// CHECK:         linalg.contract
func.func @contraction(%x: tensor<8x4xf32>, %y: tensor<4x8xf32>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %y : tensor<8x4xf32>, tensor<4x8xf32>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
