// RUN: fsdp-opt %s --fsdp-form-dispatches --split-input-file | FileCheck %s

// The gradient of a norm: two row sums and the map that reads both are one kernel, although neither sum
// reads the other.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @gradient
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}) inplace [-1] {kind = "row"}
// CHECK-COUNT-3: linalg.generic
// CHECK: fsdp.yield
// CHECK-NOT: fsdp.dispatch
func.func @gradient(%x: tensor<32x64xf32>, %g: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%g : tensor<32x64xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%g, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<32xf32>
  %e2 = tensor.empty() : tensor<32x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g, %x, %s, %t : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32>) outs(%e2 : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %1 = arith.mulf %b, %d : f32
    %2 = arith.subf %a, %c : f32
    %3 = arith.subf %2, %1 : f32
    linalg.yield %3 : f32
  } -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

// -----

// A tensor that is assembled from slices is one copy kernel.
// CHECK-LABEL: func @assemble
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}, %{{.*}}) inplace [-1] {kind = "copy"}
// CHECK-NOT: fsdp.dispatch
func.func @assemble(%q: tensor<32x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x64xf32>) -> tensor<32x192xf32> {
  %e = tensor.empty() : tensor<32x192xf32>
  %0 = tensor.insert_slice %q into %e[0, 0] [32, 64] [1, 1] : tensor<32x64xf32> into tensor<32x192xf32>
  %1 = tensor.insert_slice %k into %0[0, 64] [32, 64] [1, 1] : tensor<32x64xf32> into tensor<32x192xf32>
  %2 = tensor.insert_slice %v into %1[0, 128] [32, 64] [1, 1] : tensor<32x64xf32> into tensor<32x192xf32>
  return %2 : tensor<32x192xf32>
}

// -----

// The column sum needs the contraction's result in memory anyway, so the cheap scaling joins the row kernel
// that reads it. A tanh would have joined the contraction.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @better_later
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}) inplace [-1] {kind = "contract"}
// CHECK: fsdp.dispatch({{.*}}) inplace [-1] {kind = "row"}
// CHECK: arith.mulf
// CHECK: fsdp.dispatch({{.*}}) inplace [-1] {kind = "column"}
func.func @better_later(%x: tensor<32x16xf32>, %w: tensor<16x64xf32>) -> (tensor<32xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %h = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%x, %w : tensor<32x16xf32>, tensor<16x64xf32>) outs(%f : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %1 = arith.mulf %a, %c : f32
    linalg.yield %1 : f32
  } -> tensor<32x64xf32>
  %er = tensor.empty() : tensor<32xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<32xf32>) -> tensor<32xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<32x64xf32>) outs(%fr : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  %ec = tensor.empty() : tensor<64xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<64xf32>) -> tensor<64xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%h : tensor<32x64xf32>) outs(%fc : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %r, %c : tensor<32xf32>, tensor<64xf32>
}
