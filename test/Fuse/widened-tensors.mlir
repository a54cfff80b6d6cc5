// An op that only widens a tensor gets no dispatch: its readers read the narrower tensor. If anything but elementwise
// ops and sums reads the result, the op gets a dispatch.
// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-form-dispatches))' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @read(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<64x32xbf16>, %[[Y:[a-z0-9]*]]: tensor<64x32xf32>
// CHECK-NEXT:    fsdp.dispatch(%[[X]]) inplace [-1] {kind = "column"} : (tensor<64x32xbf16>) -> tensor<32xf32>
// CHECK:           arith.extf
// CHECK:         fsdp.dispatch(%[[X]], %[[Y]]) inplace [-1] {kind = "map"} : (tensor<64x32xbf16>, tensor<64x32xf32>) -> tensor<64x32xf32>
// CHECK:           arith.extf
func.func @read(%x: tensor<64x32xbf16>, %y: tensor<64x32xf32>) -> (tensor<32xf32>, tensor<64x32xf32>) {
  %e = tensor.empty() : tensor<64x32xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xbf16>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    linalg.yield %f : f32
  } -> tensor<64x32xf32>
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%s : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%w : tensor<64x32xf32>) outs(%i : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %f = arith.addf %o, %a : f32
    linalg.yield %f : f32
  } -> tensor<32xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %y : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %f = arith.mulf %a, %b : f32
    linalg.yield %f : f32
  } -> tensor<64x32xf32>
  return %sum, %p : tensor<32xf32>, tensor<64x32xf32>
}

// CHECK-LABEL: func.func @returned(
// CHECK:         fsdp.dispatch({{.*}}) inplace [-1] {kind = "map"} : (tensor<64x32xbf16>) -> tensor<64x32xf32>
func.func @returned(%x: tensor<64x32xbf16>) -> tensor<64x32xf32> {
  %e = tensor.empty() : tensor<64x32xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xbf16>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    linalg.yield %f : f32
  } -> tensor<64x32xf32>
  return %w : tensor<64x32xf32>
}
