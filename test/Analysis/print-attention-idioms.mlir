// RUN: fsdp-opt %s --fsdp-print-attention-idioms -o /dev/null 2>&1 | FileCheck %s
// RUN: fsdp-opt %s '--fsdp-print-attention-idioms=tile=64' -o /dev/null 2>&1 | FileCheck %s --check-prefix=TILES
// RUN: not fsdp-opt %s '--fsdp-print-attention-idioms=tile=-4' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not fsdp-opt %s '--fsdp-print-attention-idioms=tile=4611686018427387904' -o /dev/null 2>&1 | FileCheck %s --check-prefix=VAST
// RUN: fsdp-opt %s '--fsdp-print-attention-idioms=tile=281474976710656' -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGEST

// NEGATIVE: print-attention-idioms.mlir:0:0: error: tile: expected at least 0 and at most 2^48, found -4
// VAST: print-attention-idioms.mlir:0:0: error: tile: expected at least 0 and at most 2^48, found 4611686018427387904
// LARGEST: note: rows [q0, q1) visit keys in tiles of 281474976710656

// A causal mask skips half of the tiles.
// CHECK: remark: attention: mask is causal; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, q1), mask-free in [0, q0 + 1)
// CHECK: note: keys [k0, k1) visit rows [k0, 64), mask-free in [k1 - 1, 64)
// CHECK: note: ops of its functions: 0 once, 0 per row, 0 per key, 1 per score
// TILES: note: rows [q0, q1) visit keys in tiles of 64 [0, 1), mask-free in [0, (q0 + 1) / 64)
// TILES: note: keys [k0, k1) visit rows in tiles of 64 [0, 1), mask-free in [(k1 + 62) / 64, 1)
// DOC-BEFORE-BEGIN fsdp-print-attention-idioms
func.func @causal(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %keep = arith.cmpi sge, %i, %j : index
  fsdp.yield %keep : i1
  }
  return
}
// DOC-BEFORE-END

// fewer rows than keys, aligned to the end
// CHECK: remark: attention: mask is causal to the end; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, q1 + 64), mask-free in [0, q0 + 65)
// CHECK: note: keys [k0, k1) visit rows [max(k0 - 64, 0), 32), mask-free in [max(k1 - 65, 0), 32)
// CHECK: note: ops of its functions: 0 once, 1 per row, 0 per key, 1 per score
func.func @causal_end(%q: tensor<2x4x32x8xf32>, %k: tensor<2x4x96x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x32x8xf32>, tensor<2x4x96x8xf32>, tensor<2x4x96x8xf32> -> tensor<2x4x32x8xf32>, tensor<2x4x32xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 64 : index
  %e = arith.addi %i, %c : index
  %keep = arith.cmpi sle, %j, %e : index
  fsdp.yield %keep : i1
  }
  return
}

// A window that is written as one unsigned comparison.
// CHECK: remark: attention: mask is causal, window of 256; score is plain
// CHECK: note: rows [q0, q1) visit keys [max(q0 - 255, 0), q1), mask-free in [max(q1 - 256, 0), max(q1 - 256, q0 + 1))
// CHECK: note: keys [k0, k1) visit rows [k0, min(k1 + 255, 1024)), mask-free in [k1 - 1, max(k1 - 1, min(k0 + 256, 1024)))
// CHECK: note: ops of its functions: 0 once, 0 per row, 0 per key, 2 per score
// TILES: note: rows [q0, q1) visit keys in tiles of 64 [max((q0 + 1) / 64 - 4, 0), max((q0 + 1) / 64 - 4, (q1 + 63) / 64)), mask-free in [max((q0 + 1) / 64 - 4, max((q1 + 63) / 64 - 4, 0)), max((q1 + 63) / 64 - 4, min(max(q1 / 64 - 4, (q0 + 1) / 64), max((q0 + 1) / 64 - 4, (q1 + 63) / 64))))
// TILES: note: keys [k0, k1) visit rows in tiles of 64 [k0 / 64, max(min((k1 + 62) / 64 + 4, 16), k0 / 64)), mask-free in [max(k0 / 64, (k1 + 62) / 64), max((k1 + 62) / 64, min(max((k1 + 63) / 64 - 1, min(k0 / 64 + 4, 16)), max(min((k1 + 62) / 64 + 4, 16), k0 / 64))))
func.func @window(%q: tensor<2x4x1024x8xf32>, %k: tensor<2x4x1024x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x1024x8xf32>, tensor<2x4x1024x8xf32>, tensor<2x4x1024x8xf32> -> tensor<2x4x1024x8xf32>, tensor<2x4x1024xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 256 : index
  %d = arith.subi %i, %j : index
  %keep = arith.cmpi ult, %d, %c : index
  fsdp.yield %keep : i1
  }
  return
}

// a window on both sides
// CHECK: remark: attention: mask is window of 9, up to 8 keys ahead; score is plain
// CHECK: note: rows [q0, q1) visit keys [max(q0 - 8, 0), min(q1 + 8, 64)), mask-free in [max(q1 - 9, 0), max(q1 - 9, min(q0 + 9, 64)))
// CHECK: note: keys [k0, k1) visit rows [max(k0 - 8, 0), min(k1 + 8, 64)), mask-free in [max(k1 - 9, 0), max(k1 - 9, min(k0 + 9, 64)))
// CHECK: note: ops of its functions: 0 once, 0 per row, 0 per key, 4 per score
func.func @symmetric(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 8 : index
  %d = arith.subi %i, %j : index
  %e = arith.subi %j, %i : index
  %a = arith.maxsi %d, %e : index
  %keep = arith.cmpi sle, %a, %c : index
  fsdp.yield %keep : i1
  }
  return
}

// A window on both sides, written as the magnitude of the distance.
// CHECK: remark: attention: mask is window of 9, up to 8 keys ahead; score is plain
// CHECK: note: rows [q0, q1) visit keys [max(q0 - 8, 0), min(q1 + 8, 64)), mask-free in [max(q1 - 9, 0), max(q1 - 9, min(q0 + 9, 64)))
func.func @distance(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 8 : i64
  %ii = arith.index_cast %i : index to i64
  %jj = arith.index_cast %j : index to i64
  %d = arith.subi %ii, %jj : i64
  %a = math.absi %d : i64
  %keep = arith.cmpi sle, %a, %c : i64
  fsdp.yield %keep : i1
  }
  return
}

// window and sink tokens: two ranges of keys
// CHECK: remark: attention: mask is causal, (window of 256 or 4 sink keys); score is plain
// CHECK: note: rows [q0, q1) visit keys [0, min(q1, 4)), mask-free in [0, min(q0 + 1, 4)); [max(q0 - 255, min(q1, 4)), q1), mask-free in [max(q1 - 256, min(q1, 4)), max(max(q1 - 256, min(q1, 4)), q0 + 1))
// CHECK: note: keys [k0, k1) visit rows [k0, max(min(k1 + 255, 1024), (-k0 + 3 >= 0 ? 1024 : 0))), mask-free in [k1 - 1, max(k1 - 1, min(max(min(k0 + 256, 1024), (-k1 + 4 >= 0 ? 1024 : 0)), max(min(k1 + 255, 1024), (-k0 + 3 >= 0 ? 1024 : 0)))))
// CHECK: note: ops of its functions: 0 once, 0 per row, 1 per key, 5 per score
func.func @sink(%q: tensor<2x4x1024x8xf32>, %k: tensor<2x4x1024x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x1024x8xf32>, tensor<2x4x1024x8xf32>, tensor<2x4x1024x8xf32> -> tensor<2x4x1024x8xf32>, tensor<2x4x1024xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c4 = arith.constant 4 : index
  %c = arith.constant 255 : index
  %causal = arith.cmpi sge, %i, %j : index
  %d = arith.subi %i, %j : index
  %near = arith.cmpi sle, %d, %c : index
  %sink = arith.cmpi slt, %j, %c4 : index
  %either = arith.ori %near, %sink : i1
  %keep = arith.andi %causal, %either : i1
  fsdp.yield %keep : i1
  }
  return
}

// the first 16 keys for all rows
// CHECK: remark: attention: mask is prefix-LM with 16 keys; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, max(16, q1)), mask-free in [0, max(16, q0 + 1))
// CHECK: note: keys [k0, k1) visit rows [0, (-k0 + 15 >= 0 ? 64 : 0)), mask-free in [0, min((-k1 + 16 >= 0 ? 64 : 0), (-k0 + 15 >= 0 ? 64 : 0))); [max(k0, (-k0 + 15 >= 0 ? 64 : 0)), 64), mask-free in [max((-k0 + 15 >= 0 ? 64 : 0), k1 - 1), 64)
// CHECK: note: ops of its functions: 0 once, 0 per row, 1 per key, 2 per score
func.func @prefix(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 16 : index
  %causal = arith.cmpi sge, %i, %j : index
  %prefix = arith.cmpi slt, %j, %c : index
  %keep = arith.ori %prefix, %causal : i1
  fsdp.yield %keep : i1
  }
  return
}

// a length per batch entry, read once
// CHECK: remark: attention: mask is first keys, by a length; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, max(min(scalar, 64), 0)), mask-free in [0, max(0, min(scalar, 64)))
// CHECK: note: keys [k0, k1) visit rows [0, (scalar - k0 - 1 >= 0 ? 64 : 0)), mask-free in [0, min((scalar - k1 >= 0 ? 64 : 0), (scalar - k0 - 1 >= 0 ? 64 : 0)))
// CHECK: note: ops of its functions: 1 once, 0 per row, 2 per key, 0 per score
func.func @padding(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<2xi64>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<2xi64>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<2xi64>) {
  %n = tensor.extract %m[%b] : tensor<2xi64>
  %kk = arith.index_cast %j : index to i64
  %keep = arith.cmpi slt, %kk, %n : i64
  fsdp.yield %keep : i1
  }
  return
}

// attention within chunks, causal
// CHECK: remark: attention: mask is chunks of 16, causal; score is plain
// CHECK: note: rows [q0, q1) visit keys [16 * (q0 / 16), max(min(16 * ((q1 + 15) / 16), q1), 16 * (q0 / 16))), mask-free in [max(16 * (q0 / 16), min(16 * ((q1 + 15) / 16) - 16, max(min(16 * ((q1 + 15) / 16), q1), 16 * (q0 / 16)))), max(max(16 * (q0 / 16), min(16 * ((q1 + 15) / 16) - 16, max(min(16 * ((q1 + 15) / 16), q1), 16 * (q0 / 16)))), min(min(16 * (q0 / 16) + 16, q0 + 1), max(min(16 * ((q1 + 15) / 16), q1), 16 * (q0 / 16)))))
// CHECK: note: keys [k0, k1) visit rows [max(16 * (k0 / 16), k0), max(16 * ((k1 + 15) / 16), max(16 * (k0 / 16), k0))), mask-free in [max(16 * (k0 / 16), min(max(16 * ((k1 + 15) / 16) - 16, k1 - 1), max(16 * ((k1 + 15) / 16), max(16 * (k0 / 16), k0)))), max(min(max(16 * ((k1 + 15) / 16) - 16, k1 - 1), max(16 * ((k1 + 15) / 16), max(16 * (k0 / 16), k0))), min(16 * (k0 / 16) + 16, max(16 * ((k1 + 15) / 16), max(16 * (k0 / 16), k0)))))
// CHECK: note: ops of its functions: 0 once, 1 per row, 1 per key, 3 per score
func.func @chunked(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 16 : index
  %x = arith.divui %i, %c : index
  %y = arith.divui %j, %c : index
  %same = arith.cmpi eq, %x, %y : index
  %causal = arith.cmpi sge, %i, %j : index
  %keep = arith.andi %same, %causal : i1
  fsdp.yield %keep : i1
  }
  return
}

// Documents: both ids depend on data, so only the causal bounds are known.
// CHECK: remark: attention: mask is document, causal; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, q1)
// CHECK: note: keys [k0, k1) visit rows [k0, 64)
// CHECK: note: ops of its functions: 0 once, 1 per row, 1 per key, 3 per score
func.func @document(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<2x64xi32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<2x64xi32>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<2x64xi32>) {
  %x = tensor.extract %m[%b, %i] : tensor<2x64xi32>
  %y = tensor.extract %m[%b, %j] : tensor<2x64xi32>
  %same = arith.cmpi eq, %x, %y : i32
  %causal = arith.cmpi sge, %i, %j : index
  %keep = arith.andi %same, %causal : i1
  fsdp.yield %keep : i1
  }
  return
}

// heads whose captured flag is set are not masked
// CHECK: remark: attention: mask is a flag per batch or head or causal; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, max((scalar - 1 >= 0 ? 64 : 0), q1)), mask-free in [0, max((scalar - 1 >= 0 ? 64 : 0), q0 + 1))
// CHECK: note: keys [k0, k1) visit rows [0, (scalar - 1 >= 0 ? 64 : 0)), mask-free in [0, (scalar - 1 >= 0 ? 64 : 0)); [max(k0, (scalar - 1 >= 0 ? 64 : 0)), 64), mask-free in [max((scalar - 1 >= 0 ? 64 : 0), k1 - 1), 64)
// CHECK: note: ops of its functions: 1 once, 0 per row, 0 per key, 2 per score
func.func @per_head(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<4xi1>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<4xi1>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xi1>) {
  %all = tensor.extract %m[%h] : tensor<4xi1>
  %causal = arith.cmpi sge, %i, %j : index
  %keep = arith.ori %all, %causal : i1
  fsdp.yield %keep : i1
  }
  return
}

// the contents of a captured table are unknown
// CHECK: remark: attention: mask is table; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, 64)
// CHECK: note: keys [k0, k1) visit rows [0, 64)
// CHECK: note: ops of its functions: 0 once, 0 per row, 0 per key, 1 per score
func.func @table(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<64x64xi1>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<64x64xi1>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<64x64xi1>) {
  %keep = tensor.extract %m[%i, %j] : tensor<64x64xi1>
  fsdp.yield %keep : i1
  }
  return
}

// a mask that keeps nothing
// CHECK: remark: attention: mask is everything masked; score is plain
// CHECK: note: rows [q0, q1) visit keys nothing
// CHECK: note: keys [k0, k1) visit rows nothing
// CHECK: note: ops of its functions: 0 once, 0 per row, 1 per key, 0 per score
// CHECK: warning: the mask keeps no key in any row: the result is zero
func.func @nothing(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index) {
  %c = arith.constant 64 : index
  %keep = arith.cmpi sge, %j, %c : index
  fsdp.yield %keep : i1
  }
  return
}

// slopes per head times the distance
// CHECK: remark: attention: mask is none; score is ALiBi
// CHECK: note: rows [q0, q1) visit keys [0, 64), mask-free in [0, 64)
// CHECK: note: keys [k0, k1) visit rows [0, 64), mask-free in [0, 64)
// CHECK: note: ops of its functions: 1 once, 0 per row, 0 per key, 5 per score
func.func @alibi(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<4xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<4xf32>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
  %slope = tensor.extract %m[%h] : tensor<4xf32>
  %d = arith.subi %j, %i : index
  %e = arith.index_cast %d : index to i32
  %f = arith.sitofp %e : i32 to f32
  %bias = arith.mulf %slope, %f : f32
  %r = arith.addf %s, %bias : f32
  fsdp.yield %r : f32
  }
  return
}

// softcap, then a table by distance
// CHECK: remark: attention: mask is none; score is softcap 30, relative bias
// CHECK: note: rows [q0, q1) visit keys [0, 64), mask-free in [0, 64)
// CHECK: note: keys [k0, k1) visit rows [0, 64), mask-free in [0, 64)
// CHECK: note: ops of its functions: 0 once, 0 per row, 0 per key, 7 per score
func.func @softcap_relative(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<4x127xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<4x127xf32>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4x127xf32>) {
  %cap = arith.constant 30.0 : f32
  %inverse = arith.constant 0.0333333333 : f32
  %c63 = arith.constant 63 : index
  %x = arith.mulf %s, %inverse : f32
  %y = math.tanh %x : f32
  %z = arith.mulf %cap, %y : f32
  %d = arith.subi %j, %i : index
  %at = arith.addi %d, %c63 : index
  %bias = tensor.extract %m[%h, %at] : tensor<4x127xf32>
  %r = arith.addf %z, %bias : f32
  fsdp.yield %r : f32
  }
  return
}

// a full bias
// CHECK: remark: attention: mask is none; score is bias per head, row, key
// CHECK: note: rows [q0, q1) visit keys [0, 64), mask-free in [0, 64)
// CHECK: note: keys [k0, k1) visit rows [0, 64), mask-free in [0, 64)
// CHECK: note: ops of its functions: 0 once, 0 per row, 0 per key, 2 per score
func.func @bias(%q: tensor<2x4x64x8xf32>, %k: tensor<2x4x64x8xf32>, %t: tensor<4x64x64xf32>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<4x64x64xf32>) : tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32>, tensor<2x4x64x8xf32> -> tensor<2x4x64x8xf32>, tensor<2x4x64xf32>
  score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4x64x64xf32>) {
  %bias = tensor.extract %m[%h, %i, %j] : tensor<4x64x64xf32>
  %r = arith.addf %s, %bias : f32
  fsdp.yield %r : f32
  }
  return
}

// causal, for the rows of one of four ranks
// CHECK: remark: attention: mask is q + 64 * scalar - k >= 0; score is plain
// CHECK: note: rows [q0, q1) visit keys [0, q1 + 64 * scalar), mask-free in [0, q0 + 64 * scalar + 1)
// CHECK: note: keys [k0, k1) visit rows [max(-64 * scalar + k0, 0), max(-64 * scalar + k0, 64)), mask-free in
// CHECK: note: ops of its functions: 4 once, 1 per row, 0 per key, 1 per score
func.func @part(%q: tensor<1x1x64x8xf32>, %k: tensor<1x1x256x8xf32>, %c: tensor<i64>) {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%c : tensor<i64>) : tensor<1x1x64x8xf32>, tensor<1x1x256x8xf32>, tensor<1x1x256x8xf32> -> tensor<1x1x64x8xf32>, tensor<1x1x64xf32>
  mask_mod(%b: index, %h: index, %i: index, %j: index, %part: tensor<i64>) {
  %n = tensor.extract %part[] : tensor<i64>
  %x = arith.index_cast %n : i64 to index
  %ranks = arith.constant 4 : index
  %rank = arith.remui %x, %ranks : index
  %rows = arith.constant 64 : index
  %before = arith.muli %rank, %rows : index
  %row = arith.addi %i, %before : index
  %keep = arith.cmpi sge, %row, %j : index
  fsdp.yield %keep : i1
  }
  return
}
