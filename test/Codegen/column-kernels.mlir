// Sums over rows in fixed blocks, and scatters by columns.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r   = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#v   = affine_map<(d0) -> (d0)>

// Two sums in one op: 8 blocks of rows, then the sum of the blocks in order.
// CHECK: @norm_weights: phases 8/1 77/64, shared {{[0-9]+}}, worker 0, {{.*}} ok
func.func private @norm_weights(%dy: tensor<259x77xf32>, %x: tensor<259x77xf32>, %m: tensor<259xf32>, %rs: tensor<259xf32>,
    %dg: tensor<77xf32> {fsdp.inout = 0}, %db: tensor<77xf32> {fsdp.out = 1}) -> (tensor<77xf32>, tensor<77xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<77xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<77xf32>) -> tensor<77xf32>
  %s:2 = linalg.generic {indexing_maps = [#r, #r, #row, #row, #col, #col], iterator_types = ["reduction", "parallel"]}
      ins(%dy, %x, %m, %rs : tensor<259x77xf32>, tensor<259x77xf32>, tensor<259xf32>, tensor<259xf32>)
      outs(%dg, %f : tensor<77xf32>, tensor<77xf32>) {
  ^bb0(%d: f32, %a: f32, %mm: f32, %rr: f32, %o1: f32, %o2: f32):
    %1 = arith.subf %a, %mm : f32
    %2 = arith.mulf %1, %rr : f32
    %3 = arith.mulf %d, %2 : f32
    %4 = arith.addf %o1, %3 : f32
    %5 = arith.addf %o2, %d : f32
    linalg.yield %4, %5 : f32, f32
  } -> (tensor<77xf32>, tensor<77xf32>)
  return %s#0, %s#1 : tensor<77xf32>, tensor<77xf32>
}

// Few rows give one phase. bf16 is summed in f32 and cast after the sum.
// CHECK: @bias_bf16: phases 130/64 130/64, shared {{[0-9]+}}, {{.*}} ok
func.func private @bias_bf16(%dy: tensor<9x130xbf16>, %db: tensor<130xbf16> {fsdp.out = 0}) -> tensor<130xbf16> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<130xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<130xf32>) -> tensor<130xf32>
  %s = linalg.generic {indexing_maps = [#r, #col], iterator_types = ["reduction", "parallel"]}
      ins(%dy : tensor<9x130xbf16>) outs(%f : tensor<130xf32>) {
  ^bb0(%d: bf16, %o: f32):
    %0 = arith.extf %d : bf16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<130xf32>
  %e2 = tensor.empty() : tensor<130xbf16>
  %c = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%s : tensor<130xf32>) outs(%e2 : tensor<130xbf16>) {
  ^bb0(%d: f32, %o: bf16):
    %0 = arith.truncf %d : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<130xbf16>
  return %c : tensor<130xbf16>
}

// A sum over the first and the third of four dimensions (keys of grouped heads).
// CHECK: @heads: phases 5/1, {{.*}} ok
func.func private @heads(%x: tensor<3x5x4x16xf32>, %y: tensor<5x16xf32> {fsdp.out = 0}) -> tensor<5x16xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<5x16xf32>) -> tensor<5x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (b, d)>],
      iterator_types = ["reduction", "parallel", "reduction", "parallel"]} ins(%x : tensor<3x5x4x16xf32>) outs(%f : tensor<5x16xf32>) {
  ^bb0(%d: f32, %o: f32):
    %1 = arith.addf %o, %d : f32
    linalg.yield %1 : f32
  } -> tensor<5x16xf32>
  return %s : tensor<5x16xf32>
}

// Reductions to a single number; max and min of integers.
// CHECK: @totals: phases 1/1, {{.*}} ok
func.func private @totals(%x: tensor<7x45xf32>, %n: tensor<7x45xi32> {fsdp.limit = 1000}, %y: tensor<f32> {fsdp.out = 0},
    %a: tensor<i32> {fsdp.out = 1}, %b: tensor<i32> {fsdp.out = 2}) -> (tensor<f32>, tensor<i32>, tensor<i32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %lo = arith.constant -5 : i32
  %hi = arith.constant 5000 : i32
  %e = tensor.empty() : tensor<f32>
  %ei = tensor.empty() : tensor<i32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %f1 = linalg.fill ins(%lo : i32) outs(%ei : tensor<i32>) -> tensor<i32>
  %f2 = linalg.fill ins(%hi : i32) outs(%ei : tensor<i32>) -> tensor<i32>
  %s:3 = linalg.generic {indexing_maps = [#r, #r, affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> ()>],
      iterator_types = ["reduction", "reduction"]} ins(%x, %n : tensor<7x45xf32>, tensor<7x45xi32>)
      outs(%f, %f1, %f2 : tensor<f32>, tensor<i32>, tensor<i32>) {
  ^bb0(%d: f32, %i: i32, %o: f32, %p: i32, %q: i32):
    %0 = math.fma %d, %d, %o : f32
    %1 = arith.maxsi %p, %i : i32
    %2 = arith.minsi %i, %q : i32
    linalg.yield %0, %1, %2 : f32, i32, i32
  } -> (tensor<f32>, tensor<i32>, tensor<i32>)
  return %s#0, %s#1, %s#2 : tensor<f32>, tensor<i32>, tensor<i32>
}

// Ids repeat; a kernel adds the tokens in order, column by column.
// CHECK: @scatter: phases 72/64, shared 0, {{.*}} ok
func.func private @scatter(%dy: tensor<4x31x72xf32>, %ids: tensor<4x31xi64> {fsdp.limit = 50}, %w: tensor<50x72xf32> {fsdp.inout = 0})
    -> tensor<50x72xf32> attributes {fsdp.kernel, fsdp.kind = "scatter"} {
  %0 = fsdp.scatter_add_rows %dy at %ids into %w (tensor<50x72xf32>) : tensor<4x31x72xf32>, tensor<4x31xi64> -> tensor<50x72xf32>
  return %0 : tensor<50x72xf32>
}

// A scatter of values that the kernel computes, onto zero.
// CHECK: @scatter_new: phases 3600/64 72/64, shared 0, {{.*}} ok
func.func private @scatter_new(%dy: tensor<33x72xf32>, %ids: tensor<33xi32> {fsdp.limit = 50}, %w: tensor<50x72xf32> {fsdp.out = 0})
    -> tensor<50x72xf32> attributes {fsdp.kernel, fsdp.kind = "scatter"} {
  %e = tensor.empty() : tensor<33x72xf32>
  %t = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel", "parallel"]} ins(%dy : tensor<33x72xf32>) outs(%e : tensor<33x72xf32>) {
  ^bb0(%d: f32, %o: f32):
    %0 = math.tanh %d : f32
    linalg.yield %0 : f32
  } -> tensor<33x72xf32>
  %0 = fsdp.scatter_add_rows %t at %ids : tensor<33x72xf32>, tensor<33xi32> -> tensor<50x72xf32>
  return %0 : tensor<50x72xf32>
}
