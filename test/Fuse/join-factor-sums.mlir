// A dispatch that only adds a factor of a contraction over the contraction's k joins the contraction's dispatch.
// RUN: fsdp-opt %s --fsdp-join-factor-sums --split-input-file | FileCheck %s

#mk = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#rc = affine_map<(i, j) -> (i, j)>
#c = affine_map<(i, j) -> (j)>

// The sum comes first, and its reader moves after the contraction. The operand is extended in an op of its own.
// CHECK-LABEL: func @bias
// CHECK-SAME: %[[X:.*]]: tensor<16x8xbf16>, %[[DY:.*]]: tensor<16x4xbf16>
// CHECK-NEXT: %[[D:.*]]:2 = fsdp.dispatch(%[[X]], %[[DY]]) inplace [-1, -1] {fsdp.unit = "h.0", kind = "contract"}
// CHECK: ^bb0(%[[A:.*]]: tensor<16x8xbf16>, %[[B:.*]]: tensor<16x4xbf16>):
// CHECK: %[[W:.*]] = linalg.contract
// CHECK-SAME: ins(%[[A]], %[[B]]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[B]]
// CHECK: %[[S:.*]] = linalg.generic
// CHECK: fsdp.yield %[[W]], %[[S]]
// CHECK: %[[R:.*]] = fsdp.dispatch(%[[D]]#1) inplace [-1] {kind = "map"}
// CHECK: return %[[D]]#0, %[[R]]
func.func @bias(%x: tensor<16x8xbf16>, %dy: tensor<16x4xbf16>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %db = fsdp.dispatch(%dy) inplace [-1] {kind = "column"} : (tensor<16x4xbf16>) -> tensor<4xf32> {
  ^bb0(%a: tensor<16x4xbf16>):
    %ew = tensor.empty() : tensor<16x4xf32>
    %w = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<16x4xbf16>) outs(%ew : tensor<16x4xf32>) {
    ^bb0(%p: bf16, %o: f32):
      %q = arith.extf %p : bf16 to f32
      linalg.yield %q : f32
    } -> tensor<16x4xf32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#rc, #c], iterator_types = ["reduction", "parallel"]} ins(%w : tensor<16x4xf32>) outs(%z : tensor<4xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = arith.addf %o, %p : f32
      linalg.yield %q : f32
    } -> tensor<4xf32>
    fsdp.yield %s : tensor<4xf32>
  }
  %r = fsdp.dispatch(%db) inplace [-1] {kind = "map"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    fsdp.yield %a : tensor<4xf32>
  }
  %dw = fsdp.dispatch(%x, %dy) inplace [-1] {fsdp.unit = "h.0", kind = "contract"} : (tensor<16x8xbf16>, tensor<16x4xbf16>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<16x8xbf16>, %b: tensor<16x4xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    %s = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<16x8xbf16>, tensor<16x4xbf16>) outs(%z : tensor<8x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %s : tensor<8x4xf32>
  }
  return %dw, %r : tensor<8x4xf32>, tensor<4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#rc = affine_map<(i, j) -> (i, j)>
#c = affine_map<(i, j) -> (j)>

// The sum is added to an operand, and comes after the contraction. The factor is the left one, and has longer rows.
// CHECK-LABEL: func @accumulated
// CHECK-SAME: %[[DY:.*]]: tensor<16x8xbf16>, %[[X:.*]]: tensor<16x8xbf16>, %[[OLD:.*]]: tensor<4xf32>
// CHECK-NEXT: fsdp.dispatch(%[[DY]], %[[X]], %[[OLD]]) inplace [-1, -1] {kind = "contract"}
// CHECK-NOT: fsdp.dispatch
func.func @accumulated(%dy: tensor<16x8xbf16>, %x: tensor<16x8xbf16>, %old: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %dw = fsdp.dispatch(%dy, %x) inplace [-1] {kind = "contract"} : (tensor<16x8xbf16>, tensor<16x8xbf16>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<16x8xbf16>, %b: tensor<16x8xbf16>):
    %rows = tensor.extract_slice %a[0, 0] [16, 4] [1, 1] : tensor<16x8xbf16> to tensor<16x4xbf16>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x8xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%rows, %b : tensor<16x4xbf16>, tensor<16x8xbf16>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
    fsdp.yield %s : tensor<4x8xf32>
  }
  %db = fsdp.dispatch(%dy, %old) inplace [-1] {kind = "column"} : (tensor<16x8xbf16>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<16x8xbf16>, %b: tensor<4xf32>):
    %rows = tensor.extract_slice %a[0, 0] [16, 4] [1, 1] : tensor<16x8xbf16> to tensor<16x4xbf16>
    %s = linalg.generic {indexing_maps = [#rc, #c], iterator_types = ["reduction", "parallel"]} ins(%rows : tensor<16x4xbf16>) outs(%b : tensor<4xf32>) {
    ^bb0(%p: bf16, %o: f32):
      %w = arith.extf %p : bf16 to f32
      %q = arith.addf %w, %o : f32
      linalg.yield %q : f32
    } -> tensor<4xf32>
    fsdp.yield %s : tensor<4xf32>
  }
  return %dw, %db : tensor<4x8xf32>, tensor<4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#rc = affine_map<(i, j) -> (i, j)>
#c = affine_map<(i, j) -> (j)>

// A sum over another dimension than k, of squares, and one that the contraction depends on.
// CHECK-LABEL: func @others
// CHECK-COUNT-4: inplace [-1] {kind
// CHECK-NOT: fsdp.dispatch
func.func @others(%x: tensor<16x4xf32>, %w: tensor<4x16xf32>) -> (tensor<16x16xf32>, tensor<4xf32>, tensor<16xf32>, tensor<16xf32>) {
  %rows = fsdp.dispatch(%x) inplace [-1] {kind = "column"} : (tensor<16x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<16x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#rc, #c], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<16x4xf32>) outs(%z : tensor<4xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = arith.addf %o, %p : f32
      linalg.yield %q : f32
    } -> tensor<4xf32>
    fsdp.yield %s : tensor<4xf32>
  }
  %squares = fsdp.dispatch(%w) inplace [-1] {kind = "column"} : (tensor<4x16xf32>) -> tensor<16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.generic {indexing_maps = [#rc, #c], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<4x16xf32>) outs(%z : tensor<16xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = math.fma %p, %p, %o : f32
      linalg.yield %q : f32
    } -> tensor<16xf32>
    fsdp.yield %s : tensor<16xf32>
  }
  %start = fsdp.dispatch(%w) inplace [-1] {kind = "column"} : (tensor<4x16xf32>) -> tensor<16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.generic {indexing_maps = [#rc, #c], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<4x16xf32>) outs(%z : tensor<16xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = arith.addf %o, %p : f32
      linalg.yield %q : f32
    } -> tensor<16xf32>
    fsdp.yield %s : tensor<16xf32>
  }
  %y = fsdp.dispatch(%x, %w, %start) inplace [-1] {kind = "contract"} : (tensor<16x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> tensor<16x16xf32> {
  ^bb0(%a: tensor<16x4xf32>, %b: tensor<4x16xf32>, %v: tensor<16xf32>):
    %e = tensor.empty() : tensor<16x16xf32>
    %z = linalg.generic {indexing_maps = [#c, #rc], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<16xf32>) outs(%e : tensor<16x16xf32>) {
    ^bb0(%p: f32, %o: f32):
      linalg.yield %p : f32
    } -> tensor<16x16xf32>
    %s = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<16x4xf32>, tensor<4x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
    fsdp.yield %s : tensor<16x16xf32>
  }
  return %y, %rows, %squares, %start : tensor<16x16xf32>, tensor<4xf32>, tensor<16xf32>, tensor<16xf32>
}
