// The custom forms of StableHLO's ops, as jax.export writes them.
// RUN: fsdp-opt %s --fsdp-lower-stablehlo 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN --implicit-check-not=error < %t.err
// WARN: warning: StableHLO does not record stop_gradient and custom_vjp
// WARN: note: if the loss uses one of them, export it with fsdp_mlir.export_jax
// RUN: fsdp-opt %s --mlir-print-op-generic > %t.generic
// RUN: fsdp-opt %t.generic --fsdp-lower-stablehlo 2>/dev/null | FileCheck %s

// CHECK-LABEL: func @elementwise
// CHECK: %[[E:.*]] = math.exp
// CHECK: arith.maximumf %[[E]]
// CHECK: math.erf
// CHECK: %[[C:.*]] = arith.cmpf olt
// CHECK: arith.select %[[C]]
// CHECK: arith.extf {{.*}} tensor<4xbf16> to tensor<4xf32>
// CHECK-NOT: stablehlo
func.func @elementwise(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x : tensor<4xf32>
  %1 = stablehlo.maximum %0, %y : tensor<4xf32>
  %2 = chlo.erf %1 : tensor<4xf32> -> tensor<4xf32>
  %3 = stablehlo.compare LT, %2, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = stablehlo.select %3, %2, %y : tensor<4xi1>, tensor<4xf32>
  %5 = stablehlo.convert %n : (tensor<4xbf16>) -> tensor<4xf32>
  %6 = stablehlo.add %4, %5 : tensor<4xf32>
  return %6 : tensor<4xf32>
}

// A truth value's sum is "or". Division by a constant needs no guard, by a value it does.
// CHECK-LABEL: func @integers
// CHECK: arith.ori {{.*}} tensor<4xi1>
// CHECK: arith.divsi %arg1, %cst
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.cmpi eq
// CHECK: arith.remsi
// CHECK: arith.select
func.func @integers(%p: tensor<4xi1>, %n: tensor<4xi32>) -> (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) {
  %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = stablehlo.add %p, %p : tensor<4xi1>
  %1 = stablehlo.divide %n, %c : tensor<4xi32>
  %2 = stablehlo.remainder %c, %n : tensor<4xi32>
  return %0, %1, %2 : tensor<4xi1>, tensor<4xi32>, tensor<4xi32>
}

// CHECK-LABEL: func @structure
// CHECK: linalg.index 1
// CHECK: linalg.broadcast {{.*}} dimensions = [0]
// CHECK: linalg.transpose {{.*}} permutation = [1, 0]
// CHECK: tensor.extract_slice {{.*}}[0, 1] [4, 2] [1, 2]
// CHECK: tensor.collapse_shape
// CHECK: tensor.concat dim(0)
// CHECK: tensor.pad {{.*}} low[1] high[0]
// CHECK: arith.subi
// CHECK-NEXT: tensor.extract
func.func @structure(%x: tensor<4xf32>) -> tensor<17xf32> {
  %i = stablehlo.iota dim = 1 : tensor<5x4xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<5x4xf32>
  %1 = stablehlo.multiply %i, %0 : tensor<5x4xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %3 = stablehlo.slice %2 [0:4, 1:5:2] : (tensor<4x5xf32>) -> tensor<4x2xf32>
  %4 = stablehlo.reshape %3 : (tensor<4x2xf32>) -> tensor<8xf32>
  %5 = stablehlo.concatenate %4, %4, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %6 = stablehlo.pad %5, %z, low = [1], high = [0], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<17xf32>
  %7 = stablehlo.reverse %6, dims = [0] : tensor<17xf32>
  return %7 : tensor<17xf32>
}

// CHECK-LABEL: func @products
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]
func.func @products(%a: tensor<2x3x4xbf16>, %b: tensor<2x4x5xbf16>, %x: tensor<2x8x3xf32>, %k: tensor<3x3x6xf32>) -> (tensor<2x3x5xf32>, tensor<2x4x6xf32>) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xbf16>, tensor<2x4x5xbf16>) -> tensor<2x3x5xf32>
  %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x3xf32>, tensor<3x3x6xf32>) -> tensor<2x4x6xf32>
  return %0, %1 : tensor<2x3x5xf32>, tensor<2x4x6xf32>
}

// CHECK-LABEL: func @reductions
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.maximumf
// CHECK: -> (tensor<2xf32>, tensor<2xi32>)
func.func @reductions(%x: tensor<2x4xf32>, %i: tensor<2x4xi32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %ninf) applies stablehlo.maximum across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
  %1:2 = stablehlo.reduce(%x init: %ninf), (%i init: %zero) across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
    reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
      %p = stablehlo.compare GT, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
      %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  %2 = stablehlo.add %0, %1#0 : tensor<2xf32>
  return %2, %1#1 : tensor<2xf32>, tensor<2xi32>
}

// The start of a row is clamped; a whole dimension needs no start.
// CHECK-LABEL: func @lookups
// CHECK: %[[ID:.*]] = tensor.extract %arg1
// CHECK: %[[I:.*]] = arith.index_cast %[[ID]]
// CHECK: %[[L:.*]] = arith.maxsi %[[I]]
// CHECK: arith.minsi %[[L]]
// CHECK: tensor.insert_slice {{.*}}[0, 1] [3, 4] [1, 1]
func.func @lookups(%t: tensor<8x5xf32>, %ids: tensor<3x1xi32>, %u: tensor<3x4xf32>) -> tensor<3x5xf32> {
  %0 = "stablehlo.gather"(%t, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<8x5xf32>, tensor<3x1xi32>) -> tensor<3x5xf32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<7> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %0, %u, %c0, %c1 : (tensor<3x5xf32>, tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}

// CHECK-LABEL: func @composite
// CHECK: call @square
func.func @composite(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.square" %x {decomposition = @square} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.optimization_barrier %0 : tensor<4xf32>
  %2 = stablehlo.custom_call @Sharding(%1) {backend_config = ""} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
