// Structure of lowered contractions: one phase over panels of columns or rows, operands read through strides in any order.
// RUN: fsdp-opt %s --fsdp-lower-kernels=target-cpu=x86-64-v3 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-lower-kernels=target-cpu=znver4 | FileCheck %s --check-prefix=WIDE
// RUN: fsdp-opt %s --fsdp-lower-kernels=target-cpu=sapphirerapids | FileCheck %s --check-prefix=DISTANT

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// There are more rows than columns, so workers share panels of rows, 64 / 4 of them. The sums start from the values of the result.
// CHECK-LABEL: func.func @accumulate(
// CHECK-SAME: %{{.*}}: memref<64x20xf32>, %{{.*}}: memref<20x16xf32>, %{{.*}}: memref<64x16xf32>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<?xi8>)
// CHECK-SAME: fsdp.extent = 16 : i64, fsdp.tile = 1 : i64
// CHECK: llvm.intr.fma({{.*}}) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// WIDE-LABEL: func.func @accumulate(
// WIDE: llvm.intr.fma({{.*}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
func.func private @accumulate(%a: tensor<64x20xf32>, %b: tensor<20x16xf32>, %c: tensor<64x16xf32> {fsdp.inout = 0}) -> tensor<64x16xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<64x20xf32>, tensor<20x16xf32>)
      outs(%c : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}

// Products of bf16 in pairs where the CPU has such an instruction, else by widening.
// CHECK-LABEL: func.func @pairs(
// CHECK-NOT: dpbf16ps
// CHECK: llvm.intr.fma
// WIDE-LABEL: func.func @pairs(
// WIDE: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// WIDE-NOT: llvm.intr.fma
func.func private @pairs(%a: tensor<64x20xbf16>, %b: tensor<16x20xbf16>, %c: tensor<64x16xf32> {fsdp.out = 0}) -> tensor<64x16xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x16xf32>) -> tensor<64x16xf32>
  %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<64x20xbf16>, tensor<16x20xbf16>)
      outs(%init : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}

// An elementwise op after the contraction runs on tiles.
// CHECK-LABEL: func.func @bias(
// WIDE-LABEL: func.func @bias(
// CHECK: llvm.intr.fma
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK: llvm.intr.masked.store
func.func private @bias(%a: tensor<64x20xf32>, %b: tensor<20x16xf32>, %bias: tensor<16xf32>, %c: tensor<4x16x16xf32> {fsdp.out = 0})
    -> tensor<4x16x16xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x16xf32>) -> tensor<64x16xf32>
  %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<64x20xf32>, tensor<20x16xf32>)
      outs(%init : tensor<64x16xf32>) -> tensor<64x16xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%0, %bias : tensor<64x16xf32>, tensor<16xf32>) outs(%empty : tensor<64x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x16xf32>
  %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [4, 16, 16] : tensor<64x16xf32> into tensor<4x16x16xf32>
  return %2 : tensor<4x16x16xf32>
}

// Integers use the general lowering.
// CHECK-LABEL: func.func @integers(
// CHECK-NOT: llvm.intr
// CHECK: return
func.func private @integers(%a: tensor<4x20xi32>, %b: tensor<20x16xi32>, %c: tensor<4x16xi32> {fsdp.inout = 0}) -> tensor<4x16xi32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %0 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<4x20xi32>, tensor<20x16xi32>)
      outs(%c : tensor<4x16xi32>) -> tensor<4x16xi32>
  return %0 : tensor<4x16xi32>
}

// There are few rows, and the right side is not in a cache, so the loop of the micro-kernel
// prefetches the next panel. With many rows the time of reading the panel is negligible.
// WIDE-LABEL: func.func @few_rows(
// WIDE: iter_args
// WIDE: llvm.intr.prefetch"{{.*}}rw = 0
// WIDE: llvm.intr.fma
// WIDE-LABEL: func.func @many_rows(
// WIDE: iter_args
// WIDE-NOT: llvm.intr.prefetch
// WIDE: llvm.intr.fma
// If the shared cache is distant, the loop of the micro-kernel has parts. Each part prefetches lines
// of the result (rw = 1) and of the right side. Each iteration prefetches one line of the left side.
// Products of f32 use tile registers there: six products of slices for each of 2 x 2 tiles.
// DISTANT-LABEL: func.func @few_rows(
// DISTANT-COUNT-24: llvm.x86.tdpbf16ps
// DISTANT-NOT: llvm.x86.tdpbf16ps
// DISTANT-LABEL: func.func @many_rows(
// DISTANT: scf.for {{.*}} iter_args
// DISTANT: llvm.intr.prefetch"{{.*}}rw = 1
// DISTANT: llvm.intr.prefetch"{{.*}}rw = 0
// DISTANT: scf.for {{.*}} iter_args
// DISTANT-COUNT-1: llvm.intr.prefetch"{{.*}}rw = 0
// DISTANT-NOT: llvm.intr.prefetch
// DISTANT: llvm.intr.fma
func.func private @few_rows(%a: tensor<128x1024xf32>, %b: tensor<1024x1024xf32>, %c: tensor<128x1024xf32> {fsdp.out = 0})
    -> tensor<128x1024xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<128x1024xf32>, tensor<1024x1024xf32>)
      outs(%init : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  return %0 : tensor<128x1024xf32>
}
func.func private @many_rows(%a: tensor<4096x1024xf64>, %b: tensor<1024x1024xf64>, %c: tensor<4096x1024xf64> {fsdp.out = 0})
    -> tensor<4096x1024xf64> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<4096x1024xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<4096x1024xf64>) -> tensor<4096x1024xf64>
  %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<4096x1024xf64>, tensor<1024x1024xf64>)
      outs(%init : tensor<4096x1024xf64>) -> tensor<4096x1024xf64>
  return %0 : tensor<4096x1024xf64>
}
