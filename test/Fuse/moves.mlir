// RUN: fsdp-opt %s --fsdp-form-dispatches --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-form-dispatches,fsdp-assign-inplace))' --split-input-file | FileCheck %s --check-prefix=INPLACE

// The halves of a rotary embedding, their concatenation and the permutation for attention are one kernel.
#halves = affine_map<(s, h, e) -> (s, h, e)>
#angle = affine_map<(s, h, e) -> (s, e)>
#in = affine_map<(s, h, e) -> (s, h, e)>
#out = affine_map<(s, h, e) -> (h, s, e)>
// CHECK-LABEL: func @rotary
// CHECK: fsdp.dispatch{{.*}} {kind = "copy"} : (tensor<8x4x16xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<4x8x16xf32>
// CHECK-COUNT-2: arith.mulf
// CHECK: tensor.concat
// CHECK-NOT: fsdp.dispatch
func.func @rotary(%x: tensor<8x4x16xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<4x8x16xf32> {
  %a = tensor.extract_slice %x[0, 0, 0] [8, 4, 8] [1, 1, 1] : tensor<8x4x16xf32> to tensor<8x4x8xf32>
  %b = tensor.extract_slice %x[0, 0, 8] [8, 4, 8] [1, 1, 1] : tensor<8x4x16xf32> to tensor<8x4x8xf32>
  %e = tensor.empty() : tensor<8x4x8xf32>
  %lo = linalg.generic {indexing_maps = [#halves, #angle, #halves], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %cos : tensor<8x4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x4x8xf32>) {
  ^bb0(%i: f32, %c: f32, %o: f32):
    %v = arith.mulf %i, %c : f32
    linalg.yield %v : f32
  } -> tensor<8x4x8xf32>
  %hi = linalg.generic {indexing_maps = [#halves, #angle, #halves], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b, %sin : tensor<8x4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x4x8xf32>) {
  ^bb0(%i: f32, %c: f32, %o: f32):
    %v = arith.mulf %i, %c : f32
    linalg.yield %v : f32
  } -> tensor<8x4x8xf32>
  %joined = tensor.concat dim(2) %lo, %hi : (tensor<8x4x8xf32>, tensor<8x4x8xf32>) -> tensor<8x4x16xf32>
  %f = tensor.empty() : tensor<4x8x16xf32>
  %t = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%joined : tensor<8x4x16xf32>) outs(%f : tensor<4x8x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x8x16xf32>
  return %t : tensor<4x8x16xf32>
}

// -----

// Gradients that are permuted and inserted into one tensor: one kernel reads them where they are.
#in = affine_map<(s, h, e) -> (h, s, e)>
#out = affine_map<(s, h, e) -> (s, h, e)>
// CHECK-LABEL: func @gradients
// CHECK: fsdp.dispatch{{.*}} {kind = "copy"} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<8x128xf32>
// CHECK-NOT: fsdp.dispatch
func.func @gradients(%dq: tensor<4x8x16xf32>, %dk: tensor<4x8x16xf32>) -> tensor<8x128xf32> {
  %e = tensor.empty() : tensor<8x4x16xf32>
  %q = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%dq : tensor<4x8x16xf32>) outs(%e : tensor<8x4x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<8x4x16xf32>
  %k = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%dk : tensor<4x8x16xf32>) outs(%e : tensor<8x4x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<8x4x16xf32>
  %qs = tensor.collapse_shape %q [[0], [1, 2]] : tensor<8x4x16xf32> into tensor<8x64xf32>
  %ks = tensor.collapse_shape %k [[0], [1, 2]] : tensor<8x4x16xf32> into tensor<8x64xf32>
  %f = tensor.empty() : tensor<8x128xf32>
  %g = tensor.insert_slice %qs into %f[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
  %h = tensor.insert_slice %ks into %g[0, 64] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
  return %h : tensor<8x128xf32>
}

// -----

// %z reads rows of %y that other iterations compute, so it has a kernel of its own, which contains the permutation.
#id = affine_map<(i, j, k) -> (i, j, k)>
#turned = affine_map<(i, j, k) -> (j, i, k)>
// CHECK-LABEL: func @rows_of_others
// CHECK: %[[Y:.*]] = fsdp.dispatch{{.*}} {kind = "map"} : (tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
// CHECK: fsdp.dispatch(%[[Y]]) {{.*}} {kind = "map"} : (tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
func.func @rows_of_others(%x: tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>, tensor<4x4x8xf32>) {
  %e = tensor.empty() : tensor<4x4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x4x8xf32>) outs(%e : tensor<4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = math.exp %i : f32
    linalg.yield %v : f32
  } -> tensor<4x4x8xf32>
  %t = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<4x4x8xf32>) outs(%e : tensor<4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x4x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %t : tensor<4x4x8xf32>, tensor<4x4x8xf32>) outs(%e : tensor<4x4x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<4x4x8xf32>
  return %y, %z : tensor<4x4x8xf32>, tensor<4x4x8xf32>
}

// -----

// A contraction reads whole tensors, so the permutation is stored.
#in = affine_map<(s, h, e) -> (h, s, e)>
#out = affine_map<(s, h, e) -> (s, h, e)>
// CHECK-LABEL: func @factor
// CHECK: fsdp.dispatch{{.*}} {kind = "copy"}
// CHECK: fsdp.dispatch{{.*}} {kind = "contract"}
func.func @factor(%x: tensor<4x8x16xf32>, %w: tensor<64x32xf32>, %zero: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x4x16xf32>
  %t = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<8x4x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<8x4x16xf32>
  %rows = tensor.collapse_shape %t [[0], [1, 2]] : tensor<8x4x16xf32> into tensor<8x64xf32>
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>]
      ins(%rows, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%zero : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %c : tensor<8x32xf32>
}

// -----

// A widened tensor and its permutation are computed where they are read. The result must not overwrite the tensor, because other
// elements of the result still need it.
#id = affine_map<(i, j, k) -> (i, j, k)>
#turned = affine_map<(i, j, k) -> (j, i, k)>
// INPLACE-LABEL: func @symmetric
// INPLACE: %[[Y:.*]] = fsdp.dispatch{{.*}} : (tensor<4x4x8xbf16>) -> tensor<4x4x8xbf16>
// INPLACE: fsdp.dispatch(%[[Y]]) inplace [-1]
// INPLACE-COUNT-3: linalg.generic
// INPLACE-NOT: fsdp.dispatch
func.func @symmetric(%x: tensor<4x4x8xbf16>) -> tensor<4x4x8xbf16> {
  %e = tensor.empty() : tensor<4x4x8xbf16>
  %f = tensor.empty() : tensor<4x4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x4x8xbf16>) outs(%e : tensor<4x4x8xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    %v = math.exp %i : bf16
    linalg.yield %v : bf16
  } -> tensor<4x4x8xbf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<4x4x8xbf16>) outs(%f : tensor<4x4x8xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %v = arith.extf %i : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<4x4x8xf32>
  %t = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<4x4x8xf32>) outs(%f : tensor<4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x4x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w, %t : tensor<4x4x8xf32>, tensor<4x4x8xf32>) outs(%e : tensor<4x4x8xbf16>) {
  ^bb0(%i: f32, %j: f32, %o: bf16):
    %v = arith.addf %i, %j : f32
    %n = arith.truncf %v : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<4x4x8xbf16>
  return %z : tensor<4x4x8xbf16>
}
