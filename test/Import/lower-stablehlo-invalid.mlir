// Ops whose attributes or shapes do not fit, and ops without a lowering.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-lower-stablehlo --fsdp-refuse-foreign

func.func @f(%x: tensor<2x3xf32>) -> tensor<3x3xf32> {
  // expected-error @+1 {{expected a result of shape [3, 2], found [3, 3]}}
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{expected 'permutation' to be distinct dimensions in [0, 2), found [0, 0]}}
  %0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) -> tensor<2x5xf32> {
  // expected-error @+1 {{expected dimension 1 of the left and 0 of the right operand to have the same size, found 3 and 4}}
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected two operands of one type, found 'tensor<4xf32>' and 'tensor<5xf32>'}}
  %0 = "stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xui32>) -> tensor<4xui32> {
  // expected-error @+1 {{expected floats or signed integers, found 'tensor<4xui32>'; cast it to int32 in the model}}
  %0 = stablehlo.add %x, %x : tensor<4xui32>
  return %0 : tensor<4xui32>
}

// -----

func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{expected tensors of static shape, found 'tensor<?xf32>'; export with fixed batch and sequence lengths}}
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @f(%x: tensor<8x5xf32>, %i: tensor<3x1xi32>) -> tensor<3x5xf32> {
  // expected-error @+1 {{expected the slice size of dimension 1 in [0, 5], found 6}}
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<8x5xf32>, tensor<3x1xi32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----

func.func @f(%x: tensor<8xf32>, %i: tensor<i32>, %u: tensor<2xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'stablehlo.dynamic_update_slice' at a computed index is not supported; select with jnp.where on the positions}}
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<1x4x1xf32>, %k: tensor<3x1x1xf32>) -> tensor<1x6x1xf32> {
  // expected-error @+1 {{'stablehlo.convolution' with a dilated input (a transposed convolution) is not supported; write it as an upsampling and a convolution}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {lhs_dilate = [2], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<3x1x1xf32>) -> tensor<1x6x1xf32>
  return %0 : tensor<1x6x1xf32>
}

// -----

func.func @f(%x: tensor<2x4x1xf32>, %k: tensor<3x1x2xf32>) -> tensor<1x4x2xf32> {
  // expected-error @+1 {{'stablehlo.convolution' with 'batch_group_count' above 1 is not supported; write a convolution for each group}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<2x4x1xf32>, tensor<3x1x2xf32>) -> tensor<1x4x2xf32>
  return %0 : tensor<1x4x2xf32>
}

// -----

func.func @f(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  // expected-error @+1 {{expected one region of one block with 2 arguments, found no region}}
  %0 = "stablehlo.reduce"(%x, %z) {dimensions = array<i64: 1>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected 'comparison_direction' EQ, NE, LT, LE, GT or GE, found ''}}
  %0 = "stablehlo.compare"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %x : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-warning @+3 {{StableHLO does not record stop_gradient}}
  // expected-note @+2 {{export it with fsdp_mlir.export_jax}}
  // expected-error @+1 {{'stablehlo.sort' is not supported; sort outside of the step}}
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{custom op 'stablehlo.while' is control flow, which is not compiled; unroll the layers}}
  %0 = stablehlo.while(%i = %x) : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected 2 types, one per operand, found 3}}
  %0 = stablehlo.add %x, %x : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
