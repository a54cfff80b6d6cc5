// The form of phase functions: bindings, shared scratch if any, begin, end, worker scratch.
// RUN: fsdp-opt %s --fsdp-lower-kernels=target-cpu=x86-64-v3 | FileCheck %s

// An in-place operand is one binding; scalars of a captured block stay loads.
// CHECK-LABEL: func.func @k_scale(
// CHECK-SAME: %{{.*}}: memref<16xf32>, %[[ACC:.*]]: memref<12xf32>{{.*}}, %{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<?xi8>)
// CHECK-SAME: fsdp.extent = {{[0-9]+}} : i64
// CHECK-SAME: fsdp.tile = {{[0-9]+}} : i64
// CHECK-NOT: memref.alloc
// CHECK: return
// DOC-BEFORE-BEGIN fsdp-lower-kernels
func.func private @k_scale(%block: tensor<16xf32>, %acc: tensor<12xf32> {fsdp.inout = 0}) -> tensor<12xf32>
    attributes {fsdp.kernel, fsdp.kind = "map"} {
  %c2 = arith.constant 2 : index
  %s = tensor.extract %block[%c2] : tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%acc : tensor<12xf32>) {
  ^bb0(%o: f32):
    %1 = arith.mulf %o, %s : f32
    linalg.yield %1 : f32
  } -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
// DOC-BEFORE-END

// Other functions are kept.
// CHECK-LABEL: func.func @other
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// A flat map over a large tensor prefetches the lines 1024 bytes ahead: two lines for 32 elements
// of f32. The small tensor is in a cache already.
// CHECK-LABEL: func.func @k_large_map(
// CHECK-SAME: %{{.*}}: memref<16xf32>, %[[X:.*]]: memref<2097152xf32>
// CHECK-COUNT-2: memref.prefetch %[[X]][{{.*}}], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: vector.load %[[X]]
// CHECK: return
func.func private @k_large_map(%block: tensor<16xf32>, %x: tensor<2097152xf32>, %y: tensor<2097152xbf16> {fsdp.out = 0})
    -> tensor<2097152xbf16> attributes {fsdp.kernel, fsdp.kind = "map"} {
  %c2 = arith.constant 2 : index
  %s = tensor.extract %block[%c2] : tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2097152xf32>) outs(%y : tensor<2097152xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %1 = arith.mulf %a, %s : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  } -> tensor<2097152xbf16>
  return %0 : tensor<2097152xbf16>
}

// CHECK-LABEL: func.func @k_small_map(
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func private @k_small_map(%x: tensor<4096xf32>, %y: tensor<4096xbf16> {fsdp.out = 0})
    -> tensor<4096xbf16> attributes {fsdp.kernel, fsdp.kind = "map"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4096xf32>) outs(%y : tensor<4096xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %1 = arith.truncf %a : f32 to bf16
    linalg.yield %1 : bf16
  } -> tensor<4096xbf16>
  return %0 : tensor<4096xbf16>
}
