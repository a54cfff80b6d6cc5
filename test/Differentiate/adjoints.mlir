// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse | FileCheck %s

// The IR of each family of adjoints. The tests in Gradients/ check the numbers.

#id1 = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
#r2 = affine_map<(i, j) -> (i)>
#c2 = affine_map<(i, j) -> (j)>
#n2 = affine_map<(i, j) -> ()>

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>

// For x + b + r, x̄ and r̄ are ȳ without any op, and b̄ is one sum. The adjoint of exp reads its result, not x.
// CHECK-LABEL: func.func @residual
// CHECK:           math.exp
// CHECK:         %[[SEED:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<f32>) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK-NOT:       math.exp
// CHECK:         %[[G:.*]] = linalg.generic {{.*}} ins(%[[SEED]], %{{.*}} : tensor<4x6xf32>, tensor<4x6xf32>)
// CHECK:         %[[B:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[COLUMN]]], iterator_types = ["reduction", "parallel"]} ins(%[[G]]
// CHECK:         return %{{.*}}, %[[G]], %[[B]], %[[G]]
func.func @residual(%x: tensor<4x6xf32> {fsdp.param = "x"}, %b: tensor<6xf32> {fsdp.param = "b"}, %r: tensor<4x6xf32> {fsdp.param = "r"}) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b, %r : tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.addf %0, %s : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%w : tensor<4x6xf32>) outs(%f : tensor<f32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %o, %p : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// A split is joined in an empty tensor: no zeros, no additions.
// CHECK-LABEL: func.func @split
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK:         %[[L:.*]] = tensor.insert_slice %{{.*}} into %[[E]][0] [4] [1]
// CHECK:         %[[R:.*]] = tensor.insert_slice %{{.*}} into %[[L]][4] [4] [1]
// CHECK:         return %{{.*}}, %[[R]]
func.func @split(%x: tensor<8xf32> {fsdp.param = "x"}) -> tensor<f32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  %a = tensor.extract_slice %x[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %b = tensor.extract_slice %x[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %r = linalg.dot ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%z : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// Softmax: one row sum and one map, computed from y only.
// CHECK-LABEL: func.func @softmax
// CHECK:         %[[Y:.*]] = linalg.softmax
// CHECK:         %[[D:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]], #[[ROW]]], iterator_types = ["parallel", "reduction"]} ins(%{{.*}}, %[[Y]]
// CHECK:         %[[X:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[Y]], %[[D]]
// CHECK:         return %{{.*}}, %[[X]]
func.func @softmax(%x: tensor<4x6xf32> {fsdp.param = "x"}, %w: tensor<4x6xf32>) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#id2, #id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%y, %w : tensor<4x6xf32>, tensor<4x6xf32>) outs(%f : tensor<f32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// A tied embedding: the rows are added into the result of the product. The log-sum-exp is saved.
// CHECK-LABEL: func.func @tied
// CHECK:         %{{.*}}, %[[LSE:.*]] = fsdp.cross_entropy %[[LOGITS:.*]], %arg2
// CHECK:         %[[G:.*]] = fsdp.cross_entropy_grad %[[LOGITS]], %arg2, %[[LSE]]
// CHECK:         %[[GX:.*]] = linalg.contract {{.*}} ins(%[[G]], %arg0
// CHECK:         %[[GW:.*]] = linalg.contract {{.*}} ins(%{{.*}}, %[[G]]
// CHECK:         %[[S:.*]] = fsdp.scatter_add_rows %[[GX]] at %arg1 into %[[GW]](tensor<5x8xf32>)
// CHECK:         return %{{.*}}, %[[S]]
func.func @tied(%w: tensor<5x8xf32> {fsdp.param = "w"}, %ids: tensor<12xi64>, %t: tensor<12xi64>) -> tensor<f32> {
  %x = fsdp.gather_rows %w[%ids] : tensor<5x8xf32>, tensor<12xi64> -> tensor<12x8xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x5xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<12x5xf32>) -> tensor<12x5xf32>
  %l = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<12x8xf32>, tensor<5x8xf32>) outs(%i : tensor<12x5xf32>) -> tensor<12x5xf32>
  %loss, %lse = fsdp.cross_entropy %l, %t : tensor<12x5xf32>, tensor<12xi64> -> tensor<f32>, tensor<12xf32>
  return %loss : tensor<f32>
}

// An embedding inside a body: ids over the rows, updates with whole columns.
// CHECK-LABEL: func.func @embedding
// CHECK:         %[[IDS:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<7xi64>) outs(%{{.*}} : tensor<7xi64>)
// CHECK:         fsdp.scatter_add_rows %{{.*}} at %[[IDS]] : tensor<7x6xf32>, tensor<7xi64> -> tensor<5x6xf32>
func.func @embedding(%w: tensor<5x6xf32> {fsdp.param = "w"}, %ids: tensor<7xi64>) -> tensor<f32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  %e = tensor.empty() : tensor<7x6xf32>
  %y = linalg.generic {indexing_maps = [#r2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<7xi64>) outs(%e : tensor<7x6xf32>) {
  ^bb0(%id: i64, %o: f32):
    %c3 = arith.constant 3 : i64
    %k = arith.subi %id, %c3 : i64
    %i = arith.index_cast %k : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<5x6xf32>
    linalg.yield %v : f32
  } -> tensor<7x6xf32>
  %l = linalg.generic {indexing_maps = [#id2, #n2], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<7x6xf32>) outs(%z : tensor<f32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.mulf %p, %p : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// Equal maxima share ȳ, which is first divided by their number.
// CHECK-LABEL: func.func @maximum
// CHECK:         %[[M:.*]] = linalg.generic {{.*}}"reduction"
// CHECK:           arith.maximumf
// CHECK:         %[[N:.*]] = linalg.generic {{.*}}"reduction"{{.*}} ins(%arg0, %[[M]]
// CHECK:           arith.uitofp
// CHECK:         %[[G:.*]] = linalg.generic {{.*}} ins({{.*}}%[[N]]
// CHECK:           arith.divf
// CHECK:         linalg.generic {{.*}}"parallel"{{.*}} ins(%arg0, %[[G]], %[[M]]
// CHECK:           arith.select
func.func @maximum(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> {
  %lowest = arith.constant dense<0xFF800000> : tensor<f32>
  %m = linalg.generic {indexing_maps = [#id1, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%lowest : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %e = tensor.empty() : tensor<f32>
  %q = linalg.mul ins(%m, %m : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %q : tensor<f32>
}

// A frozen parameter has no gradient; neither has one that the loss does not read.
// CHECK-LABEL: func.func @some
// CHECK-SAME:    -> (tensor<f32>, tensor<4xf32> {fsdp.gradient = 1 : i64})
func.func @some(%f: tensor<4xf32> {fsdp.param = "f", fsdp.frozen}, %x: tensor<4xf32> {fsdp.param = "x"}, %u: tensor<4xf32> {fsdp.param = "u"}) -> tensor<f32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  %r = linalg.dot ins(%f, %x : tensor<4xf32>, tensor<4xf32>) outs(%z : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
