// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-chunk-rows{max-bytes=4096 remarks}))' -verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-chunk-rows{max-bytes=0 remarks}))' | FileCheck %s --check-prefix=WHOLE
// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-chunk-rows{max-bytes=4096 min-rows=20 remarks}))' 2>&1 | FileCheck %s --check-prefix=LEAST
// LEAST-NOT: warning
// LEAST: remark: computed for 20 of 40 rows at a time
// RUN: fsdp-opt %s --pass-pipeline='builtin.module(func.func(fsdp-chunk-rows{max-bytes=512 warnings}))' 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: warning: max-chunk-bytes: the smallest chunk has 16 rows, which take 4096 bytes; expected at least as many, found 512

#rc = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A result of 40 x 64 f32 takes 256 bytes per row, so 16 rows fit: three chunks of at most 14 rows. Row indices count
// from the first chunk. The row maxima of the chunks are joined; the product over rows accumulates over the chunks.

// CHECK-LABEL: func.func @chunks(
// CHECK-SAME:    %[[X:.*]]: tensor<40x8xf32>, %[[W:.*]]: tensor<64x8xf32>
// CHECK:         %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0] [14, 8]
// CHECK:         %[[Z0:.*]] = linalg.contract {{.*}} ins(%[[X0]], %[[W]] {{.*}} -> tensor<14x64xf32>
// CHECK:         %[[M0:.*]] = linalg.generic {{.*}} ins(%[[Z0]] : tensor<14x64xf32>){{.*}} {
// CHECK:         %[[D0:.*]] = linalg.generic {{.*}} ins(%[[Z0]], %[[M0]] :
// CHECK:           linalg.index 0
// CHECK-NOT:       arith.addi
// CHECK:         %[[S0:.*]] = linalg.generic {{.*}} ins(%[[M0]] : tensor<14xf32>)
// CHECK:         %[[G0:.*]] = linalg.contract {{.*}} ins(%{{.*}}, %[[D0]] : tensor<14x8xf32>, tensor<14x64xf32>)
// CHECK:         tensor.extract_slice %[[X]][14, 0] [14, 8]
// CHECK:           %[[AT:.*]] = linalg.index 0
// CHECK:           %[[BY:.*]] = arith.constant 14 : index
// CHECK:           arith.addi %[[AT]], %[[BY]]
// CHECK:         %[[G1:.*]] = linalg.contract {{.*}} outs(%[[G0]] : tensor<8x64xf32>)
// CHECK:         tensor.extract_slice %[[X]][28, 0] [12, 8]
// CHECK:         %[[G2:.*]] = linalg.contract {{.*}} outs(%[[G1]] : tensor<8x64xf32>)
// CHECK:         %[[S:.*]] = tensor.concat dim(0) %[[S0]], %{{.*}}, %{{.*}} : (tensor<14xf32>, tensor<14xf32>, tensor<12xf32>) -> tensor<40xf32>
// CHECK:         return %[[S]], %[[G2]]
// WHOLE-NOT: extract_slice
func.func @chunks(%x: tensor<40x8xf32>, %w: tensor<64x8xf32>) -> (tensor<40xf32>, tensor<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<40x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<40x64xf32>) -> tensor<40x64xf32>
  // expected-remark @+1 {{computed for 14 of 40 rows at a time}}
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<40x8xf32>, tensor<64x8xf32>) outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  %rows = tensor.empty() : tensor<40xf32>
  %low = linalg.fill ins(%zero : f32) outs(%rows : tensor<40xf32>) -> tensor<40xf32>
  %max = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<40x64xf32>) outs(%low : tensor<40xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<40xf32>
  %d = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]} ins(%z, %max : tensor<40x64xf32>, tensor<40xf32>) outs(%wide : tensor<40x64xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %row = linalg.index 0 : index
    %i = arith.index_cast %row : index to i64
    %f = arith.sitofp %i : i64 to f32
    %s = arith.subf %in, %m : f32
    %v = arith.mulf %s, %f : f32
    linalg.yield %v : f32
  } -> tensor<40x64xf32>
  %half = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%max : tensor<40xf32>) outs(%rows : tensor<40xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.constant 0.5 : f32
    %v = arith.mulf %in, %c : f32
    linalg.yield %v : f32
  } -> tensor<40xf32>
  %small = tensor.empty() : tensor<8x64xf32>
  %g0 = linalg.fill ins(%zero : f32) outs(%small : tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, #mn]
      ins(%x, %d : tensor<40x8xf32>, tensor<40x64xf32>) outs(%g0 : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %half, %g : tensor<40xf32>, tensor<8x64xf32>
}

// One element of each row is read by its index: the row index is relative to the chunk.

// CHECK-LABEL: func.func @element(
// CHECK:         %[[Z1:.*]] = linalg.contract {{.*}} -> tensor<10x128xf32>
// CHECK:         %[[Z2:.*]] = linalg.contract {{.*}} -> tensor<10x128xf32>
// CHECK:           %[[ROW:.*]] = linalg.index 0
// CHECK:           tensor.extract %[[Z2]][%[[ROW]],
func.func @element(%x: tensor<20x8xf32>, %w: tensor<128x8xf32>, %t: tensor<20xi64>) -> (tensor<20xf32>, tensor<20xf32>) {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<20x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<20x128xf32>) -> tensor<20x128xf32>
  // expected-remark @+1 {{computed for 10 of 20 rows at a time}}
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<20x8xf32>, tensor<128x8xf32>) outs(%init : tensor<20x128xf32>) -> tensor<20x128xf32>
  %rows = tensor.empty() : tensor<20xf32>
  %low = linalg.fill ins(%zero : f32) outs(%rows : tensor<20xf32>) -> tensor<20xf32>
  %y = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%t : tensor<20xi64>) outs(%rows : tensor<20xf32>) {
  ^bb0(%in: i64, %out: f32):
    %row = linalg.index 0 : index
    %id = arith.index_cast %in : i64 to index
    %v = tensor.extract %z[%row, %id] : tensor<20x128xf32>
    linalg.yield %v : f32
  } -> tensor<20xf32>
  %max = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<20x128xf32>) outs(%low : tensor<20xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<20xf32>
  return %y, %max : tensor<20xf32>, tensor<20xf32>
}

// Not chunked: a result that is returned, read transposed, accumulated transposed, needed after a sum over all rows,
// summed in bf16, or only rounded.

// CHECK-LABEL: func.func @whole(
// CHECK-NOT:     extract_slice
// CHECK-LABEL: func.func @transposed(
// CHECK-NOT:     extract_slice
// CHECK-LABEL: func.func @onto_transposed(
// CHECK-NOT:     extract_slice
// CHECK-LABEL: func.func @waits(
// CHECK-NOT:     extract_slice
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT:     extract_slice
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT:     extract_slice
func.func @whole(%x: tensor<40x8xf32>, %w: tensor<64x8xf32>, %init: tensor<40x64xf32>) -> tensor<40x64xf32> {
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<40x8xf32>, tensor<64x8xf32>) outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %z : tensor<40x64xf32>
}

func.func @transposed(%x: tensor<64x8xf32>, %w: tensor<64x8xf32>, %init: tensor<64x64xf32>, %rows: tensor<64xf32>) -> tensor<64xf32> {
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x8xf32>, tensor<64x8xf32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.generic {indexing_maps = [#rc, affine_map<(d0, d1) -> (d1, d0)>, #r], iterator_types = ["parallel", "reduction"]} ins(%z, %z : tensor<64x64xf32>, tensor<64x64xf32>) outs(%rows : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    %w2 = arith.addf %v, %out : f32
    linalg.yield %w2 : f32
  } -> tensor<64xf32>
  return %s : tensor<64xf32>
}

func.func @onto_transposed(%x: tensor<64x8xf32>, %w: tensor<64x8xf32>, %init: tensor<64x64xf32>, %rows: tensor<64xf32>) -> tensor<64xf32> {
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x8xf32>, tensor<64x8xf32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = linalg.generic {indexing_maps = [#rc, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]} ins(%z : tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, #r], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<64x64xf32>) outs(%rows : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.addf %a, %out : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %s : tensor<64xf32>
}

func.func @waits(%x: tensor<40x8xf32>, %w: tensor<64x8xf32>, %init: tensor<40x64xf32>, %one: tensor<f32>, %rows: tensor<40xf32>) -> tensor<40xf32> {
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<40x8xf32>, tensor<64x8xf32>) outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  %all = linalg.generic {indexing_maps = [#rc, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%z : tensor<40x64xf32>) outs(%one : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#rc, affine_map<(d0, d1) -> ()>, #r], iterator_types = ["parallel", "reduction"]} ins(%z, %all : tensor<40x64xf32>, tensor<f32>) outs(%rows : tensor<40xf32>) {
  ^bb0(%in: f32, %a: f32, %out: f32):
    %m = arith.mulf %in, %a : f32
    %v = arith.addf %m, %out : f32
    linalg.yield %v : f32
  } -> tensor<40xf32>
  return %s : tensor<40xf32>
}

func.func @narrow(%x: tensor<40x8xbf16>, %w: tensor<64x8xbf16>, %init: tensor<40x64xf32>, %sum: tensor<8x64xbf16>) -> tensor<8x64xbf16> {
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<40x8xbf16>, tensor<64x8xbf16>) outs(%init : tensor<40x64xf32>) -> tensor<40x64xf32>
  %g = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, #mn]
      ins(%x, %z : tensor<40x8xbf16>, tensor<40x64xf32>) outs(%sum : tensor<8x64xbf16>) -> tensor<8x64xbf16>
  return %g : tensor<8x64xbf16>
}

func.func @rounded(%x: tensor<30x8xbf16>, %w: tensor<64x8xbf16>, %init: tensor<30x64xf32>, %out: tensor<30x64xbf16>) -> tensor<30x64xbf16> {
  %z = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<30x8xbf16>, tensor<64x8xbf16>) outs(%init : tensor<30x64xf32>) -> tensor<30x64xf32>
  %y = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]} ins(%z : tensor<30x64xf32>) outs(%out : tensor<30x64xbf16>) {
  ^bb0(%in: f32, %o: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<30x64xbf16>
  return %y : tensor<30x64xbf16>
}
