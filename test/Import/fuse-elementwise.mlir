// RUN: fsdp-opt %s --fsdp-fuse-elementwise --canonicalize | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>

// A chain is fused; a value with two readers is not.
// CHECK-LABEL: func.func @chain(
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: linalg.generic
func.func @chain(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = math.exp %p : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.mulf %p, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %c = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%b, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %a, %c : tensor<4x6xf32>, tensor<4x6xf32>
}

// A map is not fused into a product, which would run the body once per column.
// CHECK-LABEL: func.func @product(
// CHECK: math.tanh
// CHECK: linalg.generic
// CHECK-NOT: math.tanh
func.func @product(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>, %f: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = math.tanh %p : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) {
  ^bb0(%s: f32, %b: f32, %o: f32):
    %q = arith.mulf %s, %b : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  return %p : tensor<4x5xf32>
}

// cos of a column is not fused, since it would run for every row; rsqrt of a row runs once per row.
// CHECK-LABEL: func.func @repeats(
// CHECK: math.cos
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: math.rsqrt
func.func @repeats(%x: tensor<4x6xf32>, %c: tensor<6xf32>, %r: tensor<4xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %ec = tensor.empty() : tensor<6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%c : tensor<6xf32>) outs(%ec : tensor<6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %q = math.cos %p : f32
    linalg.yield %q : f32
  } -> tensor<6xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%r : tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %q = math.rsqrt %p : f32
    linalg.yield %q : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %a, %b : tensor<4x6xf32>, tensor<6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.mulf %t, %s : f32
    linalg.yield %u : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// A rounded value is not fused into its reader, so that the backward keeps bf16, not f32.
// CHECK-LABEL: func.func @rounded(
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x6xf32>, tensor<6xbf16>)
// CHECK: arith.addf {{.*}} : f32
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: linalg.yield {{.*}} : bf16
// CHECK: linalg.generic {{.*}} ins(%[[N]], %{{.*}} : tensor<4x6xbf16>, tensor<4x6xbf16>)
// CHECK-NOT: linalg.generic
func.func @rounded(%sum: tensor<4x6xf32>, %bias: tensor<6xbf16>, %x: tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  %e = tensor.empty() : tensor<4x6xbf16>
  %a = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%sum, %bias : tensor<4x6xf32>, tensor<6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%p: f32, %q: bf16, %o: bf16):
    %w = arith.extf %q : bf16 to f32
    %s = arith.addf %p, %w : f32
    %r = arith.truncf %s : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %x : tensor<4x6xbf16>, tensor<4x6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %o: bf16):
    %r = arith.mulf %p, %q : bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  return %b : tensor<4x6xbf16>
}

// A rounding is fused if its inputs are narrow, or if its wide inputs have one value per row.
// CHECK-LABEL: func.func @narrow_before(
// CHECK: linalg.generic
// CHECK: math.tanh
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.truncf
// CHECK: arith.mulf {{.*}} : bf16
// CHECK-NOT: linalg.generic
func.func @narrow_before(%x: tensor<4x6xbf16>, %scale: tensor<4xf32>) -> tensor<4x6xbf16> {
  %e = tensor.empty() : tensor<4x6xbf16>
  %a = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %scale : tensor<4x6xbf16>, tensor<4xf32>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%p: bf16, %s: f32, %o: bf16):
    %w = arith.extf %p : bf16 to f32
    %t = math.tanh %w : f32
    %m = arith.mulf %t, %s : f32
    %r = arith.truncf %m : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %x : tensor<4x6xbf16>, tensor<4x6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %o: bf16):
    %r = arith.mulf %p, %q : bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  return %b : tensor<4x6xbf16>
}
