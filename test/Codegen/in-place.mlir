// The gradient of a norm is accumulated in place while a later result still reads the old value, so all reads precede the stores.
// RUN: fsdp-kernel-test %s | FileCheck %s
// RUN: fsdp-kernel-test %s --device=emulate --target=sm_80 2>&1 | FileCheck %s --check-prefix=GPU
// CHECK-COUNT-3: ok
// CHECK: @short: phases 700/64, {{.*}} ok
// One launch, without scratch and without messages.
// GPU: @norm_grad: launches 37x128+0, scratch 0, {{.*}} ok
// GPU-NEXT: @two_maps: launches 3x256+0, scratch 0, {{.*}} ok
// All rows read the first row: plain loops, with a copy of the row.
// GPU-NEXT: @shift: launches {{.*}} ok
// GPU-NEXT: @short: launches {{.*}} ok

#r   = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#v   = affine_map<(d0) -> (d0)>

func.func private @norm_grad(%a: tensor<37x203xf32>, %b: tensor<37x203xf32>, %x: tensor<37x203xf32> {fsdp.inout = 0},
    %y: tensor<37x203xf32> {fsdp.out = 1}) -> (tensor<37x203xf32>, tensor<37x203xf32>) attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<37x203xf32>
  %sum = linalg.generic {indexing_maps = [#r, #r, #r], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<37x203xf32>, tensor<37x203xf32>) outs(%e : tensor<37x203xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %0 = arith.addf %p, %q : f32
      linalg.yield %0 : f32 } -> tensor<37x203xf32>
  %e1 = tensor.empty() : tensor<37xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<37xf32>) -> tensor<37xf32>
  %t = linalg.generic {indexing_maps = [#r, #r, #row], iterator_types = ["parallel", "reduction"]}
      ins(%sum, %a : tensor<37x203xf32>, tensor<37x203xf32>) outs(%f1 : tensor<37xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %o, %0 : f32
      linalg.yield %1 : f32 } -> tensor<37xf32>
  %old = linalg.generic {indexing_maps = [#r, #r, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %t : tensor<37x203xf32>, tensor<37x203xf32>, tensor<37xf32>) outs(%e : tensor<37x203xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
      %0 = arith.mulf %q, %s : f32
      %1 = arith.addf %p, %0 : f32
      linalg.yield %1 : f32 } -> tensor<37x203xf32>
  return %sum, %old : tensor<37x203xf32>, tensor<37x203xf32>
}

func.func private @two_maps(%a: tensor<700xf32>, %x: tensor<700xf32> {fsdp.inout = 0}, %y: tensor<700xf32> {fsdp.out = 1})
    -> (tensor<700xf32>, tensor<700xf32>) attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<700xf32>
  %s = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%a : tensor<700xf32>) outs(%e : tensor<700xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %p, %p : f32
      linalg.yield %0 : f32 } -> tensor<700xf32>
  %m = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%s, %x : tensor<700xf32>, tensor<700xf32>) outs(%e : tensor<700xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %0 = arith.mulf %p, %q : f32
      linalg.yield %0 : f32 } -> tensor<700xf32>
  return %s, %m : tensor<700xf32>, tensor<700xf32>
}

func.func private @shift(%x: tensor<300x8xf32> {fsdp.inout = 0}) -> tensor<300x8xf32> attributes {fsdp.kernel} {
  %first = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<300x8xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<300x8xf32>
  %y = linalg.generic {indexing_maps = [#r, affine_map<(d0, d1) -> (d1)>, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %first : tensor<300x8xf32>, tensor<8xf32>) outs(%e : tensor<300x8xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %0 = arith.subf %p, %q : f32
      linalg.yield %0 : f32 } -> tensor<300x8xf32>
  return %y : tensor<300x8xf32>
}

// Short rows are processed many at a time. All are read before they are overwritten, so no copy is needed.
func.func private @short(%x: tensor<700x4xf32> {fsdp.inout = 0}) -> tensor<700x4xf32> attributes {fsdp.kernel} {
  %z = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<700xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<700xf32>) -> tensor<700xf32>
  %t = linalg.generic {indexing_maps = [#r, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<700x4xf32>) outs(%f1 : tensor<700xf32>) {
    ^bb0(%p: f32, %o: f32):
      %1 = arith.addf %o, %p : f32
      linalg.yield %1 : f32 } -> tensor<700xf32>
  %e = tensor.empty() : tensor<700x4xf32>
  %old = linalg.generic {indexing_maps = [#r, #row, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<700x4xf32>, tensor<700xf32>) outs(%e : tensor<700x4xf32>) {
    ^bb0(%p: f32, %s: f32, %o: f32):
      %0 = arith.mulf %p, %s : f32
      linalg.yield %0 : f32 } -> tensor<700x4xf32>
  return %old : tensor<700x4xf32>
}
