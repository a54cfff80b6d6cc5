// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log
// RUN: fsdp-opt %s --fsdp-raise-attention=assume-keys=true 2>&1 >/dev/null | FileCheck %s --check-prefix=ASSUMED
// ASSUMED-NOT: finite numbers

// the weights are changed after the softmax
// LOG: remark: softmax between two products not raised to attention: the weights are changed between softmax and product
// LOG: note: prevented by this 'arith.mulf'
func.func @changed(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %y = arith.mulf %a0, %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// two products read the weights
// LOG: remark: softmax between two products not raised to attention: the weights are read by more than one product
// LOG: note: prevented by this 'linalg.contract'
func.func @twice(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.softmax dimension(3) ins(%v4 : tensor<2x4x6x6xf32>) outs(%v5 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v7 = arith.constant 0.0 : f32
  %v8 = tensor.empty() : tensor<2x4x6x8xf32>
  %v9 = linalg.fill ins(%v7 : f32) outs(%v8 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v10 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v6, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v9 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v11 = arith.constant 0.0 : f32
  %v12 = tensor.empty() : tensor<2x4x6x8xf32>
  %v13 = linalg.fill ins(%v11 : f32) outs(%v12 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v14 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v6, %k : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v13 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v15 = tensor.empty() : tensor<2x4x6x8xf32>
  %v16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v10, %v14 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v15 : tensor<2x4x6x8xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.addf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x8xf32>
  return %v16 : tensor<2x4x6x8xf32>
}

// a sum of the row's scores: attention is raised, and the sums are captured
// CHECK-LABEL: func.func @row_sums(
// CHECK: fsdp.attention {{.*}} capture(%{{.*}} : tensor<2x4x6xf32>)
// CHECK-NEXT: tensor.extract %{{.*}}[%b, %h, %i]
func.func @row_sums(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = arith.constant 0.0 : f32
  %v6 = tensor.empty() : tensor<2x4x6xf32>
  %v7 = linalg.fill ins(%v5 : f32) outs(%v6 : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v4 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %y = arith.addf %a0, %out : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xf32>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %v8 : tensor<2x4x6x6xf32>, tensor<2x4x6xf32>) outs(%v9 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.subf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v11 = tensor.empty() : tensor<2x4x6x6xf32>
  %v12 = linalg.softmax dimension(3) ins(%v10 : tensor<2x4x6x6xf32>) outs(%v11 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v13 = arith.constant 0.0 : f32
  %v14 = tensor.empty() : tensor<2x4x6x8xf32>
  %v15 = linalg.fill ins(%v13 : f32) outs(%v14 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v16 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v12, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v15 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v16 : tensor<2x4x6x8xf32>
}

// two products: one of them is the score, the other a bias
// CHECK-LABEL: func.func @two_products(
// CHECK: fsdp.attention {{.*}} capture(%{{.*}} : tensor<2x4x6x6xf32>)
// CHECK-NEXT: tensor.extract %{{.*}}[%b, %h, %j, %i]
func.func @two_products(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = arith.constant 0.0 : f32
  %v6 = tensor.empty() : tensor<2x4x6x6xf32>
  %v7 = linalg.fill ins(%v5 : f32) outs(%v6 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v8 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%k, %q : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = tensor.empty() : tensor<2x4x6x6xf32>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %v8 : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) outs(%v9 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.addf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v11 = tensor.empty() : tensor<2x4x6x6xf32>
  %v12 = linalg.softmax dimension(3) ins(%v10 : tensor<2x4x6x6xf32>) outs(%v11 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v13 = arith.constant 0.0 : f32
  %v14 = tensor.empty() : tensor<2x4x6x8xf32>
  %v15 = linalg.fill ins(%v13 : f32) outs(%v14 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v16 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v12, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v15 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v16 : tensor<2x4x6x8xf32>
}

// a finite mask with which a row may be fully masked: a mean over V in the model, but 0 in attention
// LOG: remark: softmax between two products not raised to attention: the mask uses finite numbers, and a row may be masked completely; if every row keeps a key, give --raise-attention=assume-keys
// LOG: note: prevented by this 'linalg.generic'
func.func @finite_table(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask: tensor<6x6xi1>) -> tensor<2x4x6x8xf32> {
  %v1 = arith.constant 0.0 : f32
  %v2 = tensor.empty() : tensor<2x4x6x6xf32>
  %v3 = linalg.fill ins(%v1 : f32) outs(%v2 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v4 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%v3 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v5 = tensor.empty() : tensor<2x4x6x6xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4, %mask : tensor<2x4x6x6xf32>, tensor<6x6xi1>) outs(%v5 : tensor<2x4x6x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %big = arith.constant -1.0e9 : f32
    %y = arith.select %a1, %a0, %big : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %v7 = tensor.empty() : tensor<2x4x6x6xf32>
  %v8 = linalg.softmax dimension(3) ins(%v6 : tensor<2x4x6x6xf32>) outs(%v7 : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %v9 = arith.constant 0.0 : f32
  %v10 = tensor.empty() : tensor<2x4x6x8xf32>
  %v11 = linalg.fill ins(%v9 : f32) outs(%v10 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %v12 = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%v8, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%v11 : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %v12 : tensor<2x4x6x8xf32>
}

// exponentials of shifted scores that are divided by another value than their sum
// LOG: remark: exponentials between two products not raised to attention: they are not divided by their sum over one dimension, as softmax(x) = exp(x - max(x)) / sum(exp(x - max(x)))
// LOG: note: if they are a softmax, write it as one of the framework (torch.softmax, jax.nn.softmax)
func.func @not_a_softmax(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, d)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, n)>] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %re = tensor.empty() : tensor<2x4x6xf32>
  %rl = linalg.fill ins(%inf : f32) outs(%re : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %top = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%s : tensor<2x4x6x6xf32>) outs(%rl : tensor<2x4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.maximumf %o, %a : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %top : tensor<2x4x6x6xf32>, tensor<2x4x6xf32>) outs(%se : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.constant 6.0 : f32
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    %y = arith.divf %e, %c : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, d, h, m, n) -> (b, h, m, n)>, affine_map<(b, d, h, m, n) -> (b, h, n, d)>, affine_map<(b, d, h, m, n) -> (b, h, m, d)>] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// one row of queries, as when text is generated
// LOG: remark: softmax between two products not raised to attention: a single row of queries stays as products of matrices and vectors
func.func @one_row(%q: tensor<4x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<4x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(h, n, d) -> (h, d)>, affine_map<(h, n, d) -> (h, n, d)>, affine_map<(h, n, d) -> (h, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%q, %k : tensor<4x8xf32>, tensor<4x6x8xf32>) outs(%sz : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %e = arith.mulf %a, %b : f32
    %y = arith.addf %o, %e : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<4x6xf32>) outs(%se : tensor<4x6xf32>) -> tensor<4x6xf32>
  %oe = tensor.empty() : tensor<4x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, n, d) -> (h, n)>, affine_map<(h, n, d) -> (h, n, d)>, affine_map<(h, n, d) -> (h, d)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%p, %v : tensor<4x6xf32>, tensor<4x6x8xf32>) outs(%oz : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %e = arith.mulf %a, %b : f32
    %y = arith.addf %o, %e : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
