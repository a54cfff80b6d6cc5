// RUN: fsdp-gradcheck %s --quiet | FileCheck %s
// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse | FileCheck %s --check-prefix=IR

// Gradients in narrow types against differences of the same function in f64, within 8 roundings.
// CHECK: [[N:[0-9]+]] of [[N]] gradients agree

// Cotangents of products are rounded to the type of the operands. Products sum in f32.
// Cotangents of parameters stay in f32 up to the return.
// IR-LABEL: func.func @language_bf16
// IR-SAME:    tensor<5x8xf32> {fsdp.gradient = 0 : i64}
// IR:         %[[G:.*]] = fsdp.cross_entropy_grad
// IR:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[G]] : tensor<12x5xf32>) outs(%{{.*}} : tensor<12x5xbf16>)
// IR:         %[[W:.*]] = linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<12x8xbf16>, tensor<12x5xbf16>) outs(%{{.*}} : tensor<5x8xf32>)
// IR:         %[[S:.*]] = fsdp.scatter_add_rows %{{.*}} at %{{.*}} into %[[W]](tensor<5x8xf32>) : tensor<12x8xf32>, tensor<12xi64>
// IR:         return %{{.*}}, %[[S]]

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id1 = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
#r2 = affine_map<(i, j) -> (i)>
#c2 = affine_map<(i, j) -> (j)>

func.func @product_bf16(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<4x8xbf16>, tensor<8x6xbf16>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
func.func @product_chain_bf16(%a: tensor<4x8xbf16>, %b: tensor<6x8xbf16>, %c: tensor<6xbf16>) -> tensor<4x6xbf16> {
  %z = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<4x6xbf16>
  %i = linalg.fill ins(%z : bf16) outs(%e : tensor<4x6xbf16>) -> tensor<4x6xbf16>
  %m = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<4x8xbf16>, tensor<6x8xbf16>) outs(%i : tensor<4x6xbf16>) -> tensor<4x6xbf16>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%m, %c : tensor<4x6xbf16>, tensor<6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %o: bf16):
    %0 = arith.addf %p, %q : bf16
    %1 = math.tanh %0 : bf16
    linalg.yield %1 : bf16
  } -> tensor<4x6xbf16>
  return %y : tensor<4x6xbf16>
}
func.func @normalize_bf16(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 8.0 : f32
  %e1 = tensor.empty() : tensor<4xf32>
  %e = tensor.empty() : tensor<4x8xbf16>
  %i = linalg.fill ins(%z : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id2, #r2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %g : tensor<4x8xbf16>, tensor<4xf32>, tensor<8xbf16>) outs(%e : tensor<4x8xbf16>) {
  ^bb0(%a: bf16, %b: f32, %c: bf16, %o: bf16):
    %0 = arith.divf %b, %n : f32
    %1 = math.rsqrt %0 : f32
    %2 = arith.extf %a : bf16 to f32
    %3 = arith.mulf %2, %1 : f32
    %4 = arith.truncf %3 : f32 to bf16
    %5 = arith.mulf %4, %c : bf16
    linalg.yield %5 : bf16
  } -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}
func.func @language_bf16(%w: tensor<5x8xbf16> {fsdp.param = "w"}, %ids: tensor<12xi64> {fsdp.limit = 5 : i64}, %t: tensor<12xi64> {fsdp.limit = 5 : i64}) -> tensor<f32> {
  %x = fsdp.gather_rows %w[%ids] : tensor<5x8xbf16>, tensor<12xi64> -> tensor<12x8xbf16>
  %e = tensor.empty() : tensor<12x8xbf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<12x8xbf16>) outs(%e : tensor<12x8xbf16>) -> tensor<12x8xbf16>
  %z = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<12x5xf32>
  %i = linalg.fill ins(%z : f32) outs(%e1 : tensor<12x5xf32>) -> tensor<12x5xf32>
  %l = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%p, %w : tensor<12x8xbf16>, tensor<5x8xbf16>) outs(%i : tensor<12x5xf32>) -> tensor<12x5xf32>
  %loss, %lse = fsdp.cross_entropy %l, %t : tensor<12x5xf32>, tensor<12xi64> -> tensor<f32>, tensor<12xf32>
  return %loss : tensor<f32>
}

func.func @product_f16(%a: tensor<4x8xf16>, %b: tensor<8x6xf16>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<4x8xf16>, tensor<8x6xf16>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
func.func @product_chain_f16(%a: tensor<4x8xf16>, %b: tensor<6x8xf16>, %c: tensor<6xf16>) -> tensor<4x6xf16> {
  %z = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x6xf16>
  %i = linalg.fill ins(%z : f16) outs(%e : tensor<4x6xf16>) -> tensor<4x6xf16>
  %m = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<4x8xf16>, tensor<6x8xf16>) outs(%i : tensor<4x6xf16>) -> tensor<4x6xf16>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%m, %c : tensor<4x6xf16>, tensor<6xf16>) outs(%e : tensor<4x6xf16>) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %0 = arith.addf %p, %q : f16
    %1 = math.tanh %0 : f16
    linalg.yield %1 : f16
  } -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}
func.func @normalize_f16(%x: tensor<4x8xf16>, %g: tensor<8xf16>) -> tensor<4x8xf16> {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 8.0 : f32
  %e1 = tensor.empty() : tensor<4xf32>
  %e = tensor.empty() : tensor<4x8xf16>
  %i = linalg.fill ins(%z : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf16>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id2, #r2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %g : tensor<4x8xf16>, tensor<4xf32>, tensor<8xf16>) outs(%e : tensor<4x8xf16>) {
  ^bb0(%a: f16, %b: f32, %c: f16, %o: f16):
    %0 = arith.divf %b, %n : f32
    %1 = math.rsqrt %0 : f32
    %2 = arith.extf %a : f16 to f32
    %3 = arith.mulf %2, %1 : f32
    %4 = arith.truncf %3 : f32 to f16
    %5 = arith.mulf %4, %c : f16
    linalg.yield %5 : f16
  } -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}
func.func @language_f16(%w: tensor<5x8xf16> {fsdp.param = "w"}, %ids: tensor<12xi64> {fsdp.limit = 5 : i64}, %t: tensor<12xi64> {fsdp.limit = 5 : i64}) -> tensor<f32> {
  %x = fsdp.gather_rows %w[%ids] : tensor<5x8xf16>, tensor<12xi64> -> tensor<12x8xf16>
  %e = tensor.empty() : tensor<12x8xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<12x8xf16>) outs(%e : tensor<12x8xf16>) -> tensor<12x8xf16>
  %z = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<12x5xf32>
  %i = linalg.fill ins(%z : f32) outs(%e1 : tensor<12x5xf32>) -> tensor<12x5xf32>
  %l = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%p, %w : tensor<12x8xf16>, tensor<5x8xf16>) outs(%i : tensor<12x5xf32>) -> tensor<12x5xf32>
  %loss, %lse = fsdp.cross_entropy %l, %t : tensor<12x5xf32>, tensor<12xi64> -> tensor<f32>, tensor<12xf32>
  return %loss : tensor<f32>
}

func.func @product_f32(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
func.func @product_chain_f32(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>, %c: tensor<6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<4x8xf32>, tensor<6x8xf32>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%m, %c : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    %1 = math.tanh %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
func.func @normalize_f32(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 8.0 : f32
  %e1 = tensor.empty() : tensor<4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.mulf %a, %a : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id2, #r2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %g : tensor<4x8xf32>, tensor<4xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %0 = arith.divf %b, %n : f32
    %1 = math.rsqrt %0 : f32
    %3 = arith.mulf %a, %1 : f32
    %5 = arith.mulf %3, %c : f32
    linalg.yield %5 : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @language_f32(%w: tensor<5x8xf32> {fsdp.param = "w"}, %ids: tensor<12xi64> {fsdp.limit = 5 : i64}, %t: tensor<12xi64> {fsdp.limit = 5 : i64}) -> tensor<f32> {
  %x = fsdp.gather_rows %w[%ids] : tensor<5x8xf32>, tensor<12xi64> -> tensor<12x8xf32>
  %e = tensor.empty() : tensor<12x8xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<12x8xf32>) outs(%e : tensor<12x8xf32>) -> tensor<12x8xf32>
  %z = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<12x5xf32>
  %i = linalg.fill ins(%z : f32) outs(%e1 : tensor<12x5xf32>) -> tensor<12x5xf32>
  %l = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%p, %w : tensor<12x8xf32>, tensor<5x8xf32>) outs(%i : tensor<12x5xf32>) -> tensor<12x5xf32>
  %loss, %lse = fsdp.cross_entropy %l, %t : tensor<12x5xf32>, tensor<12xi64> -> tensor<f32>, tensor<12xf32>
  return %loss : tensor<f32>
}
// One value is read by a broadcast and by an elementwise op. Its two cotangents are in f32 and in bf16, and are added as two tensors.
func.func @broadcast_and_elementwise_bf16(%p: tensor<4x6xbf16>, %q: tensor<6xbf16>) -> tensor<4x6xbf16> {
  %e1 = tensor.empty() : tensor<6xbf16>
  %e = tensor.empty() : tensor<4x6xbf16>
  %x = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%q : tensor<6xbf16>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = math.tanh %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  %u = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%p, %x : tensor<4x6xbf16>, tensor<6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.mulf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> tensor<4x6xbf16>
  %w = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : tensor<6xbf16>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = math.exp %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%u, %w : tensor<4x6xbf16>, tensor<6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.addf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> tensor<4x6xbf16>
  return %y : tensor<4x6xbf16>
}
// Like the previous case, but the f32 cotangent is already a sum, in which the broadcast value is an addend.
func.func @added_and_elementwise_bf16(%p: tensor<4x6xbf16>, %q: tensor<6xbf16>) -> (tensor<4x6xbf16>, tensor<6xbf16>) {
  %e1 = tensor.empty() : tensor<6xbf16>
  %e = tensor.empty() : tensor<4x6xbf16>
  %x = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%q : tensor<6xbf16>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = math.tanh %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  %y = linalg.generic {indexing_maps = [#id2, #c2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%p, %x : tensor<4x6xbf16>, tensor<6xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.addf %a, %b : bf16
    %1 = math.exp %0 : bf16
    linalg.yield %1 : bf16
  } -> tensor<4x6xbf16>
  %w = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : tensor<6xbf16>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = math.exp %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  return %y, %w : tensor<4x6xbf16>, tensor<6xbf16>
}
// Like the previous case, but the f32 cotangent is a scatter of rows.
func.func @gathered_and_elementwise_bf16(%t: tensor<5x8xbf16>, %ids: tensor<12xi64> {fsdp.limit = 5 : i64}) -> (tensor<12x8xbf16>, tensor<5x8xbf16>) {
  %e = tensor.empty() : tensor<5x8xbf16>
  %x = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<5x8xbf16>) outs(%e : tensor<5x8xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = math.tanh %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<5x8xbf16>
  %y = fsdp.gather_rows %x[%ids] : tensor<5x8xbf16>, tensor<12xi64> -> tensor<12x8xbf16>
  %w = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x8xbf16>) outs(%e : tensor<5x8xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = math.exp %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<5x8xbf16>
  return %y, %w : tensor<12x8xbf16>, tensor<5x8xbf16>
}
