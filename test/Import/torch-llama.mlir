// A Llama layer in the form of torch-mlir: RMSNorm with powf, rotary embedding by
// slices, negf and concat, grouped heads by broadcast, attention with torch's
// _safe_softmax after an additive mask, silu, and nll_loss with ignore_index.
// RUN: fsdp-opt %s --fsdp-import=raise-attention=false 2>/dev/null | FileCheck %s
// RUN: %python %S/Inputs/same-values.py %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<2x5xi64> {fsdp.batch = "tokens", fsdp.limit = 11 : i64}
// CHECK-SAME: tensor<2x5xi64> {fsdp.batch = "targets", fsdp.extra_ids = array<i64: -100>, fsdp.limit = 11 : i64}
// CHECK-SAME: ) -> tensor<f32>
// CHECK: fsdp.gather_rows %arg0[%{{.*}}] : tensor<11x16xf32>, tensor<{{.*}}xi64>
// CHECK: linalg.contract {{.*}} tensor<10x16xf32>, tensor<16x16xf32>
// CHECK: linalg.contract {{.*}} tensor<10x16xf32>, tensor<8x16xf32>
// CHECK: linalg.contract {{.*}} tensor<10x16xf32>, tensor<8x16xf32>
// Rotary tables are computed once, not per head.
// CHECK: outs(%{{.*}} : tensor<5x4xf32>)
// CHECK: math.cos
// Attention is not raised here. Nothing is transposed or repeated: the products read the heads by their maps.
// CHECK: tensor.concat dim(3)
// CHECK: outs(%{{.*}} : tensor<2x5x4x4xf32>)
// CHECK-NOT: outs(%{{.*}} : tensor<2x4x5x4xf32>)
// CHECK: linalg.contract {{.*}} tensor<2x5x2x2x4xf32>, tensor<2x5x2x4xf32>)
// CHECK: linalg.softmax dimension(3) {{.*}} tensor<2x4x5x5xf32>
// CHECK-NOT: arith.andi
// CHECK: linalg.contract
// CHECK: fsdp.cross_entropy %{{.*}}, %{{.*}} ignore -100 : tensor<10x11xf32>, tensor<10xi64>
// CHECK-NOT: tensor.extract
// CHECK: return

#id1 = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#row3 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#row4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#c3 = affine_map<(d0, d1, d2) -> (d2)>
#t2 = affine_map<(d0, d1) -> (d1, d0)>
#swap = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#last = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#rope = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#mask = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#ids = affine_map<(d0, d1, d2) -> (d0, d1)>
#group = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, 0, d3, d4)>
#id5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#scalar = affine_map<() -> ()>
#none4 = affine_map<(d0, d1, d2, d3) -> ()>
#none1 = affine_map<(d0) -> ()>
#r2 = affine_map<(d0, d1) -> (d0, 0)>
module attributes {torch.debug_module_name = "_lambda"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @main(%emb: tensor<11x16xf32>, %norm: tensor<16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<8x16xf32>,
                  %wv: tensor<8x16xf32>, %wo: tensor<16x16xf32>, %gate: tensor<12x16xf32>, %up: tensor<12x16xf32>,
                  %down: tensor<16x12xf32>, %tok: tensor<2x5xi64>, %tgt: tensor<2x5xi64>) -> tensor<f32> {
    %zero = arith.constant 0.000000e+00 : f32
    %one = arith.constant 1.000000e+00 : f32
    %two = arith.constant 2.000000e+00 : f32
    %n = arith.constant 1.600000e+01 : f32
    %inf = arith.constant 0xFF800000 : f32
    %eps = arith.constant 1.000000e-05 : f64
    %c0_i64 = arith.constant 0 : i64
    %c11 = arith.constant 11 : index
    %ignore = arith.constant -100 : i64
    %scale64 = arith.constant 0.84089641525371461 : f64
    %true = arith.constant true
    %base = arith.constant 1.000000e-01 : f32

    // embedding
    %e3 = tensor.empty() : tensor<2x5x16xf32>
    %x = linalg.generic {indexing_maps = [#ids, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%tok : tensor<2x5xi64>) outs(%e3 : tensor<2x5x16xf32>) {
    ^bb0(%in: i64, %out: f32):
      %i = arith.index_cast %in : i64 to index
      %j = linalg.index 2 : index
      %a = arith.cmpi slt, %i, %c11 : index
      cf.assert %a, "index must be smaller than dim size"
      %b = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %b, "index must be larger or equal to 0"
      %v = tensor.extract %emb[%i, %j] : tensor<11x16xf32>
      linalg.yield %v : f32
    } -> tensor<2x5x16xf32>

    // RMSNorm
    %sq = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x5x16xf32>) outs(%e3 : tensor<2x5x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %p = math.powf %in, %two : f32
      linalg.yield %p : f32
    } -> tensor<2x5x16xf32>
    %e31 = tensor.empty() : tensor<2x5x1xf32>
    %f31 = linalg.fill ins(%zero : f32) outs(%e31 : tensor<2x5x1xf32>) -> tensor<2x5x1xf32>
    %sum = linalg.generic {indexing_maps = [#id3, #row3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%sq : tensor<2x5x16xf32>) outs(%f31 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %p = arith.addf %in, %out : f32
      linalg.yield %p : f32
    } -> tensor<2x5x1xf32>
    %rms = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sum : tensor<2x5x1xf32>) outs(%e31 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %m = arith.divf %in, %n : f32
      %t = arith.truncf %eps : f64 to f32
      %s = arith.addf %m, %t : f32
      %r = math.rsqrt %s : f32
      linalg.yield %r : f32
    } -> tensor<2x5x1xf32>
    %h = linalg.generic {indexing_maps = [#id3, #row3, #c3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %rms, %norm : tensor<2x5x16xf32>, tensor<2x5x1xf32>, tensor<16xf32>) outs(%e3 : tensor<2x5x16xf32>) {
    ^bb0(%in: f32, %r: f32, %w: f32, %out: f32):
      %a = arith.mulf %in, %r : f32
      %b = arith.mulf %a, %w : f32
      linalg.yield %b : f32
    } -> tensor<2x5x16xf32>
    %flat = tensor.collapse_shape %h [[0, 1], [2]] : tensor<2x5x16xf32> into tensor<10x16xf32>

    // projections: Linear stores [out, in]
    %e88 = tensor.empty() : tensor<16x16xf32>
    %e84 = tensor.empty() : tensor<16x8xf32>
    %wqt = linalg.transpose ins(%wq : tensor<16x16xf32>) outs(%e88 : tensor<16x16xf32>) permutation = [1, 0]
    %wkt = linalg.transpose ins(%wk : tensor<8x16xf32>) outs(%e84 : tensor<16x8xf32>) permutation = [1, 0]
    %wvt = linalg.generic {indexing_maps = [#id2, #t2], iterator_types = ["parallel", "parallel"]} ins(%wv : tensor<8x16xf32>) outs(%e84 : tensor<16x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<16x8xf32>
    %e108 = tensor.empty() : tensor<10x16xf32>
    %f108 = linalg.fill ins(%zero : f32) outs(%e108 : tensor<10x16xf32>) -> tensor<10x16xf32>
    %e104 = tensor.empty() : tensor<10x8xf32>
    %f104 = linalg.fill ins(%zero : f32) outs(%e104 : tensor<10x8xf32>) -> tensor<10x8xf32>
    %q0 = linalg.matmul ins(%flat, %wqt : tensor<10x16xf32>, tensor<16x16xf32>) outs(%f108 : tensor<10x16xf32>) -> tensor<10x16xf32>
    %k0 = linalg.matmul ins(%flat, %wkt : tensor<10x16xf32>, tensor<16x8xf32>) outs(%f104 : tensor<10x8xf32>) -> tensor<10x8xf32>
    %v0 = linalg.matmul ins(%flat, %wvt : tensor<10x16xf32>, tensor<16x8xf32>) outs(%f104 : tensor<10x8xf32>) -> tensor<10x8xf32>
    %q1 = tensor.expand_shape %q0 [[0, 1], [2, 3]] output_shape [2, 5, 4, 4] : tensor<10x16xf32> into tensor<2x5x4x4xf32>
    %k1 = tensor.expand_shape %k0 [[0, 1], [2, 3]] output_shape [2, 5, 2, 4] : tensor<10x8xf32> into tensor<2x5x2x4xf32>
    %v1 = tensor.expand_shape %v0 [[0, 1], [2, 3]] output_shape [2, 5, 2, 4] : tensor<10x8xf32> into tensor<2x5x2x4xf32>
    %eq = tensor.empty() : tensor<2x4x5x4xf32>
    %ek = tensor.empty() : tensor<2x2x5x4xf32>
    %q = linalg.generic {indexing_maps = [#id4, #swap], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q1 : tensor<2x5x4x4xf32>) outs(%eq : tensor<2x4x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x5x4xf32>
    %k = linalg.generic {indexing_maps = [#id4, #swap], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k1 : tensor<2x5x2x4xf32>) outs(%ek : tensor<2x2x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x5x4xf32>
    %v = linalg.generic {indexing_maps = [#id4, #swap], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v1 : tensor<2x5x2x4xf32>) outs(%ek : tensor<2x2x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x5x4xf32>

    // rotary tables and their use
    %et = tensor.empty() : tensor<5x4xf32>
    %angle = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%et : tensor<5x4xf32>) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %ii = arith.index_cast %i : index to i64
      %f = arith.sitofp %ii : i64 to f32
      %g = arith.mulf %f, %base : f32
      linalg.yield %g : f32
    } -> tensor<5x4xf32>
    %cos = math.cos %angle : tensor<5x4xf32>
    %sin = math.sin %angle : tensor<5x4xf32>
    %qa = tensor.extract_slice %q[0, 0, 0, 0] [2, 4, 5, 2] [1, 1, 1, 1] : tensor<2x4x5x4xf32> to tensor<2x4x5x2xf32>
    %qb = tensor.extract_slice %q[0, 0, 0, 2] [2, 4, 5, 2] [1, 1, 1, 1] : tensor<2x4x5x4xf32> to tensor<2x4x5x2xf32>
    %eh = tensor.empty() : tensor<2x4x5x2xf32>
    %qn = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qb : tensor<2x4x5x2xf32>) outs(%eh : tensor<2x4x5x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %m = arith.negf %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4x5x2xf32>
    %qr = tensor.concat dim(3) %qn, %qa : (tensor<2x4x5x2xf32>, tensor<2x4x5x2xf32>) -> tensor<2x4x5x4xf32>
    %qrot = linalg.generic {indexing_maps = [#id4, #id4, #rope, #rope, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q, %qr, %cos, %sin : tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) outs(%eq : tensor<2x4x5x4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %out: f32):
      %p = arith.mulf %a, %c : f32
      %r = arith.mulf %b, %s : f32
      %t = arith.addf %p, %r : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x4xf32>

    // grouped heads: K and V repeated
    %eg = tensor.empty() : tensor<2x2x2x5x4xf32>
    %kx = tensor.expand_shape %k [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, 5, 4] : tensor<2x2x5x4xf32> into tensor<2x2x1x5x4xf32>
    %kb = linalg.generic {indexing_maps = [#group, #id5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%kx : tensor<2x2x1x5x4xf32>) outs(%eg : tensor<2x2x2x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x5x4xf32>
    %kk = tensor.collapse_shape %kb [[0], [1, 2], [3], [4]] : tensor<2x2x2x5x4xf32> into tensor<2x4x5x4xf32>
    %vx = tensor.expand_shape %v [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, 5, 4] : tensor<2x2x5x4xf32> into tensor<2x2x1x5x4xf32>
    %vb = linalg.generic {indexing_maps = [#group, #id5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%vx : tensor<2x2x1x5x4xf32>) outs(%eg : tensor<2x2x2x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x5x4xf32>
    %vv = tensor.collapse_shape %vb [[0], [1, 2], [3], [4]] : tensor<2x2x2x5x4xf32> into tensor<2x4x5x4xf32>

    // scores: scale on q and on k, additive causal mask, _safe_softmax
    %ekt = tensor.empty() : tensor<2x4x4x5xf32>
    %kt = linalg.generic {indexing_maps = [#id4, #last], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kk : tensor<2x4x5x4xf32>) outs(%ekt : tensor<2x4x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x4x5xf32>
    %qs = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qrot : tensor<2x4x5x4xf32>) outs(%eq : tensor<2x4x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.truncf %scale64 : f64 to f32
      %p = arith.mulf %in, %s : f32
      linalg.yield %p : f32
    } -> tensor<2x4x5x4xf32>
    %ks = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kt : tensor<2x4x4x5xf32>) outs(%ekt : tensor<2x4x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.truncf %scale64 : f64 to f32
      %p = arith.mulf %in, %s : f32
      linalg.yield %p : f32
    } -> tensor<2x4x4x5xf32>
    %qc = tensor.collapse_shape %qs [[0, 1], [2], [3]] : tensor<2x4x5x4xf32> into tensor<8x5x4xf32>
    %kc = tensor.collapse_shape %ks [[0, 1], [2], [3]] : tensor<2x4x4x5xf32> into tensor<8x4x5xf32>
    %vc = tensor.collapse_shape %vv [[0, 1], [2], [3]] : tensor<2x4x5x4xf32> into tensor<8x5x4xf32>
    %es = tensor.empty() : tensor<8x5x5xf32>
    %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<8x5x5xf32>) -> tensor<8x5x5xf32>
    %s0 = linalg.batch_matmul ins(%qc, %kc : tensor<8x5x4xf32>, tensor<8x4x5xf32>) outs(%fs : tensor<8x5x5xf32>) -> tensor<8x5x5xf32>
    %s1 = tensor.expand_shape %s0 [[0, 1], [2], [3]] output_shape [2, 4, 5, 5] : tensor<8x5x5xf32> into tensor<2x4x5x5xf32>
    %em = tensor.empty() : tensor<5x5xf32>
    %bias = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%em : tensor<5x5xf32>) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.cmpi sge, %i, %j : index
      %m = arith.select %c, %zero, %inf : f32
      linalg.yield %m : f32
    } -> tensor<5x5xf32>
    %e4 = tensor.empty() : tensor<2x4x5x5xf32>
    %s = linalg.generic {indexing_maps = [#id4, #mask, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s1, %bias : tensor<2x4x5x5xf32>, tensor<5x5xf32>) outs(%e4 : tensor<2x4x5x5xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %t = arith.addf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x5xf32>
    %e4r = tensor.empty() : tensor<2x4x5x1xf32>
    %ei4 = tensor.empty() : tensor<2x4x5x1xi64>
    %lo = linalg.fill ins(%inf : f32) outs(%e4r : tensor<2x4x5x1xf32>) -> tensor<2x4x5x1xf32>
    %li = linalg.fill ins(%c0_i64 : i64) outs(%ei4 : tensor<2x4x5x1xi64>) -> tensor<2x4x5x1xi64>
    %max:2 = linalg.generic {indexing_maps = [#id4, #row4, #row4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%s : tensor<2x4x5x5xf32>) outs(%lo, %li : tensor<2x4x5x1xf32>, tensor<2x4x5x1xi64>) {
    ^bb0(%in: f32, %out: f32, %at: i64):
      %i = linalg.index 3 : index
      %ii = arith.index_cast %i : index to i64
      %m = arith.maximumf %in, %out : f32
      %c = arith.cmpf ogt, %in, %out : f32
      %w = arith.select %c, %ii, %at : i64
      linalg.yield %m, %w : f32, i64
    } -> (tensor<2x4x5x1xf32>, tensor<2x4x5x1xi64>)
    %sub = linalg.generic {indexing_maps = [#id4, #row4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %max#0 : tensor<2x4x5x5xf32>, tensor<2x4x5x1xf32>) outs(%e4 : tensor<2x4x5x5xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x5xf32>
    %exp = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sub : tensor<2x4x5x5xf32>) outs(%e4 : tensor<2x4x5x5xf32>) {
    ^bb0(%a: f32, %out: f32):
      %t = math.exp %a : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x5xf32>
    %f4r = linalg.fill ins(%zero : f32) outs(%e4r : tensor<2x4x5x1xf32>) -> tensor<2x4x5x1xf32>
    %tot = linalg.generic {indexing_maps = [#id4, #row4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%exp : tensor<2x4x5x5xf32>) outs(%f4r : tensor<2x4x5x1xf32>) {
    ^bb0(%a: f32, %out: f32):
      %t = arith.addf %a, %out : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x1xf32>
    %p0 = linalg.generic {indexing_maps = [#id4, #row4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%exp, %tot : tensor<2x4x5x5xf32>, tensor<2x4x5x1xf32>) outs(%e4 : tensor<2x4x5x5xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %t = arith.divf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x5xf32>
    %eb = tensor.empty() : tensor<2x4x5x5xi1>
    %isinf = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x4x5x5xf32>) outs(%eb : tensor<2x4x5x5xi1>) {
    ^bb0(%a: f32, %out: i1):
      %t = arith.cmpf oeq, %a, %inf : f32
      linalg.yield %t : i1
    } -> tensor<2x4x5x5xi1>
    %ebr = tensor.empty() : tensor<2x4x5x1xi1>
    %ftrue = linalg.fill ins(%true : i1) outs(%ebr : tensor<2x4x5x1xi1>) -> tensor<2x4x5x1xi1>
    %all = linalg.generic {indexing_maps = [#id4, #row4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%isinf : tensor<2x4x5x5xi1>) outs(%ftrue : tensor<2x4x5x1xi1>) {
    ^bb0(%a: i1, %out: i1):
      %t = arith.andi %a, %out : i1
      linalg.yield %t : i1
    } -> tensor<2x4x5x1xi1>
    %p = linalg.generic {indexing_maps = [#row4, #id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%all, %p0 : tensor<2x4x5x1xi1>, tensor<2x4x5x5xf32>) outs(%e4 : tensor<2x4x5x5xf32>) {
    ^bb0(%a: i1, %b: f32, %out: f32):
      %t = arith.select %a, %zero, %b : f32
      linalg.yield %t : f32
    } -> tensor<2x4x5x5xf32>
    %pc = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x4x5x5xf32> into tensor<8x5x5xf32>
    %eo = tensor.empty() : tensor<8x5x4xf32>
    %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x5x4xf32>) -> tensor<8x5x4xf32>
    %o0 = linalg.batch_matmul ins(%pc, %vc : tensor<8x5x5xf32>, tensor<8x5x4xf32>) outs(%fo : tensor<8x5x4xf32>) -> tensor<8x5x4xf32>
    %o1 = tensor.expand_shape %o0 [[0, 1], [2], [3]] output_shape [2, 4, 5, 4] : tensor<8x5x4xf32> into tensor<2x4x5x4xf32>
    %eo4 = tensor.empty() : tensor<2x5x4x4xf32>
    %o2 = linalg.generic {indexing_maps = [#id4, #swap], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o1 : tensor<2x4x5x4xf32>) outs(%eo4 : tensor<2x5x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x5x4x4xf32>
    %o3 = tensor.collapse_shape %o2 [[0, 1], [2, 3]] : tensor<2x5x4x4xf32> into tensor<10x16xf32>
    %wot = linalg.transpose ins(%wo : tensor<16x16xf32>) outs(%e88 : tensor<16x16xf32>) permutation = [1, 0]
    %o4 = linalg.matmul ins(%o3, %wot : tensor<10x16xf32>, tensor<16x16xf32>) outs(%f108 : tensor<10x16xf32>) -> tensor<10x16xf32>
    %o = tensor.expand_shape %o4 [[0, 1], [2]] output_shape [2, 5, 16] : tensor<10x16xf32> into tensor<2x5x16xf32>
    %y = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %o : tensor<2x5x16xf32>, tensor<2x5x16xf32>) outs(%e3 : tensor<2x5x16xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %t = arith.addf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<2x5x16xf32>

    // silu(gate) * up, down
    %yf = tensor.collapse_shape %y [[0, 1], [2]] : tensor<2x5x16xf32> into tensor<10x16xf32>
    %e812 = tensor.empty() : tensor<16x12xf32>
    %gt = linalg.transpose ins(%gate : tensor<12x16xf32>) outs(%e812 : tensor<16x12xf32>) permutation = [1, 0]
    %ut = linalg.transpose ins(%up : tensor<12x16xf32>) outs(%e812 : tensor<16x12xf32>) permutation = [1, 0]
    %e128 = tensor.empty() : tensor<12x16xf32>
    %dt = linalg.transpose ins(%down : tensor<16x12xf32>) outs(%e128 : tensor<12x16xf32>) permutation = [1, 0]
    %e1012 = tensor.empty() : tensor<10x12xf32>
    %f1012 = linalg.fill ins(%zero : f32) outs(%e1012 : tensor<10x12xf32>) -> tensor<10x12xf32>
    %g = linalg.matmul ins(%yf, %gt : tensor<10x16xf32>, tensor<16x12xf32>) outs(%f1012 : tensor<10x12xf32>) -> tensor<10x12xf32>
    %u = linalg.matmul ins(%yf, %ut : tensor<10x16xf32>, tensor<16x12xf32>) outs(%f1012 : tensor<10x12xf32>) -> tensor<10x12xf32>
    %sig = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<10x12xf32>) outs(%e1012 : tensor<10x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %m = arith.negf %in : f32
      %e = math.exp %m : f32
      %a = arith.addf %e, %one : f32
      %d = arith.divf %one, %a : f32
      linalg.yield %d : f32
    } -> tensor<10x12xf32>
    %silu = arith.mulf %sig, %g : tensor<10x12xf32>
    %gu = arith.mulf %silu, %u : tensor<10x12xf32>
    %d0 = linalg.matmul ins(%gu, %dt : tensor<10x12xf32>, tensor<12x16xf32>) outs(%f108 : tensor<10x16xf32>) -> tensor<10x16xf32>
    %d = arith.addf %yf, %d0 : tensor<10x16xf32>

    // head, log_softmax, nll_loss(ignore_index = -100)
    %e811 = tensor.empty() : tensor<16x11xf32>
    %et2 = linalg.transpose ins(%emb : tensor<11x16xf32>) outs(%e811 : tensor<16x11xf32>) permutation = [1, 0]
    %e1011 = tensor.empty() : tensor<10x11xf32>
    %f1011 = linalg.fill ins(%zero : f32) outs(%e1011 : tensor<10x11xf32>) -> tensor<10x11xf32>
    %lg = linalg.matmul ins(%d, %et2 : tensor<10x16xf32>, tensor<16x11xf32>) outs(%f1011 : tensor<10x11xf32>) -> tensor<10x11xf32>
    %e10 = tensor.empty() : tensor<10x1xf32>
    %lomax = linalg.fill ins(%inf : f32) outs(%e10 : tensor<10x1xf32>) -> tensor<10x1xf32>
    %lmax = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]} ins(%lg : tensor<10x11xf32>) outs(%lomax : tensor<10x1xf32>) {
    ^bb0(%a: f32, %out: f32):
      %t = arith.maximumf %a, %out : f32
      linalg.yield %t : f32
    } -> tensor<10x1xf32>
    %lsub = linalg.generic {indexing_maps = [#id2, #r2, #id2], iterator_types = ["parallel", "parallel"]} ins(%lg, %lmax : tensor<10x11xf32>, tensor<10x1xf32>) outs(%e1011 : tensor<10x11xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<10x11xf32>
    %lexp = math.exp %lsub : tensor<10x11xf32>
    %lzero = linalg.fill ins(%zero : f32) outs(%e10 : tensor<10x1xf32>) -> tensor<10x1xf32>
    %lsum = linalg.generic {indexing_maps = [#id2, #r2], iterator_types = ["parallel", "reduction"]} ins(%lexp : tensor<10x11xf32>) outs(%lzero : tensor<10x1xf32>) {
    ^bb0(%a: f32, %out: f32):
      %t = arith.addf %a, %out : f32
      linalg.yield %t : f32
    } -> tensor<10x1xf32>
    %llog = math.log %lsum : tensor<10x1xf32>
    %logp = linalg.generic {indexing_maps = [#id2, #r2, #id2], iterator_types = ["parallel", "parallel"]} ins(%lsub, %llog : tensor<10x11xf32>, tensor<10x1xf32>) outs(%e1011 : tensor<10x11xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<10x11xf32>
    %tf = tensor.collapse_shape %tgt [[0, 1]] : tensor<2x5xi64> into tensor<10xi64>
    %en = tensor.empty() : tensor<10xf32>
    %nll = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%tf : tensor<10xi64>) outs(%en : tensor<10xf32>) {
    ^bb0(%t: i64, %out: f32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %t : i64 to index
      %a = tensor.extract %logp[%i, %j] : tensor<10x11xf32>
      %m = arith.negf %a : f32
      %c = arith.cmpi eq, %t, %ignore : i64
      %w = arith.select %c, %zero, %m : f32
      linalg.yield %w : f32
    } -> tensor<10xf32>
    %e0 = tensor.empty() : tensor<f32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
    %total = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]} ins(%nll : tensor<10xf32>) outs(%f0 : tensor<f32>) {
    ^bb0(%a: f32, %out: f32):
      %t = arith.addf %a, %out : f32
      linalg.yield %t : f32
    } -> tensor<f32>
    %ei = tensor.empty() : tensor<i64>
    %fi = linalg.fill ins(%c0_i64 : i64) outs(%ei : tensor<i64>) -> tensor<i64>
    %count = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]} ins(%tf : tensor<10xi64>) outs(%fi : tensor<i64>) {
    ^bb0(%t: i64, %out: i64):
      %c = arith.cmpi ne, %t, %ignore : i64
      %w = arith.extui %c : i1 to i64
      %a = arith.addi %out, %w : i64
      linalg.yield %a : i64
    } -> tensor<i64>
    %countf = arith.sitofp %count : tensor<i64> to tensor<f32>
    %loss = arith.divf %total, %countf : tensor<f32>
    return %loss : tensor<f32>
  }
}
