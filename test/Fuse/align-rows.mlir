// RUN: fsdp-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fsdp-align-rows))' | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fsdp-align-rows{bytes=2}))' | FileCheck %s --check-prefix=ANY
// RUN: fsdp-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fsdp-align-rows{copies=false}))' | FileCheck %s --check-prefix=MADE

// ANY-NOT: _slice

#id = affine_map<(d0, d1) -> (d0, d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A dispatch writes a factor with longer rows. All readers read a slice of the original length.

// CHECK-LABEL: func.func @made(
// CHECK:         %[[Z:.*]]:2 = fsdp.dispatch(%{{.*}}) inplace [-1, -1] {{.*}} -> (tensor<8x104xbf16>, tensor<8x99xbf16>)
// CHECK:           %[[V:.*]] = linalg.generic
// CHECK:           %[[E:.*]] = tensor.empty() : tensor<8x104xbf16>
// CHECK:           %[[P:.*]] = tensor.insert_slice %[[V]] into %[[E]][0, 0] [8, 99] [1, 1]
// CHECK:           fsdp.yield %[[P]], %[[V]]
// CHECK:         fsdp.dispatch(%[[Z]]#0, %{{.*}}) inplace [-1]
// CHECK:         ^bb0(%[[A:.*]]: tensor<8x104xbf16>,
// CHECK:           %[[S:.*]] = tensor.extract_slice %[[A]][0, 0] [8, 99] [1, 1]
// CHECK:           linalg.contract {{.*}} ins(%[[S]],
// CHECK:         fsdp.dispatch(%[[Z]]#0, %[[Z]]#1) inplace [1]
// CHECK:           %[[T:.*]] = tensor.extract_slice %{{.*}}[0, 0] [8, 99] [1, 1]
// CHECK:           linalg.generic {{.*}} ins(%[[T]]
func.func @made(%x: tensor<8x99xf32>, %w: tensor<99x64xbf16>) -> (tensor<8x64xf32>, tensor<8x99xbf16>) {
  %z:2 = fsdp.dispatch(%x) inplace [-1, -1] {kind = "map"} : (tensor<8x99xf32>) -> (tensor<8x99xbf16>, tensor<8x99xbf16>) {
  ^bb0(%a: tensor<8x99xf32>):
    %e = tensor.empty() : tensor<8x99xbf16>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x99xf32>) outs(%e : tensor<8x99xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %t = arith.truncf %in : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<8x99xbf16>
    fsdp.yield %v, %v : tensor<8x99xbf16>, tensor<8x99xbf16>
  }
  %y = fsdp.dispatch(%z#0, %w) inplace [-1] {kind = "contract"} : (tensor<8x99xbf16>, tensor<99x64xbf16>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x99xbf16>, %b: tensor<99x64xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x99xbf16>, tensor<99x64xbf16>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
    fsdp.yield %c : tensor<8x64xf32>
  }
  // A tensor that is written in place keeps the length of its rows.
  %s = fsdp.dispatch(%z#0, %z#1) inplace [1] {kind = "map"} : (tensor<8x99xbf16>, tensor<8x99xbf16>) -> tensor<8x99xbf16> {
  ^bb0(%a: tensor<8x99xbf16>, %b: tensor<8x99xbf16>):
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x99xbf16>) outs(%b : tensor<8x99xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %t = arith.addf %in, %out : bf16
      linalg.yield %t : bf16
    } -> tensor<8x99xbf16>
    fsdp.yield %v : tensor<8x99xbf16>
  }
  return %y, %s : tensor<8x64xf32>, tensor<8x99xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A factor that no dispatch writes is copied once for contractions that read it often. Other contractions read the original.

// MADE-NOT: kind = "copy"
// CHECK-LABEL: func.func @parameter(
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<64x99xbf16>
// CHECK:         %[[C:.*]] = fsdp.dispatch(%[[W]]) inplace [-1] {kind = "copy"} : (tensor<64x99xbf16>) -> tensor<64x104xbf16>
// CHECK:           tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [64, 99] [1, 1]
// CHECK:         fsdp.dispatch(%{{.*}}, %[[C]]) inplace [-1] {kind = "contract"} : (tensor<512x64xbf16>, tensor<64x104xbf16>)
// CHECK:         fsdp.dispatch(%{{.*}}, %[[W]]) inplace [-1] {kind = "contract"} : (tensor<8x64xbf16>, tensor<64x99xbf16>)
func.func @parameter(%w: tensor<64x99xbf16>, %x: tensor<512x64xbf16>, %few: tensor<8x64xbf16>) -> (tensor<512x99xf32>, tensor<8x99xf32>) {
  %y = fsdp.dispatch(%x, %w) inplace [-1] {kind = "contract"} : (tensor<512x64xbf16>, tensor<64x99xbf16>) -> tensor<512x99xf32> {
  ^bb0(%a: tensor<512x64xbf16>, %b: tensor<64x99xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<512x99xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x99xf32>) -> tensor<512x99xf32>
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<512x64xbf16>, tensor<64x99xbf16>) outs(%f : tensor<512x99xf32>) -> tensor<512x99xf32>
    fsdp.yield %c : tensor<512x99xf32>
  }
  %z = fsdp.dispatch(%few, %w) inplace [-1] {kind = "contract"} : (tensor<8x64xbf16>, tensor<64x99xbf16>) -> tensor<8x99xf32> {
  ^bb0(%a: tensor<8x64xbf16>, %b: tensor<64x99xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x99xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x99xf32>) -> tensor<8x99xf32>
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x64xbf16>, tensor<64x99xbf16>) outs(%f : tensor<8x99xf32>) -> tensor<8x99xf32>
    fsdp.yield %c : tensor<8x99xf32>
  }
  return %y, %z : tensor<512x99xf32>, tensor<8x99xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Aligned rows, short rows, and the rows of a function's result keep their length.

// CHECK-LABEL: func.func @kept(
// CHECK-NOT:     insert_slice
func.func @kept(%x: tensor<8x96xf32>, %y: tensor<8x33xf32>, %z: tensor<8x99xf32>, %v: tensor<96x64xbf16>, %w: tensor<33x64xbf16>, %u: tensor<99x64xbf16>)
    -> (tensor<8x64xf32>, tensor<8x99xbf16>) {
  %f:3 = fsdp.dispatch(%x, %y, %z) inplace [-1, -1, -1] {kind = "map"} : (tensor<8x96xf32>, tensor<8x33xf32>, tensor<8x99xf32>)
      -> (tensor<8x96xbf16>, tensor<8x33xbf16>, tensor<8x99xbf16>) {
  ^bb0(%a: tensor<8x96xf32>, %b: tensor<8x33xf32>, %c: tensor<8x99xf32>):
    %ea = tensor.empty() : tensor<8x96xbf16>
    %va = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x96xf32>) outs(%ea : tensor<8x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %t = arith.truncf %in : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<8x96xbf16>
    %eb = tensor.empty() : tensor<8x33xbf16>
    %vb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<8x33xf32>) outs(%eb : tensor<8x33xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %t = arith.truncf %in : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<8x33xbf16>
    %ec = tensor.empty() : tensor<8x99xbf16>
    %vc = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<8x99xf32>) outs(%ec : tensor<8x99xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %t = arith.truncf %in : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<8x99xbf16>
    fsdp.yield %va, %vb, %vc : tensor<8x96xbf16>, tensor<8x33xbf16>, tensor<8x99xbf16>
  }
  %0 = fsdp.dispatch(%f#0, %v) inplace [-1] {kind = "contract"} : (tensor<8x96xbf16>, tensor<96x64xbf16>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x96xbf16>, %b: tensor<96x64xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x96xbf16>, tensor<96x64xbf16>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
    fsdp.yield %c : tensor<8x64xf32>
  }
  %1 = fsdp.dispatch(%f#1, %w, %0) inplace [2] {kind = "contract"} : (tensor<8x33xbf16>, tensor<33x64xbf16>, tensor<8x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x33xbf16>, %b: tensor<33x64xbf16>, %i: tensor<8x64xf32>):
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x33xbf16>, tensor<33x64xbf16>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
    fsdp.yield %c : tensor<8x64xf32>
  }
  %2 = fsdp.dispatch(%f#2, %u, %1) inplace [2] {kind = "contract"} : (tensor<8x99xbf16>, tensor<99x64xbf16>, tensor<8x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x99xbf16>, %b: tensor<99x64xbf16>, %i: tensor<8x64xf32>):
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x99xbf16>, tensor<99x64xbf16>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
    fsdp.yield %c : tensor<8x64xf32>
  }
  return %2, %f#2 : tensor<8x64xf32>, tensor<8x99xbf16>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The logits become as long as their gradient, which is a factor, so that the gradient can overwrite
// them. The sums of rows read a slice.

// CHECK-LABEL: func.func @operand(
// CHECK:         %[[L:.*]] = fsdp.dispatch(%{{.*}}) inplace [-1] {kind = "contract"} : {{.*}} -> tensor<8x104xbf16>
// CHECK:         %[[S:.*]] = fsdp.dispatch(%[[L]]) inplace [-1] {kind = "row"} : (tensor<8x104xbf16>) -> tensor<8xf32>
// CHECK:         %[[G:.*]] = fsdp.dispatch(%[[L]], %[[S]]) inplace [-1] {kind = "map"} : (tensor<8x104xbf16>, tensor<8xf32>) -> tensor<8x104xbf16>
// CHECK:         fsdp.dispatch(%[[G]], %{{.*}}) inplace [-1] {kind = "contract"} : (tensor<8x104xbf16>,
func.func @operand(%x: tensor<8x64xbf16>, %w: tensor<64x99xbf16>, %v: tensor<99x64xbf16>) -> tensor<8x64xf32> {
  %l = fsdp.dispatch(%x, %w) inplace [-1] {kind = "contract"} : (tensor<8x64xbf16>, tensor<64x99xbf16>) -> tensor<8x99xbf16> {
  ^bb0(%a: tensor<8x64xbf16>, %b: tensor<64x99xbf16>):
    %zero = arith.constant 0.0 : bf16
    %e = tensor.empty() : tensor<8x99xbf16>
    %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<8x99xbf16>) -> tensor<8x99xbf16>
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x64xbf16>, tensor<64x99xbf16>) outs(%f : tensor<8x99xbf16>) -> tensor<8x99xbf16>
    fsdp.yield %c : tensor<8x99xbf16>
  }
  %s = fsdp.dispatch(%l) inplace [-1] {kind = "row"} : (tensor<8x99xbf16>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8x99xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<8x99xbf16>) outs(%f : tensor<8xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %t = arith.extf %in : bf16 to f32
      %u = arith.addf %out, %t : f32
      linalg.yield %u : f32
    } -> tensor<8xf32>
    fsdp.yield %r : tensor<8xf32>
  }
  %g = fsdp.dispatch(%l, %s) inplace [-1] {kind = "map"} : (tensor<8x99xbf16>, tensor<8xf32>) -> tensor<8x99xbf16> {
  ^bb0(%a: tensor<8x99xbf16>, %b: tensor<8xf32>):
    %e = tensor.empty() : tensor<8x99xbf16>
    %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<8x99xbf16>, tensor<8xf32>) outs(%e : tensor<8x99xbf16>) {
    ^bb0(%in: bf16, %sum: f32, %out: bf16):
      %t = arith.truncf %sum : f32 to bf16
      %u = arith.divf %in, %t : bf16
      linalg.yield %u : bf16
    } -> tensor<8x99xbf16>
    fsdp.yield %r : tensor<8x99xbf16>
  }
  %y = fsdp.dispatch(%g, %v) inplace [-1] {kind = "contract"} : (tensor<8x99xbf16>, tensor<99x64xbf16>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x99xbf16>, %b: tensor<99x64xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %c = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<8x99xbf16>, tensor<99x64xbf16>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
    fsdp.yield %c : tensor<8x64xf32>
  }
  return %y : tensor<8x64xf32>
}
