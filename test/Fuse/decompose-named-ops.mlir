// RUN: fsdp-opt %s --fsdp-decompose-named-ops | FileCheck %s

// CHECK-LABEL: func @softmax
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: arith.mulf
// CHECK-NOT: linalg.softmax
func.func @softmax(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %e = tensor.empty() : tensor<2x3x8xf32>
  %y = linalg.softmax dimension(2) ins(%x : tensor<2x3x8xf32>) outs(%e : tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// Narrow types are reduced in f32 and rounded once.
// CHECK-LABEL: func @narrow
// CHECK: linalg.fill {{.*}} tensor<4xf32>
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NOT: arith.truncf
func.func @narrow(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %e = tensor.empty() : tensor<4x8xbf16>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4x8xbf16>) outs(%e : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// Skipped rows read a valid element, contribute nothing and are not counted.
// CHECK-LABEL: func @cross_entropy
// CHECK-NOT: tensor.extract
// CHECK: %[[HIT:.*]] = arith.cmpi eq
// CHECK: %[[X:.*]] = arith.select %[[HIT]], %in, %{{.*}} : f32
// CHECK: arith.addf %out, %[[X]]
// CHECK: %[[SKIP:.*]] = arith.cmpi eq, %{{.*}}, %c-100
// CHECK: arith.select %[[SKIP]]
func.func @cross_entropy(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<4x8xf32>) {
  %loss, %lse = fsdp.cross_entropy %x, %t ignore -100 : tensor<4x8xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %d = fsdp.cross_entropy_grad %x, %t, %lse, %g ignore -100
    : tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32> -> tensor<4x8xf32>
  return %loss, %d : tensor<f32>, tensor<4x8xf32>
}

// The classes of a rank with coordinate c begin at 8 · c. If all logits of a row are -inf, the rank's log-sum-exp is -inf.
// CHECK-LABEL: func @classes
// CHECK-SAME: %[[Z:.*]]: tensor<4x8xf32>, %[[T:.*]]: tensor<4xi32>, %{{.*}}: tensor<f32>, %[[C:.*]]: tensor<i64>
// CHECK: arith.cmpf oeq, %{{.*}}, %cst{{.*}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[T]], %[[C]] : tensor<4xi32>, tensor<i64>)
// CHECK: %[[WIDE:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c8_i64
// CHECK: arith.subi %[[WIDE]], %[[FIRST]] : i64
// CHECK: %[[OWN:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[C]] : tensor<4xf32>, tensor<4xf32>, tensor<i64>) outs(%{{.*}} : tensor<4x3xf32>)
// CHECK: fsdp.all_reduce %[[OWN]] @mesh ["tensor"] sum : tensor<4x3xf32>
// CHECK-NOT: fsdp.all_reduce
fsdp.mesh @mesh [#fsdp.axis<"tensor", [2]>]
func.func @classes(%x: tensor<4x8xf32>, %t: tensor<4xi32>, %g: tensor<f32>, %c: tensor<i64>) -> (tensor<f32>, tensor<4x8xf32>) {
  %loss, %lse = fsdp.cross_entropy %x, %t classes %c over @mesh ["tensor"] : tensor<4x8xf32>, tensor<4xi32>, tensor<i64> -> tensor<f32>, tensor<4xf32>
  %d = fsdp.cross_entropy_grad %x, %t, %lse, %g classes %c
    : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<f32>, tensor<i64> -> tensor<4x8xf32>
  return %loss, %d : tensor<f32>, tensor<4x8xf32>
}

// CHECK-LABEL: func @gather
// CHECK: linalg.generic
// CHECK: tensor.extract %arg0
// DOC-BEFORE-BEGIN fsdp-decompose-named-ops
func.func @gather(%table: tensor<10x4xf32>, %ids: tensor<2x3xi32>) -> tensor<2x3x4xf32> {
  %y = fsdp.gather_rows %table[%ids] : tensor<10x4xf32>, tensor<2x3xi32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}
// DOC-BEFORE-END

// Contractions and fills keep their names; others become generics.
// CHECK-LABEL: func @named
// CHECK: linalg.fill
// CHECK: linalg.contract
// CHECK: linalg.generic
// CHECK-NOT: linalg.transpose
func.func @named(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = linalg.transpose ins(%c : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
  return %t : tensor<4x4xf32>
}
