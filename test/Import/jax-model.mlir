// Output of jaxlib's stablehlo-legalize-to-linalg: private callees, parameters
// named by locations, a lookup that wraps, clamps and fills with NaN, maps and
// reductions as named ops, take_along_axis in the loss.
// RUN: fsdp-opt %s --fsdp-import 2>/dev/null | FileCheck %s
// RUN: %python %S/Inputs/same-values.py %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: fsdp.param = "h.0.w"
// CHECK-SAME: fsdp.param = "wte"
// CHECK-SAME: {fsdp.batch = "tokens", fsdp.limit = 7 : i64}
// CHECK-SAME: {fsdp.batch = "targets", fsdp.limit = 7 : i64}
// CHECK-NOT: cmpi
// CHECK: %[[IDS:.*]] = tensor.collapse_shape %arg2 {{\[}}[0, 1]]
// CHECK: fsdp.gather_rows %arg1[%[[IDS]]] : tensor<7x6xf32>, tensor<8xi32>
// CHECK-NOT: cmpi
// CHECK: linalg.contract {{.*}} tensor<8x6xf32>, tensor<6x6xf32>
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.contract {{.*}} tensor<8x6xf32>, tensor<7x6xf32>
// CHECK: %[[LOSS:.*]], %{{.*}} = fsdp.cross_entropy
// CHECK-NEXT: return %[[LOSS]]
// CHECK-NOT: func.func

module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%w: tensor<6x6xf32> loc("params['h'][0]['w']"), %wte: tensor<7x6xf32> loc("params['wte']"),
                         %tok: tensor<2x4xi32> {mhlo.sharding = "{replicated}"}, %tgt: tensor<2x4xi32>) -> (tensor<f32> {jax.result_info = "result"}) {
    %zero = arith.constant 0.000000e+00 : f32
    %x = call @_take(%wte, %tok) : (tensor<7x6xf32>, tensor<2x4xi32>) -> tensor<2x4x6xf32>
    %e = tensor.empty() : tensor<2x4x6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    // dot_general of [2, 4, 6] and [6, 6]
    %h = linalg.generic {indexing_maps = [affine_map<(b, t, n, k) -> (b, t, k)>, affine_map<(b, t, n, k) -> (k, n)>, affine_map<(b, t, n, k) -> (b, t, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x4x6xf32>, tensor<6x6xf32>) outs(%f : tensor<2x4x6xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x4x6xf32>
    %g = call @silu(%h) : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %xf = tensor.collapse_shape %g [[0, 1], [2]] : tensor<2x4x6xf32> into tensor<8x6xf32>
    %et = tensor.empty() : tensor<6x7xf32>
    %wt = linalg.transpose ins(%wte : tensor<7x6xf32>) outs(%et : tensor<6x7xf32>) permutation = [1, 0]
    %el = tensor.empty() : tensor<8x7xf32>
    %fl = linalg.fill ins(%zero : f32) outs(%el : tensor<8x7xf32>) -> tensor<8x7xf32>
    %lg = linalg.matmul ins(%xf, %wt : tensor<8x6xf32>, tensor<6x7xf32>) outs(%fl : tensor<8x7xf32>) -> tensor<8x7xf32>
    %logits = tensor.expand_shape %lg [[0, 1], [2]] output_shape [2, 4, 7] : tensor<8x7xf32> into tensor<2x4x7xf32>
    %logp = call @log_softmax(%logits) : (tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
    %p = call @_take_along_axis(%logp, %tgt) : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
    %e0 = tensor.empty() : tensor<f32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
    %sum = linalg.reduce { arith.addf } ins(%p : tensor<2x4xf32>) outs(%f0 : tensor<f32>) dimensions = [0, 1]
    %n = arith.constant dense<8.000000e+00> : tensor<f32>
    %mean = linalg.map { arith.divf } ins(%sum, %n : tensor<f32>, tensor<f32>) outs(%e0 : tensor<f32>)
    %loss = linalg.map { arith.negf } ins(%mean : tensor<f32>) outs(%e0 : tensor<f32>)
    return %loss : tensor<f32>
  }
  func.func private @_take(%table: tensor<7x6xf32>, %ids: tensor<2x4xi32>) -> tensor<2x4x6xf32> {
    %c0 = arith.constant dense<0> : tensor<2x4xi32>
    %c7 = arith.constant dense<7> : tensor<2x4xi32>
    %eb = tensor.empty() : tensor<2x4xi1>
    %ei = tensor.empty() : tensor<2x4xi32>
    %neg = linalg.map ins(%ids, %c0 : tensor<2x4xi32>, tensor<2x4xi32>) outs(%eb : tensor<2x4xi1>) (%a: i32, %b: i32, %o: i1) {
      %c = arith.cmpi slt, %a, %b : i32
      linalg.yield %c : i1
    }
    %wrapped = linalg.map { arith.addi } ins(%ids, %c7 : tensor<2x4xi32>, tensor<2x4xi32>) outs(%ei : tensor<2x4xi32>)
    %i = linalg.map { arith.select } ins(%neg, %wrapped, %ids : tensor<2x4xi1>, tensor<2x4xi32>, tensor<2x4xi32>) outs(%ei : tensor<2x4xi32>)
    %i1 = tensor.expand_shape %i [[0], [1, 2]] output_shape [2, 4, 1] : tensor<2x4xi32> into tensor<2x4x1xi32>
    // mask = all(0 <= i <= 6) over the index vector
    %z3 = arith.constant dense<0> : tensor<2x4x1xi32>
    %s3 = arith.constant dense<6> : tensor<2x4x1xi32>
    %ge = arith.cmpi sge, %i1, %z3 : tensor<2x4x1xi32>
    %le = arith.cmpi sle, %i1, %s3 : tensor<2x4x1xi32>
    %in = arith.andi %ge, %le : tensor<2x4x1xi1>
    %true = arith.constant true
    %ft = linalg.fill ins(%true : i1) outs(%eb : tensor<2x4xi1>) -> tensor<2x4xi1>
    %all = linalg.reduce { arith.andi } ins(%in : tensor<2x4x1xi1>) outs(%ft : tensor<2x4xi1>) dimensions = [2]
    %e = tensor.empty() : tensor<2x4x6xf32>
    %rows = linalg.generic {indexing_maps = [affine_map<(b, t, c) -> (b, t, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<2x4x6xf32>) {
    ^bb0(%o: f32):
      %b = linalg.index 0 : index
      %t = linalg.index 1 : index
      %c = linalg.index 2 : index
      %zero = arith.constant 0 : index
      %last = arith.constant 6 : index
      %k = tensor.extract %i1[%b, %t, %zero] : tensor<2x4x1xi32>
      %kk = arith.index_cast %k : i32 to index
      %lo = arith.maxsi %kk, %zero : index
      %hi = arith.minsi %lo, %last : index
      %v = tensor.extract %table[%hi, %c] : tensor<7x6xf32>
      linalg.yield %v : f32
    } -> tensor<2x4x6xf32>
    %nan = arith.constant dense<0x7FC00000> : tensor<2x4x6xf32>
    %em = tensor.empty() : tensor<2x4x6xi1>
    %wide = linalg.broadcast ins(%all : tensor<2x4xi1>) outs(%em : tensor<2x4x6xi1>) dimensions = [2]
    %r = arith.select %wide, %rows, %nan : tensor<2x4x6xi1>, tensor<2x4x6xf32>
    return %r : tensor<2x4x6xf32>
  }
  func.func private @silu(%x: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
    %one = arith.constant dense<1.000000e+00> : tensor<2x4x6xf32>
    %n = arith.negf %x : tensor<2x4x6xf32>
    %e = math.exp %n : tensor<2x4x6xf32>
    %a = arith.addf %e, %one : tensor<2x4x6xf32>
    %s = arith.divf %one, %a : tensor<2x4x6xf32>
    %r = arith.mulf %x, %s : tensor<2x4x6xf32>
    return %r : tensor<2x4x6xf32>
  }
  func.func private @log_softmax(%x: tensor<2x4x7xf32>) -> tensor<2x4x7xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %inf = arith.constant 0xFF800000 : f32
    %er = tensor.empty() : tensor<2x4xf32>
    %fm = linalg.fill ins(%inf : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
    %m0 = linalg.reduce { arith.maximumf } ins(%x : tensor<2x4x7xf32>) outs(%fm : tensor<2x4xf32>) dimensions = [2]
    %lows = arith.constant dense<0xFF800000> : tensor<2x4xf32>
    %m = arith.maximumf %lows, %m0 : tensor<2x4xf32>
    %e = tensor.empty() : tensor<2x4x7xf32>
    %mb = linalg.broadcast ins(%m : tensor<2x4xf32>) outs(%e : tensor<2x4x7xf32>) dimensions = [2]
    %s = arith.subf %x, %mb : tensor<2x4x7xf32>
    %ex = math.exp %s : tensor<2x4x7xf32>
    %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
    %sum = linalg.reduce { arith.addf } ins(%ex : tensor<2x4x7xf32>) outs(%fz : tensor<2x4xf32>) dimensions = [2]
    %l = math.log %sum : tensor<2x4xf32>
    %lb = linalg.broadcast ins(%l : tensor<2x4xf32>) outs(%e : tensor<2x4x7xf32>) dimensions = [2]
    %r = arith.subf %s, %lb : tensor<2x4x7xf32>
    return %r : tensor<2x4x7xf32>
  }
  func.func private @_take_along_axis(%x: tensor<2x4x7xf32>, %t: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %c0 = arith.constant dense<0> : tensor<2x4xi32>
    %c7 = arith.constant dense<7> : tensor<2x4xi32>
    %neg = arith.cmpi slt, %t, %c0 : tensor<2x4xi32>
    %w = arith.addi %t, %c7 : tensor<2x4xi32>
    %i = arith.select %neg, %w, %t : tensor<2x4xi1>, tensor<2x4xi32>
    %e = tensor.empty() : tensor<2x4xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(b, t) -> (b, t)>, affine_map<(b, t) -> (b, t)>], iterator_types = ["parallel", "parallel"]} ins(%i : tensor<2x4xi32>) outs(%e : tensor<2x4xf32>) {
    ^bb0(%k: i32, %o: f32):
      %b = linalg.index 0 : index
      %c = linalg.index 1 : index
      %kk = arith.index_cast %k : i32 to index
      %v = tensor.extract %x[%b, %c, %kk] : tensor<2x4x7xf32>
      linalg.yield %v : f32
    } -> tensor<2x4xf32>
    return %r : tensor<2x4xf32>
  }
}
