// RUN: fsdp-opt %s -split-input-file --fsdp-apply-precision=param-dtype=bf16 --canonicalize --cse | FileCheck %s
// RUN: fsdp-opt %s -split-input-file --fsdp-apply-precision="param-dtype=bf16 output-dtype=bf16" --canonicalize --cse | FileCheck %s --check-prefix=NARROW
// RUN: fsdp-opt %s -split-input-file --fsdp-apply-precision=param-dtype=f16 --canonicalize --cse | FileCheck %s --check-prefix=HALF
// RUN: fsdp-opt %s -split-input-file --fsdp-apply-precision=param-dtype=f32 -o %t.same && fsdp-opt %s -split-input-file -o %t.old && cmp %t.same %t.old

// A norm, a product with its bias, logits and a loss. Statistics and values computed from
// them stay f32. The sum reads the product's f32 accumulators. Logits are an output.
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#m = affine_map<(d0, d1, d2) -> (d0, d2)>
#n = affine_map<(d0, d1, d2) -> (d1, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @model(
// CHECK-SAME: %[[TABLE:.*]]: tensor<64x8xbf16> {fsdp.init = {{.*}}, fsdp.master_dtype = f32, fsdp.param = "table"}
// CHECK-SAME: tensor<8x8xbf16> {{.*}}fsdp.frozen, {{.*}}fsdp.master_dtype = f32
func.func @model(%table: tensor<64x8xf32> {fsdp.param = "table", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                 %w: tensor<8x8xf32> {fsdp.param = "w", fsdp.frozen, fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                 %b: tensor<8xf32> {fsdp.param = "b", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
                 %ids: tensor<4xi64> {fsdp.batch = "tokens", fsdp.limit = 64 : i64},
                 %targets: tensor<4xi64> {fsdp.batch = "targets", fsdp.limit = 64 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %eight = arith.constant 8.0 : f32
  // CHECK: %[[X:.*]] = fsdp.gather_rows %[[TABLE]]{{.*}} -> tensor<4x8xbf16>
  %x = fsdp.gather_rows %table[%ids] : tensor<64x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[X]] : tensor<4x8xbf16>) outs({{.*}} : tensor<4xf32>)
  // CHECK: extf
  // CHECK-NEXT: addf
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%f1 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  // CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<4xf32>) outs({{.*}} : tensor<4xf32>)
  %mean = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%sum : tensor<4xf32>) outs(%e1 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.divf %in, %eight : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  // CHECK: %[[CENTRED:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[MEAN]] : tensor<4x8xbf16>, tensor<4xf32>) outs({{.*}} : tensor<4x8xbf16>)
  // CHECK: %[[WIDE:.*]] = arith.extf
  // CHECK: %[[D:.*]] = arith.subf %[[WIDE]], %{{.*}} : f32
  // CHECK: arith.truncf %[[D]] : f32 to bf16
  %centred = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %mean : tensor<4x8xf32>, tensor<4xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %mu: f32, %out: f32):
    %0 = arith.subf %in, %mu : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%[[CENTRED]], %{{.*}} : tensor<4x8xbf16>, tensor<8x8xbf16>) outs({{.*}} : tensor<4x8xf32>)
  %y = linalg.contract indexing_maps = [#m, #n, #mn] ins(%centred, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%f2 : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[H:.*]] = linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<4x8xf32>, tensor<8xbf16>) outs({{.*}} : tensor<4x8xbf16>)
  %h = linalg.generic {indexing_maps = [#all, #col, #all], iterator_types = ["parallel", "parallel"]} ins(%y, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %0 = arith.addf %in, %bias : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %e3 = tensor.empty() : tensor<4x64xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<4x64xf32>) -> tensor<4x64xf32>
  // CHECK: %[[LOGITS:.*]] = linalg.contract {{.*}} ins(%[[H]], %[[TABLE]] : tensor<4x8xbf16>, tensor<64x8xbf16>) outs({{.*}} : tensor<4x64xf32>)
  // CHECK: fsdp.cross_entropy %[[LOGITS]], {{.*}} : tensor<4x64xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  // NARROW: fsdp.cross_entropy {{.*}} : tensor<4x64xbf16>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %logits = linalg.contract indexing_maps = [#m, #n, #mn] ins(%h, %table : tensor<4x8xf32>, tensor<64x8xf32>) outs(%f3 : tensor<4x64xf32>) -> tensor<4x64xf32>
  %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<4x64xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  return %loss : tensor<f32>
}

// -----

// Attention. The lowest f32 as a mask becomes the lowest bf16 (f16), if it is selected in the body or added from a
// table, so that no row becomes infinite; the softmax has narrow operands and computes in f32.
#m = affine_map<(d0, d1, d2) -> (d0, d2)>
#n = affine_map<(d0, d1, d2) -> (d1, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @masks(
// HALF-LABEL: func.func @masks(
func.func @masks(%q: tensor<4x8xf32> {fsdp.param = "q", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                 %k: tensor<4x8xf32> {fsdp.param = "k", fsdp.init = #fsdp.init<normal, 0.0, 0.02>}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %mask = arith.constant dense<[[0.0, -3.4e+38, -3.4e+38, -3.4e+38], [0.0, 0.0, -3.4e+38, -3.4e+38], [0.0, 0.0, 0.0, -3.4e+38], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-DAG: %[[LOW:.*]] = arith.constant -3.38953139E+38 : f32
  // HALF-DAG: %[[LOW:.*]] = arith.constant -6.550400e+04 : f32
  // CHECK: linalg.contract
  // CHECK: truncf
  %s = linalg.contract indexing_maps = [#m, #n, #mn] ins(%q, %k : tensor<4x8xf32>, tensor<4x8xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x4xbf16>)
  // CHECK: arith.select %{{.*}}, %{{.*}}, %[[LOW]] : f32
  // HALF: arith.select %{{.*}}, %{{.*}}, %[[LOW]] : f32
  %chosen = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi ule, %j, %i : index
    %0 = arith.select %c, %in, %lowest : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  // CHECK: %[[P:.*]] = linalg.softmax {{.*}} -> tensor<4x4xbf16>
  %p = linalg.softmax dimension(1) ins(%chosen : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[ADDED:.*]] = linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<4x4xbf16>, tensor<4x4xf32>) outs({{.*}} : tensor<4x4xbf16>)
  // CHECK: %[[BOUND:.*]] = arith.maximumf %[[IN:.*]], %[[LOW]]
  // CHECK: arith.select %{{.*}}, %{{.*}}, %[[IN]] : f32
  // CHECK: addf
  %added = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%p, %mask : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %add: f32, %out: f32):
    %0 = arith.addf %in, %add : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  %p2 = linalg.softmax dimension(1) ins(%added : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %e0 = tensor.empty() : tensor<4x4xf32>
  // A factor that f16 cannot hold is not clamped, so the map stays f32. In bf16 it fits.
  // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x4xbf16>)
  // HALF: arith.mulf %{{.*}}, %{{.*}} : f32
  // HALF-NEXT: arith.addf %{{.*}}, %{{.*}} : f32
  // HALF-NEXT: linalg.yield %{{.*}} : f32
  %big = arith.constant 1.0e+06 : f32
  %scaled = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%p2, %s : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.mulf %in, %big : f32
    %1 = arith.addf %0, %other : f32
    linalg.yield %1 : f32
  } -> tensor<4x4xf32>
  %e4 = tensor.empty() : tensor<4x4xf32>
  %o = linalg.contract indexing_maps = [#m, #n, #mn] ins(%scaled, %scaled : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r0 = tensor.empty() : tensor<f32>
  %r1 = linalg.fill ins(%zero : f32) outs(%r0 : tensor<f32>) -> tensor<f32>
  // CHECK: linalg.generic {{.*}}"reduction", "reduction"]} ins({{.*}} : tensor<4x4xf32>) outs({{.*}} : tensor<f32>)
  // NARROW: linalg.generic {{.*}}"reduction", "reduction"]} ins({{.*}} : tensor<4x4xbf16>) outs({{.*}} : tensor<f32>)
  %loss = linalg.generic {indexing_maps = [#all, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%o : tensor<4x4xf32>) outs(%r1 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Products of tables stay f32. Tables and float batch arguments are rounded if a product with a parameter reads them.
// Concatenations and pads have the type of their operands. Inputs that only the loss reads (targets) do not change.
#m = affine_map<(d0, d1, d2) -> (d0, d2)>
#n = affine_map<(d0, d1, d2) -> (d1, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @tables(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32> {fsdp.batch = "x"}, %[[Y:[a-z0-9]+]]: tensor<6x12xf32>
func.func @tables(%w: tensor<8x8xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                  %old: tensor<4x8xbf16> {fsdp.param = "old", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                  %x: tensor<4x8xf32> {fsdp.batch = "x"}, %y: tensor<6x12xf32> {fsdp.batch = "y"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %cst = arith.constant dense<[[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]]> : tensor<1x8xf32>
  %e1 = tensor.empty() : tensor<1x1xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x1xf32>) -> tensor<1x1xf32>
  // CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>) outs({{.*}} : tensor<4x8xbf16>)
  // CHECK: linalg.contract {{.*}} : tensor<1x8xf32>, tensor<1x8xf32>)
  %angles = linalg.contract indexing_maps = [#m, #n, #mn] ins(%cst, %cst : tensor<1x8xf32>, tensor<1x8xf32>) outs(%f1 : tensor<1x1xf32>) -> tensor<1x1xf32>
  %angle = tensor.collapse_shape %angles [] : tensor<1x1xf32> into tensor<f32>
  %a = tensor.extract %angle[] : tensor<f32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: linalg.contract {{.*}} ins(%[[ROUNDED]], %{{.*}} : tensor<4x8xbf16>, tensor<8x8xbf16>)
  // CHECK: truncf
  %h = linalg.contract indexing_maps = [#m, #n, #mn] ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%f2 : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xbf16>, tensor<4x8xbf16>) outs({{.*}} : tensor<4x8xbf16>)
  %s = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%h, %old : tensor<4x8xf32>, tensor<4x8xbf16>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %o: bf16, %out: f32):
    %0 = arith.extf %o : bf16 to f32
    %1 = arith.mulf %0, %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  // CHECK: %[[J:.*]] = tensor.concat dim(0) %[[S]], %{{.*}} : (tensor<4x8xbf16>, tensor<2x8xbf16>) -> tensor<6x8xbf16>
  %e3 = tensor.empty() : tensor<2x8xf32>
  %f3 = linalg.fill ins(%a : f32) outs(%e3 : tensor<2x8xf32>) -> tensor<2x8xf32>
  %j = tensor.concat dim(0) %s, %f3 : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
  // CHECK: tensor.pad %[[J]]
  // CHECK: tensor.yield %{{.*}} : bf16
  %pad = tensor.pad %j low[0, 2] high[0, 2] {
  ^bb0(%i0: index, %i1: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<6x12xf32>
  %slice = tensor.extract_slice %s[0, 0] [1, 1] [1, 1] : tensor<4x8xf32> to tensor<1x1xf32>
  // CHECK: tensor.insert_slice %{{.*}} into %{{.*}} : tensor<1x1xf32> into tensor<6x12xf32>
  // NARROW: tensor.insert_slice %{{.*}} into %{{.*}} : tensor<1x1xbf16> into tensor<6x12xbf16>
  %ins = tensor.insert_slice %slice into %pad[0, 0] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<6x12xf32>
  %r0 = tensor.empty() : tensor<f32>
  %r1 = linalg.fill ins(%zero : f32) outs(%r0 : tensor<f32>) -> tensor<f32>
  // CHECK: linalg.generic {{.*}}"reduction", "reduction"]} ins({{.*}}, %[[Y]] : {{.*}}, tensor<6x12xf32>) outs({{.*}} : tensor<f32>)
  %loss = linalg.generic {indexing_maps = [#all, #all, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%ins, %y : tensor<6x12xf32>, tensor<6x12xf32>) outs(%r1 : tensor<f32>) {
  ^bb0(%in: f32, %t: f32, %out: f32):
    %0 = arith.subf %in, %t : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
