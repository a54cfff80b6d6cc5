// RUN: fsdp-opt %s --fsdp-decompose-named-ops=fuse-attention=false --canonicalize --cse | FileCheck %s

// fsdp.gemm without scaling, bias and epilogue becomes one linalg.contract that accumulates into C.
// CHECK-LABEL: func @gemm_plain
// CHECK-SAME: %[[A:.*]]: tensor<4x3xf32>, %[[B:.*]]: tensor<4x5xf32>, %[[C:.*]]: tensor<3x5xf32>
// CHECK: linalg.contract {{.*}} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] : tensor<3x5xf32>)
// CHECK-NOT: linalg.generic
func.func @gemm_plain(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %d = fsdp.gemm %a, %b into %c transpose [true, false] alpha 1.0 beta 1.0 : tensor<4x3xf32>, tensor<4x5xf32>, tensor<3x5xf32> -> tensor<3x5xf32>
  return %d : tensor<3x5xf32>
}

// Scaling, bias and epilogue become one op after the contraction, computed in f32 and rounded once.
// CHECK-LABEL: func @gemm_epilogue
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<2x3x5xf32>)
// CHECK: linalg.generic
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.maximumf
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NOT: arith.truncf
func.func @gemm_epilogue(%a: tensor<2x3x4xbf16>, %b: tensor<2x5x4xbf16>, %c: tensor<2x3x5xbf16>, %e: tensor<5xbf16>) -> tensor<2x3x5xbf16> {
  %d = fsdp.gemm %a, %b into %c transpose [false, true] alpha 0.5 beta 2.0 bias %e epilogue relu
      : tensor<2x3x4xbf16>, tensor<2x5x4xbf16>, tensor<2x3x5xbf16>, tensor<5xbf16> -> tensor<2x3x5xbf16>
  return %d : tensor<2x3x5xbf16>
}

// Ten Philox rounds of two multiplications each, with the counters before and the conversion after them.
// CHECK-LABEL: func @random
// CHECK: linalg.generic
// CHECK-COUNT-20: arith.shrui
// CHECK: arith.sitofp
func.func @random(%k: tensor<i64>) -> tensor<2x3xf32> {
  %r = fsdp.random uniform seed %k step %k first %k site 2 : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// Query heads of one key/value head are rows of one product. A row without a kept key has
// the maximum 0 and is not divided by its sum.
// CHECK-LABEL: func @attention
// CHECK: tensor.collapse_shape {{.*}} into tensor<1x2x6x8xf32>
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<1x2x6x5xf32>)
// CHECK: arith.cmpi sge
// CHECK-NEXT: arith.select
// CHECK: arith.maximumf
// CHECK: arith.cmpf oeq
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<1x2x6x8xf32>)
// CHECK: math.log
func.func @attention(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %keep = arith.cmpi sge, %i, %j : index
    fsdp.yield %keep : i1
  }
  return %o, %lse : tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
}
