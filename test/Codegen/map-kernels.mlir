// Map kernels: one flat range, or rows where something is broadcast.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#r   = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#v   = affine_map<(d0) -> (d0)>

// A bias whose length is a multiple of the vector: the range stays flat.
// CHECK: @bias_gelu: phases 18944/64, shared 0, {{.*}} ok
func.func private @bias_gelu(%x: tensor<37x512xf32>, %b: tensor<512xf32>,
    %y: tensor<37x512xf32> {fsdp.out = 0}) -> tensor<37x512xf32> attributes {fsdp.kernel} {
  %c0 = arith.constant 0.044715 : f32
  %c1 = arith.constant 0.7978845608 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %out = linalg.generic {indexing_maps = [#r, #col, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<37x512xf32>, tensor<512xf32>) outs(%y : tensor<37x512xf32>) {
    ^bb0(%a: f32, %bb: f32, %o: f32):
      %u = arith.addf %a, %bb : f32
      %0 = arith.mulf %u, %u : f32
      %1 = arith.mulf %0, %u : f32
      %2 = arith.mulf %1, %c0 : f32
      %3 = arith.addf %2, %u : f32
      %4 = arith.mulf %3, %c1 : f32
      %5 = math.tanh %4 : f32
      %6 = arith.addf %5, %one : f32
      %7 = arith.mulf %u, %half : f32
      %8 = arith.mulf %7, %6 : f32
      linalg.yield %8 : f32 } -> tensor<37x512xf32>
  return %out : tensor<37x512xf32>
}

// A bias whose length is not a multiple of the vector: the kernel runs over rows.
// CHECK: @bias_gelu_odd: phases 37/1, shared 0, {{.*}} ok
func.func private @bias_gelu_odd(%x: tensor<37x515xf32>, %b: tensor<515xf32>,
    %y: tensor<37x515xf32> {fsdp.out = 0}) -> tensor<37x515xf32> attributes {fsdp.kernel} {
  %c0 = arith.constant 0.044715 : f32
  %c1 = arith.constant 0.7978845608 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %out = linalg.generic {indexing_maps = [#r, #col, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<37x515xf32>, tensor<515xf32>) outs(%y : tensor<37x515xf32>) {
    ^bb0(%a: f32, %bb: f32, %o: f32):
      %u = arith.addf %a, %bb : f32
      %0 = arith.mulf %u, %u : f32
      %1 = arith.mulf %0, %u : f32
      %2 = arith.mulf %1, %c0 : f32
      %3 = arith.addf %2, %u : f32
      %4 = arith.mulf %3, %c1 : f32
      %5 = math.tanh %4 : f32
      %6 = arith.addf %5, %one : f32
      %7 = arith.mulf %u, %half : f32
      %8 = arith.mulf %7, %6 : f32
      linalg.yield %8 : f32 } -> tensor<37x515xf32>
  return %out : tensor<37x515xf32>
}

// A map that writes over its operand.
// CHECK: @residual: phases 786/64, shared 0, {{.*}} ok
func.func private @residual(%a: tensor<786xf32>, %b: tensor<786xf32> {fsdp.inout = 0})
    -> tensor<786xf32> attributes {fsdp.kernel} {
  %out = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%a : tensor<786xf32>) outs(%b : tensor<786xf32>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %u, %o : f32
      linalg.yield %0 : f32 } -> tensor<786xf32>
  return %out : tensor<786xf32>
}

// Four results, three of them in place, scalars from a block; an odd length.
// CHECK: @adamw: phases 7001/64, shared 0, {{.*}} ok
func.func private @adamw(%g: tensor<7001xf32>, %h: tensor<8xf32> {fsdp.range = [0.1, 0.9]},
    %w: tensor<7001xf32> {fsdp.inout = 0}, %m: tensor<7001xf32> {fsdp.inout = 1},
    %v: tensor<7001xf32> {fsdp.range = [0.0, 1.0], fsdp.inout = 2}, %wb: tensor<7001xbf16> {fsdp.out = 3})
    -> (tensor<7001xf32>, tensor<7001xf32>, tensor<7001xf32>, tensor<7001xbf16>) attributes {fsdp.kernel} {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %i3 = arith.constant 3 : index
  %i4 = arith.constant 4 : index
  %i5 = arith.constant 5 : index
  %i6 = arith.constant 6 : index
  %i7 = arith.constant 7 : index
  %one = arith.constant 1.0 : f32
  %lr = tensor.extract %h[%i0] : tensor<8xf32>
  %b1 = tensor.extract %h[%i1] : tensor<8xf32>
  %b2 = tensor.extract %h[%i2] : tensor<8xf32>
  %eps = tensor.extract %h[%i3] : tensor<8xf32>
  %wd = tensor.extract %h[%i4] : tensor<8xf32>
  %c1 = tensor.extract %h[%i5] : tensor<8xf32>
  %c2 = tensor.extract %h[%i6] : tensor<8xf32>
  %gs = tensor.extract %h[%i7] : tensor<8xf32>
  %nb1 = arith.subf %one, %b1 : f32
  %nb2 = arith.subf %one, %b2 : f32
  %lrwd = arith.mulf %lr, %wd : f32
  %dec = arith.subf %one, %lrwd : f32
  %out:4 = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%g : tensor<7001xf32>)
      outs(%w, %m, %v, %wb : tensor<7001xf32>, tensor<7001xf32>, tensor<7001xf32>, tensor<7001xbf16>) {
    ^bb0(%gg: f32, %ww: f32, %mm: f32, %vv: f32, %o: bf16):
      %gr = arith.mulf %gg, %gs : f32
      %0 = arith.mulf %mm, %b1 : f32
      %1 = arith.mulf %gr, %nb1 : f32
      %m1 = arith.addf %0, %1 : f32
      %2 = arith.mulf %vv, %b2 : f32
      %3 = arith.mulf %gr, %gr : f32
      %4 = arith.mulf %3, %nb2 : f32
      %v1 = arith.addf %2, %4 : f32
      %mh = arith.mulf %m1, %c1 : f32
      %vh = arith.mulf %v1, %c2 : f32
      %sq = math.sqrt %vh : f32
      %den = arith.addf %sq, %eps : f32
      %upd = arith.divf %mh, %den : f32
      %wl = arith.mulf %ww, %dec : f32
      %ul = arith.mulf %upd, %lr : f32
      %w1 = arith.subf %wl, %ul : f32
      %wbf = arith.truncf %w1 : f32 to bf16
      linalg.yield %w1, %m1, %v1, %wbf : f32, f32, f32, bf16 }
      -> (tensor<7001xf32>, tensor<7001xf32>, tensor<7001xf32>, tensor<7001xbf16>)
  return %out#0, %out#1, %out#2, %out#3 : tensor<7001xf32>, tensor<7001xf32>, tensor<7001xf32>, tensor<7001xbf16>
}

// bf16 by integer rounding.
// CHECK: @cast_bf16: phases 7001/64, shared 0, {{.*}} ok
func.func private @cast_bf16(%x: tensor<7001xf32>, %y: tensor<7001xbf16> {fsdp.out = 0})
    -> tensor<7001xbf16> attributes {fsdp.kernel} {
  %out = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<7001xf32>) outs(%y : tensor<7001xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %0 = arith.truncf %a : f32 to bf16
      linalg.yield %0 : bf16 } -> tensor<7001xbf16>
  return %out : tensor<7001xbf16>
}

// Rows of a table.
// CHECK: @embed: phases 61/1, shared 0, {{.*}} ok
func.func private @embed(%ids: tensor<61xi32> {fsdp.limit = 100}, %tab: tensor<100x80xf32>, %pos: tensor<61x80xf32>,
    %y: tensor<61x80xf32> {fsdp.out = 0}) -> tensor<61x80xf32> attributes {fsdp.kernel} {
  %out = linalg.generic {indexing_maps = [#row, #r, #r], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %pos : tensor<61xi32>, tensor<61x80xf32>) outs(%y : tensor<61x80xf32>) {
    ^bb0(%id: i32, %p: f32, %o: f32):
      %i = arith.index_cast %id : i32 to index
      %j = linalg.index 1 : index
      %t = tensor.extract %tab[%i, %j] : tensor<100x80xf32>
      %0 = arith.addf %t, %p : f32
      linalg.yield %0 : f32 } -> tensor<61x80xf32>
  return %out : tensor<61x80xf32>
}
