// RUN: fsdp-opt %s --fsdp-form-dispatches --fsdp-assign-inplace | FileCheck %s

// DOC-BEFORE-BEGIN fsdp-assign-inplace
#id = affine_map<(d0) -> (d0)>
// DOC-BEFORE-END
#rev = affine_map<(d0, d1) -> (d1, d0)>
#two = affine_map<(d0, d1) -> (d0, d1)>

// The result is written over the state argument, not over the gradient, although nothing reads the gradient later.
// CHECK-LABEL: func @update
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}) inplace [0]
// DOC-BEFORE-BEGIN fsdp-assign-inplace
// DOC-SETUP: --fsdp-form-dispatches
// DOC-ARGS: --fsdp-assign-inplace
func.func @update(%p: tensor<64xf32>, %g: tensor<64xf32>) -> (tensor<64xf32> {fsdp.updates = 0 : i64}) {
  %e = tensor.empty() : tensor<64xf32>
  %q = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%p, %g : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %q : tensor<64xf32>
}
// DOC-BEFORE-END

// An argument that nothing updates is never written.
// CHECK-LABEL: func @input
// CHECK: fsdp.dispatch(%{{.*}}) inplace [-1]
func.func @input(%p: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %q : tensor<64xf32>
}

// A transposed read needs elements that an in-place write would destroy.
// CHECK-LABEL: func @transpose
// CHECK: fsdp.dispatch(%{{.*}}) inplace [-1]
// CHECK: fsdp.dispatch(%{{.*}}) inplace [-1]
func.func @transpose(%p: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %e = tensor.empty() : tensor<32x32xf32>
  %q = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<32x32xf32>
  %t = linalg.generic {indexing_maps = [#rev, #two], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<32x32xf32>
  return %t : tensor<32x32xf32>
}

// An accumulator is also read at other elements, so the result gets its own buffer.
// CHECK-LABEL: func @read_elsewhere
// CHECK: %[[A:.*]] = fsdp.dispatch(%{{.*}}) inplace [-1] {kind = "row"}
// CHECK: fsdp.dispatch(%{{.*}}, %[[A]]) inplace [-1]
func.func @read_elsewhere(%x: tensor<64xf32>, %m: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#two, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<64x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %q = linalg.generic {indexing_maps = [#two, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%m, %r : tensor<64x64xf32>, tensor<64xf32>) outs(%r : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %o : f32
    linalg.yield %2 : f32
  } -> tensor<64xf32>
  return %q : tensor<64xf32>
}

// An accumulator is written over when nothing reads it later.
// CHECK-LABEL: func @accumulate
// CHECK: %[[A:.*]] = fsdp.dispatch(%{{.*}}) inplace [-1] {kind = "map"}
// CHECK: %[[B:.*]] = fsdp.dispatch(%{{.*}}, %{{.*}}, %[[A]]) inplace [2] {kind = "contract"}
// CHECK: %[[C:.*]] = fsdp.dispatch(%{{.*}}, %{{.*}}, %[[B]]) inplace [-1] {kind = "contract"}
// CHECK: return %[[B]], %[[C]]
func.func @accumulate(%a: tensor<32x8xf32>, %b: tensor<8x32xf32>, %x: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %e = tensor.empty() : tensor<32x32xf32>
  %q = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%i: f32, %o: f32):
    %1 = math.exp %i : f32
    linalg.yield %1 : f32
  } -> tensor<32x32xf32>
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<32x8xf32>, tensor<8x32xf32>) outs(%q : tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<32x8xf32>, tensor<8x32xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %c, %d : tensor<32x32xf32>, tensor<32x32xf32>
}

// A scatter adds into its table in place.
// CHECK-LABEL: func @scatter
// CHECK: %[[T:.*]] = fsdp.dispatch(%{{.*}}) inplace [-1] {kind = "map"}
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}, %[[T]]) inplace [2] {kind = "scatter"}
func.func @scatter(%u: tensor<8x32xf32>, %i: tensor<8xi64>, %x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %e = tensor.empty() : tensor<32x32xf32>
  %q = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<32x32xf32>
  %s = fsdp.scatter_add_rows %u at %i into %q (tensor<32x32xf32>) : tensor<8x32xf32>, tensor<8xi64> -> tensor<32x32xf32>
  return %s : tensor<32x32xf32>
}

// One tensor is read element by element and, through a view of the same bytes, transposed: the result gets its own buffer.
// CHECK-LABEL: func @read_through_a_view
// CHECK: %[[Q:.*]] = fsdp.dispatch({{.*}}kind = "contract"}
// CHECK: %[[V:.*]] = tensor.expand_shape %[[Q]]
// CHECK: fsdp.dispatch(%[[Q]], %[[V]]) inplace [-1]
func.func @read_through_a_view(%p: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %e = tensor.empty() : tensor<32x32xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %q = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%p, %p : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %v = tensor.expand_shape %q [[0], [1, 2]] output_shape [32, 32, 1] : tensor<32x32xf32> into tensor<32x32x1xf32>
  %t = linalg.generic {indexing_maps = [#two, affine_map<(d0, d1) -> (d1, d0, 0)>, #two], iterator_types = ["parallel", "parallel"]}
      ins(%q, %v : tensor<32x32xf32>, tensor<32x32x1xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<32x32xf32>
  return %t : tensor<32x32xf32>
}

// A slice of columns is not one range of bytes, even with a dimension of 1 in between: the kernel slices it.
// CHECK-LABEL: func @columns
// CHECK-NOT: tensor.extract_slice
// CHECK: fsdp.dispatch(%{{.*}}) inplace [-1]
// CHECK: tensor.extract_slice
func.func @columns(%p: tensor<4x1x32xf32>) -> tensor<4x1x16xf32> {
  %s = tensor.extract_slice %p[0, 0, 16] [4, 1, 16] [1, 1, 1] : tensor<4x1x32xf32> to tensor<4x1x16xf32>
  %e = tensor.empty() : tensor<4x1x16xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<4x1x16xf32>) outs(%e : tensor<4x1x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<4x1x16xf32>
  return %q : tensor<4x1x16xf32>
}

// Only the value that the loop yields may be written over the value that the loop carries.
// CHECK-LABEL: func @carried
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK: %[[A:.*]] = fsdp.dispatch(%[[S]]) inplace [-1]
// CHECK: fsdp.dispatch(%{{.*}}, %[[A]]) inplace [-1]
// CHECK: scf.yield
func.func @carried(%x: tensor<32x32xf32>, %init: tensor<32xf32>) -> tensor<32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<32xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %init) -> tensor<32xf32> {
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : tensor<32xf32>) outs(%e : tensor<32xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = math.exp %v : f32
      linalg.yield %1 : f32
    } -> tensor<32xf32>
    %b = linalg.contract indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>]
      ins(%x, %a : tensor<32x32xf32>, tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
    %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : tensor<32xf32>) outs(%e : tensor<32xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = math.exp %v : f32
      linalg.yield %1 : f32
    } -> tensor<32xf32>
    scf.yield %c : tensor<32xf32>
  }
  return %r : tensor<32xf32>
}

// The sum %s is stored in the first pass over a row, and %c is read after the sum of squares, in a later pass.
// CHECK-LABEL: func @passes
// CHECK: fsdp.dispatch(%[[A:[^,]*]], %[[B:[^,]*]], %[[C:[^,)]*]]) inplace [-1, 2] {kind = "row"}
func.func @passes(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) {
  %e = tensor.empty() : tensor<32x32xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %a = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %x : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %y : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%y, %y : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = linalg.generic {indexing_maps = [#two, #two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %1 = arith.addf %u, %v : f32
    linalg.yield %1 : f32
  } -> tensor<32x32xf32>
  %g = tensor.empty() : tensor<32xf32>
  %h = linalg.fill ins(%z : f32) outs(%g : tensor<32xf32>) -> tensor<32xf32>
  %q = linalg.generic {indexing_maps = [#two, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<32x32xf32>) outs(%h : tensor<32xf32>) {
  ^bb0(%u: f32, %o: f32):
    %1 = math.fma %u, %u, %o : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  %t = linalg.generic {indexing_maps = [#two, #two, affine_map<(d0, d1) -> (d0)>, #two], iterator_types = ["parallel", "parallel"]}
      ins(%s, %c, %q : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %o: f32):
    %1 = math.rsqrt %w : f32
    %2 = arith.mulf %u, %1 : f32
    %3 = math.fma %v, %2, %u : f32
    linalg.yield %3 : f32
  } -> tensor<32x32xf32>
  return %a, %b, %s, %t : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
}
