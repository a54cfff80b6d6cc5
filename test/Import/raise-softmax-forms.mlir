// Softmaxes by log-sum-exp, in narrow types and of shifted values.
// RUN: fsdp-opt %s --fsdp-raise-softmax --canonicalize | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>

// exp(x - (log(s) + m)), as ATen decomposes attention on a CPU.
// CHECK-LABEL: func.func @log_sum_exp(
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.*]] = linalg.softmax dimension(1) ins(%[[X]] : tensor<4x6xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @log_sum_exp(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%m, %s : tensor<4xf32>, tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %log = math.log %a1 : f32
    %r = arith.addf %log, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// exp((x - m) - log(s)), the exponential of a log-softmax.
// CHECK-LABEL: func.func @log_softmax(
// CHECK-NOT: linalg.generic
// CHECK: linalg.softmax dimension(1)
// CHECK-NEXT: return
func.func @log_softmax(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = math.log %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %r = arith.subf %a0, %a1 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %l : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d2 = arith.subf %a0, %a1 : f32
    %r = math.exp %d2 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The form of jax.nn.logsumexp: a guard of the maximum against infinities
// and a stop_gradient, at both uses, and the magnitude of the sum.
// CHECK-LABEL: func.func @guarded(
// CHECK-NOT: linalg.generic
// CHECK: linalg.softmax dimension(1)
// CHECK-NEXT: return
func.func @guarded(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %g0 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%m : tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %c0 = arith.constant 0.0 : f32
    %c1 = arith.constant 0x7F800000 : f32
    %abs = math.absf %a0 : f32
    %is = arith.cmpf oeq, %abs, %c1 : f32
    %r = arith.select %is, %c0, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %g = fsdp.stop_gradient %g0 : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %g : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%g, %s : tensor<4xf32>, tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %abs = math.absf %a1 : f32
    %log = math.log %abs : f32
    %r = arith.addf %log, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// x - max(x) before a softmax that subtracts its maximum.
// CHECK-LABEL: func.func @shifted_twice(
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.*]] = linalg.softmax dimension(1) ins(%[[X]] : tensor<4x6xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @shifted_twice(%w: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %x = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %n : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %r = arith.subf %a0, %a1 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %s : tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.divf %p, %a2 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The form of JAX in bf16: only the sum is in f32.
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME: %[[X:.*]]: tensor<4x6xbf16>
// CHECK-NOT: linalg.generic
// CHECK: linalg.softmax dimension(1) ins(%[[X]] : tensor<4x6xbf16>) outs(%{{.*}} : tensor<4x6xbf16>)
// CHECK-NEXT: return
func.func @narrow(%x: tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF80 : bf16
  %e = tensor.empty() : tensor<4x6xbf16>
  %er = tensor.empty() : tensor<4xbf16>
  %ew = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : bf16) outs(%er : tensor<4xbf16>) -> tensor<4xbf16>
  %z = linalg.fill ins(%zero : f32) outs(%ew : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xbf16>) outs(%lo : tensor<4xbf16>) {
  ^bb0(%a0: bf16, %o: bf16):
    %r = arith.maximumf %o, %a0 : bf16
    linalg.yield %r : bf16
  } -> tensor<4xbf16>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x6xbf16>, tensor<4xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%a0: bf16, %a1: bf16, %o: bf16):
    %d = arith.subf %a0, %a1 : bf16
    %r = math.exp %d : bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<4x6xbf16>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: bf16, %o: f32):
    %w = arith.extf %a0 : bf16 to f32
    %r = arith.addf %o, %w : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%er : tensor<4xbf16>) {
  ^bb0(%a0: f32, %o: bf16):
    %r = arith.truncf %a0 : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4xbf16>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %t : tensor<4x6xbf16>, tensor<4xbf16>) outs(%e : tensor<4x6xbf16>) {
  ^bb0(%a0: bf16, %a1: bf16, %o: bf16):
    %r = arith.divf %a0, %a1 : bf16
    linalg.yield %r : bf16
  } -> tensor<4x6xbf16>
  return %y : tensor<4x6xbf16>
}

// In f32 from bf16, with the conversion in each body: one conversion, then the softmax.
// CHECK-LABEL: func.func @widened(
// CHECK: arith.extf
// CHECK: %[[Y:.*]] = linalg.softmax dimension(1) ins(%{{.*}} : tensor<4x6xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @widened(%x: tensor<4x6xbf16>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xbf16>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: bf16, %o: f32):
    %w = arith.extf %a0 : bf16 to f32
    %r = arith.maximumf %o, %w : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xbf16>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: bf16, %a1: f32, %o: f32):
    %w = arith.extf %a0 : bf16 to f32
    %d = arith.subf %w, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %s : tensor<4x6xbf16>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: bf16, %a1: f32, %a2: f32, %o: f32):
    %w = arith.extf %a0 : bf16 to f32
    %d = arith.subf %w, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.divf %p, %a2 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The maximum is stopped only in the sum, so the gradient is not that of a softmax.
// CHECK-LABEL: func.func @stopped_once(
// CHECK-NOT: linalg.softmax
// CHECK: math.exp
func.func @stopped_once(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %g = fsdp.stop_gradient %m : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %g : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%m, %s : tensor<4xf32>, tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %log = math.log %a1 : f32
    %r = arith.addf %log, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The sum is over the differences, not over the exponentials.
// CHECK-LABEL: func.func @no_exponential(
// CHECK-NOT: linalg.softmax
// CHECK: math.exp
func.func @no_exponential(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %r = arith.addf %o, %d : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%m, %s : tensor<4xf32>, tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %log = math.log %a1 : f32
    %r = arith.addf %log, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The logarithm is subtracted once more than it should be.
// CHECK-LABEL: func.func @not_normalised(
// CHECK-NOT: linalg.softmax
// CHECK: math.exp
func.func @not_normalised(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%er : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = math.log %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The model intends a rounding to 8 bits.
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: linalg.softmax
// CHECK: math.exp
func.func @rounded(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %er = tensor.empty() : tensor<4xf32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x6xf32>) outs(%lo : tensor<4xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %r = arith.maximumf %o, %a0 : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x6xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %s : tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %o: f32):
    %d = arith.subf %a0, %a1 : f32
    %p = math.exp %d : f32
    %t = arith.truncf %p : f32 to f8E4M3FN
    %w = arith.extf %t : f8E4M3FN to f32
    %r = arith.divf %w, %a2 : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
