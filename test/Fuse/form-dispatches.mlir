// RUN: fsdp-opt %s --fsdp-form-dispatches --split-input-file --verify-roundtrip | FileCheck %s

// A layer norm is one row kernel: the reductions and the map have the same rows.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func @norm
// CHECK: %[[Y:.*]] = fsdp.dispatch(%{{.*}}, %{{.*}}) inplace [-1] {kind = "row"}
// CHECK: tensor.empty
// CHECK: linalg.fill
// CHECK-COUNT-3: linalg.generic
// CHECK: fsdp.yield %{{.*}} : tensor<8x16xf32>
// CHECK: return %[[Y]]
func.func @norm(%x: tensor<8x16xf32>, %w: tensor<16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.constant 16.0 : f32
    %1 = arith.divf %a, %n : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m, %w : tensor<8x16xf32>, tensor<8xf32>, tensor<16xf32>) outs(%e2 : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %1 = arith.subf %a, %b : f32
    %2 = arith.mulf %1, %c : f32
    linalg.yield %2 : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// A map over the whole result of a contraction joins the contraction's dispatch. The contraction's
// own result is also stored if another op reads it. A column sum has its own dispatch.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @linear
// CHECK: %[[D:.*]]:2 = fsdp.dispatch(%{{.*}}, %{{.*}}, %{{.*}}) inplace [-1, -1] {kind = "contract"}
// CHECK: linalg.contract
// CHECK: linalg.generic
// CHECK: %[[S:.*]] = fsdp.dispatch(%[[D]]#0) inplace [-1] {kind = "column"}
// CHECK: return %[[D]]#1, %[[S]]
func.func @linear(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>, %b: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %h = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%x, %w : tensor<8x16xf32>, tensor<16x4xf32>) outs(%f : tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %1 = arith.addf %a, %c : f32
    %2 = math.tanh %1 : f32
    linalg.yield %2 : f32
  } -> tensor<8x4xf32>
  %e2 = tensor.empty() : tensor<4xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%h : tensor<8x4xf32>) outs(%f2 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %y, %s : tensor<8x4xf32>, tensor<4xf32>
}

// -----

// The second map would make a cycle through the contraction, so it gets its own
// kernel. A strided slice moves into its user; a slice of leading rows stays a view.
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @cycle
// CHECK: tensor.extract_slice %{{.*}}[8, 0] [8, 16]
// CHECK: %[[A:.*]] = fsdp.dispatch(%{{.*}}) inplace [-1] {kind = "map"}
// CHECK: %[[C:.*]] = fsdp.dispatch(%[[A]], %{{.*}}) inplace [-1] {kind = "contract"}
// CHECK: tensor.extract_slice %{{.*}}[0, 8] [8, 8]
// CHECK: linalg.contract
// CHECK: arith.addf
// CHECK: fsdp.yield
// CHECK-NOT: fsdp.dispatch
func.func @cycle(%x: tensor<16x16xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %half = tensor.extract_slice %x[8, 0] [8, 16] [1, 1] : tensor<16x16xf32> to tensor<8x16xf32>
  %e = tensor.empty() : tensor<8x16xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%half : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %1 = math.exp %i : f32
    linalg.yield %1 : f32
  } -> tensor<8x16xf32>
  %q = tensor.extract_slice %a[0, 8] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.contract indexing_maps = [#mk, #nk, #mn]
      ins(%q, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e2 : tensor<8x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %1 = arith.addf %i, %j : f32
    linalg.yield %1 : f32
  } -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Two contractions are two kernels, however small they are. The small ops after them share a kernel.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func @small_contractions
// CHECK: fsdp.dispatch{{.*}} {kind = "contract"}
// CHECK: linalg.contract
// CHECK: fsdp.dispatch{{.*}} {kind = "contract"}
// CHECK: linalg.contract
// CHECK: fsdp.dispatch{{.*}} {kind = "scalar"}
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: fsdp.dispatch
func.func @small_contractions(%x: tensor<2x2xf32>, %w: tensor<2x2xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %h = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%x, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn]
      ins(%h, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> ()>],
                       iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<2x2xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%s : tensor<f32>) outs(%e0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.sqrt %a : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// The attributes fsdp.rows and fsdp.unit move from the op to its dispatch, so that bodies are equal for all units.
#id = affine_map<(a, b) -> (a, b)>
// CHECK-LABEL: func.func @rows
// CHECK: fsdp.dispatch{{.*}} {fsdp.rows = @table, kind = "scatter"}
// CHECK: fsdp.scatter_add_rows %{{[^{]*}} :
// CHECK: fsdp.dispatch{{.*}} {fsdp.unit = @table, kind = "map"}
// CHECK-NOT: @table
func.func @rows(%u: tensor<4x8xf32>, %ids: tensor<4xi64>) -> tensor<8x8xf32> {
  %sum = fsdp.scatter_add_rows %u at %ids {fsdp.rows = @table} : tensor<4x8xf32>, tensor<4xi64> -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) attrs = {fsdp.unit = @table} {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %a : f32
    linalg.yield %1 : f32
  } -> tensor<8x8xf32>
  return %g : tensor<8x8xf32>
}

// -----

// An outer loop has a zero that starts the sums of the inner loop and of an op in it. Both need a copy of their own.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func @nested
// CHECK: scf.for
// CHECK-NOT: linalg.fill
// CHECK: %[[START:.*]] = fsdp.dispatch() inplace [-1] {kind = "map"}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK-NEXT: fsdp.dispatch(%{{.*}}, %{{.*}}) inplace
// CHECK: linalg.fill
// CHECK: scf.yield
// CHECK-NOT: linalg.fill
func.func @nested(%x: tensor<2x8xf32>, %init: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %outer = scf.for %i = %c0 to %c2 step %c1 iter_args(%before = %init) -> (tensor<2xf32>) {
    %e = tensor.empty() : tensor<2xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%sum = %f) -> (tensor<2xf32>) {
      %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<2x8xf32>) outs(%f : tensor<2xf32>) {
      ^bb0(%a: f32, %o: f32):
        %1 = arith.addf %o, %a : f32
        linalg.yield %1 : f32
      } -> tensor<2xf32>
      %t = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
          ins(%s, %sum : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %1 = arith.addf %a, %b : f32
        linalg.yield %1 : f32
      } -> tensor<2xf32>
      scf.yield %t : tensor<2xf32>
    }
    %next = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
        ins(%inner, %before : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %1 = arith.addf %a, %b : f32
      linalg.yield %1 : f32
    } -> tensor<2xf32>
    scf.yield %next : tensor<2xf32>
  }
  return %outer : tensor<2xf32>
}
