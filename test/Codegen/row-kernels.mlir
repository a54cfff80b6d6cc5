// Row kernels: the oracle's values for every split, the same bits on AVX2 and AVX-512.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r   = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#v   = affine_map<(d0) -> (d0)>

// Nine generics of a layer norm in one pass over each row; 203 = 3 x 64 + 8 + 2 + 1.
// CHECK: @ln_fwd: phases 37/1, shared 0, worker 0, {{.*}} ok
func.func private @ln_fwd(%x: tensor<37x203xf32>, %g: tensor<203xf32>, %b: tensor<203xf32>,
    %y: tensor<37x203xf32> {fsdp.out = 0},
    %mo: tensor<37xf32> {fsdp.out = 1},
    %ro: tensor<37xf32> {fsdp.out = 2})
    -> (tensor<37x203xf32>, tensor<37xf32>, tensor<37xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 203.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e1 = tensor.empty() : tensor<37xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<37xf32>) -> tensor<37xf32>
  %s = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<37x203xf32>) outs(%f1 : tensor<37xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %a, %o : f32
      linalg.yield %0 : f32 } -> tensor<37xf32>
  %m = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%s : tensor<37xf32>) outs(%mo : tensor<37xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.divf %a, %n : f32
      linalg.yield %0 : f32 } -> tensor<37xf32>
  %e2 = tensor.empty() : tensor<37x203xf32>
  %c = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<37x203xf32>, tensor<37xf32>) outs(%e2 : tensor<37x203xf32>) {
    ^bb0(%a: f32, %mm: f32, %o: f32):
      %0 = arith.subf %a, %mm : f32
      linalg.yield %0 : f32 } -> tensor<37x203xf32>
  %e3 = tensor.empty() : tensor<37xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<37xf32>) -> tensor<37xf32>
  %q = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%c : tensor<37x203xf32>) outs(%f3 : tensor<37xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.mulf %a, %a : f32
      %1 = arith.addf %0, %o : f32
      linalg.yield %1 : f32 } -> tensor<37xf32>
  %rs = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%q : tensor<37xf32>) outs(%ro : tensor<37xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.divf %a, %n : f32
      %1 = arith.addf %0, %eps : f32
      %2 = math.rsqrt %1 : f32
      linalg.yield %2 : f32 } -> tensor<37xf32>
  %out = linalg.generic {indexing_maps = [#r, #row, #col, #col, #r], iterator_types = ["parallel", "parallel"]}
      ins(%c, %rs, %g, %b : tensor<37x203xf32>, tensor<37xf32>, tensor<203xf32>, tensor<203xf32>) outs(%y : tensor<37x203xf32>) {
    ^bb0(%a: f32, %rr: f32, %gg: f32, %bb: f32, %o: f32):
      %0 = arith.mulf %a, %rr : f32
      %1 = arith.mulf %0, %gg : f32
      %2 = arith.addf %1, %bb : f32
      linalg.yield %2 : f32 } -> tensor<37x203xf32>
  return %out, %m, %rs : tensor<37x203xf32>, tensor<37xf32>, tensor<37xf32>
}

// Two reductions in one pass.
// CHECK: @ln_bwd_dx: phases 37/1, shared 0, worker 0, {{.*}} ok
func.func private @ln_bwd_dx(%dy: tensor<37x203xf32>, %x: tensor<37x203xf32>, %g: tensor<203xf32>,
    %m: tensor<37xf32>, %rs: tensor<37xf32>,
    %dx: tensor<37x203xf32> {fsdp.out = 0})
    -> tensor<37x203xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %inv = arith.constant 0.0049261 : f32
  %e1 = tensor.empty() : tensor<37xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<37xf32>) -> tensor<37xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e1 : tensor<37xf32>) -> tensor<37xf32>
  %s:2 = linalg.generic {indexing_maps = [#r, #r, #col, #row, #row, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%dy, %x, %g, %m, %rs : tensor<37x203xf32>, tensor<37x203xf32>, tensor<203xf32>, tensor<37xf32>, tensor<37xf32>)
      outs(%f1, %f2 : tensor<37xf32>, tensor<37xf32>) {
    ^bb0(%d: f32, %a: f32, %gg: f32, %mm: f32, %rr: f32, %o1: f32, %o2: f32):
      %0 = arith.mulf %d, %gg : f32
      %1 = arith.subf %a, %mm : f32
      %2 = arith.mulf %1, %rr : f32
      %3 = arith.mulf %0, %2 : f32
      %4 = arith.addf %0, %o1 : f32
      %5 = arith.addf %3, %o2 : f32
      linalg.yield %4, %5 : f32, f32 } -> (tensor<37xf32>, tensor<37xf32>)
  %out = linalg.generic {indexing_maps = [#r, #r, #col, #row, #row, #row, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %x, %g, %m, %rs, %s#0, %s#1 : tensor<37x203xf32>, tensor<37x203xf32>, tensor<203xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>)
      outs(%dx : tensor<37x203xf32>) {
    ^bb0(%d: f32, %a: f32, %gg: f32, %mm: f32, %rr: f32, %s1: f32, %s2: f32, %o: f32):
      %0 = arith.mulf %d, %gg : f32
      %1 = arith.subf %a, %mm : f32
      %2 = arith.mulf %1, %rr : f32
      %3 = arith.mulf %s1, %inv : f32
      %4 = arith.mulf %s2, %inv : f32
      %5 = arith.subf %0, %3 : f32
      %6 = arith.mulf %2, %4 : f32
      %7 = arith.subf %5, %6 : f32
      %8 = arith.mulf %7, %rr : f32
      linalg.yield %8 : f32 } -> tensor<37x203xf32>
  return %out : tensor<37x203xf32>
}

// A row shorter than the virtual lanes; the exponentials are kept in the worker's row buffer.
// CHECK: @softmax: phases 60/1, shared 0, worker 128, {{.*}} ok
func.func private @softmax(%x: tensor<60x30xf32>, %y: tensor<60x30xf32> {fsdp.out = 0})
    -> tensor<60x30xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %T = arith.constant 30 : index
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<60xf32>
  %em = tensor.empty() : tensor<60x30xf32>
  %fm = linalg.fill ins(%ninf : f32) outs(%e : tensor<60xf32>) -> tensor<60xf32>
  %fs = linalg.fill ins(%z : f32) outs(%e : tensor<60xf32>) -> tensor<60xf32>
  %msk = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<60x30xf32>) outs(%em : tensor<60x30xf32>) {
    ^bb0(%a: f32, %o: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %q = arith.remui %i, %T : index
      %j32 = arith.index_cast %j : index to i32
      %q32 = arith.index_cast %q : index to i32
      %p = arith.cmpi ule, %j32, %q32 : i32
      %sc = arith.mulf %a, %scale : f32
      %0 = arith.select %p, %sc, %ninf : f32
      linalg.yield %0 : f32 } -> tensor<60x30xf32>
  %mx = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%msk : tensor<60x30xf32>) outs(%fm : tensor<60xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.maximumf %a, %o : f32
      linalg.yield %0 : f32 } -> tensor<60xf32>
  %ex = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%msk, %mx : tensor<60x30xf32>, tensor<60xf32>) outs(%y : tensor<60x30xf32>) {
    ^bb0(%a: f32, %mm: f32, %o: f32):
      %0 = arith.subf %a, %mm : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32 } -> tensor<60x30xf32>
  %sm = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<60x30xf32>) outs(%fs : tensor<60xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %a, %o : f32
      linalg.yield %0 : f32 } -> tensor<60xf32>
  %out = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sm : tensor<60x30xf32>, tensor<60xf32>) outs(%y : tensor<60x30xf32>) {
    ^bb0(%a: f32, %ss: f32, %o: f32):
      %0 = arith.divf %a, %ss : f32
      linalg.yield %0 : f32 } -> tensor<60x30xf32>
  return %out : tensor<60x30xf32>
}

// A gather of one element per row; rows with any alignment.
// CHECK: @xent: phases 19/1, shared 0, worker 0, {{.*}} ok
func.func private @xent(%x: tensor<19x517xf32>, %t: tensor<19xi32> {fsdp.limit = 517},
    %dx: tensor<19x517xf32> {fsdp.out = 0}, %loss: tensor<19xf32> {fsdp.out = 1})
    -> (tensor<19x517xf32>, tensor<19xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %invn = arith.constant 0.0526315 : f32
  %e = tensor.empty() : tensor<19xf32>
  %fm = linalg.fill ins(%ninf : f32) outs(%e : tensor<19xf32>) -> tensor<19xf32>
  %fs = linalg.fill ins(%z : f32) outs(%e : tensor<19xf32>) -> tensor<19xf32>
  %mx = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<19x517xf32>) outs(%fm : tensor<19xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.maximumf %a, %o : f32
      linalg.yield %0 : f32 } -> tensor<19xf32>
  %sm = linalg.generic {indexing_maps = [#r, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mx : tensor<19x517xf32>, tensor<19xf32>) outs(%fs : tensor<19xf32>) {
    ^bb0(%a: f32, %mm: f32, %o: f32):
      %0 = arith.subf %a, %mm : f32
      %1 = math.exp %0 : f32
      %2 = arith.addf %1, %o : f32
      linalg.yield %2 : f32 } -> tensor<19xf32>
  %lse = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%sm, %mx : tensor<19xf32>, tensor<19xf32>) outs(%e : tensor<19xf32>) {
    ^bb0(%a: f32, %mm: f32, %o: f32):
      %0 = math.log %a : f32
      %1 = arith.addf %0, %mm : f32
      linalg.yield %1 : f32 } -> tensor<19xf32>
  %l = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%lse, %t : tensor<19xf32>, tensor<19xi32>) outs(%loss : tensor<19xf32>) {
    ^bb0(%a: f32, %id: i32, %o: f32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %id : i32 to index
      %xt = tensor.extract %x[%i, %j] : tensor<19x517xf32>
      %0 = arith.subf %a, %xt : f32
      linalg.yield %0 : f32 } -> tensor<19xf32>
  %out = linalg.generic {indexing_maps = [#r, #row, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %lse, %t : tensor<19x517xf32>, tensor<19xf32>, tensor<19xi32>) outs(%dx : tensor<19x517xf32>) {
    ^bb0(%a: f32, %ls: f32, %id: i32, %o: f32):
      %j = linalg.index 1 : index
      %j32 = arith.index_cast %j : index to i32
      %0 = arith.subf %a, %ls : f32
      %1 = math.exp %0 : f32
      %2 = arith.mulf %1, %invn : f32
      %eq = arith.cmpi eq, %j32, %id : i32
      %3 = arith.subf %2, %invn : f32
      %4 = arith.select %eq, %3, %2 : f32
      linalg.yield %4 : f32 } -> tensor<19x517xf32>
  return %out, %l : tensor<19x517xf32>, tensor<19xf32>
}


#d3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#d2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#dc = affine_map<(d0, d1, d2) -> (d0, d2)>
