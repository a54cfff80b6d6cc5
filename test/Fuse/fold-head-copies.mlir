// Copies between layouts of heads that remain, and those that become a part of attention.
// RUN: fsdp-opt %s --fsdp-fold-head-copies | FileCheck %s
// RUN: fsdp-opt %s --fsdp-fold-head-copies=bytes=64 | FileCheck %s --check-prefix=WIDE

// Heads that are a third of a larger tensor: the larger tensor would live as long as attention reads the third.
// CHECK-LABEL: func.func @third
// CHECK: kind = "copy"
// CHECK: kind = "attention"
// WIDE-LABEL: func.func @third
#heads = affine_map<(b, h, i, d) -> (b, h, i, d)>
#rows = affine_map<(b, h, i, d) -> (b, i, h, d)>
func.func @third(%q: tensor<2x4x8x8xf32>, %k: tensor<2x4x8x8xf32>, %p: tensor<2x8x96xf32>) -> tensor<2x4x8x8xf32> {
  %v = fsdp.dispatch(%p) inplace [-1] {kind = "copy"} : (tensor<2x8x96xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%x: tensor<2x8x96xf32>):
    %s = tensor.extract_slice %x[0, 0, 64] [2, 8, 32] [1, 1, 1] : tensor<2x8x96xf32> to tensor<2x8x32xf32>
    %h = tensor.expand_shape %s [[0], [1], [2, 3]] output_shape [2, 8, 4, 8] : tensor<2x8x32xf32> into tensor<2x8x4x8xf32>
    %e = tensor.empty() : tensor<2x4x8x8xf32>
    %0 = linalg.generic {indexing_maps = [#rows, #heads], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%h : tensor<2x8x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x8x8xf32>
    fsdp.yield %0 : tensor<2x4x8x8xf32>
  }
  %o = fsdp.dispatch(%q, %k, %v) inplace [-1] {kind = "attention"}
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%a: tensor<2x4x8x8xf32>, %b: tensor<2x4x8x8xf32>, %c: tensor<2x4x8x8xf32>):
    %0:2 = fsdp.attention %a, %b, %c scale 0.25
        : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
    fsdp.yield %0#0 : tensor<2x4x8x8xf32>
  }
  return %o : tensor<2x4x8x8xf32>
}

// Heads of 32 bytes can be read at multiples of 16 bytes, but not of 64 bytes. All attentions that read the copy read its source.
// CHECK-LABEL: func.func @aligned
// CHECK-NOT: kind = "copy"
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}, %[[P:.*]]) inplace
// CHECK-NOT: kind = "copy"
// CHECK: fsdp.dispatch(%[[P]], %{{.*}}) inplace
// WIDE-LABEL: func.func @aligned
// WIDE: kind = "copy"
func.func @aligned(%q: tensor<2x4x8x8xf32>, %k: tensor<2x4x8x8xf32>, %p: tensor<2x8x4x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) {
  %v = fsdp.dispatch(%p) inplace [-1] {kind = "copy"} : (tensor<2x8x4x8xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%x: tensor<2x8x4x8xf32>):
    %e = tensor.empty() : tensor<2x4x8x8xf32>
    %0 = linalg.generic {indexing_maps = [#rows, #heads], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x : tensor<2x8x4x8xf32>) outs(%e : tensor<2x4x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x8x8xf32>
    fsdp.yield %0 : tensor<2x4x8x8xf32>
  }
  %o = fsdp.dispatch(%q, %k, %v) inplace [-1] {kind = "attention"}
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%a: tensor<2x4x8x8xf32>, %b: tensor<2x4x8x8xf32>, %c: tensor<2x4x8x8xf32>):
    %0:2 = fsdp.attention %a, %b, %c scale 0.25
        : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
    fsdp.yield %0#0 : tensor<2x4x8x8xf32>
  }
  %w = fsdp.dispatch(%v, %k) inplace [-1] {kind = "attention"}
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%a: tensor<2x4x8x8xf32>, %b: tensor<2x4x8x8xf32>):
    %0:2 = fsdp.attention %a, %b, %a scale 0.25
        : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
    fsdp.yield %0#0 : tensor<2x4x8x8xf32>
  }
  return %o, %w : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>
}

// A collective, a return or another kernel reads O as heads: the copy remains.
// CHECK-LABEL: func.func @read
// CHECK: kind = "attention"
// CHECK: kind = "copy"
// WIDE-LABEL: func.func @read
func.func @read(%q: tensor<2x4x8x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x8x4x8xf32>) {
  %o = fsdp.dispatch(%q) inplace [-1] {kind = "attention"} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  ^bb0(%a: tensor<2x4x8x8xf32>):
    %0:2 = fsdp.attention %a, %a, %a scale 0.25
        : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
    fsdp.yield %0#0 : tensor<2x4x8x8xf32>
  }
  %t = fsdp.dispatch(%o) inplace [-1] {kind = "copy"} : (tensor<2x4x8x8xf32>) -> tensor<2x8x4x8xf32> {
  ^bb0(%x: tensor<2x4x8x8xf32>):
    %e = tensor.empty() : tensor<2x8x4x8xf32>
    %0 = linalg.generic {indexing_maps = [#heads, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x : tensor<2x4x8x8xf32>) outs(%e : tensor<2x8x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x8x4x8xf32>
    fsdp.yield %0 : tensor<2x8x4x8xf32>
  }
  return %o, %t : tensor<2x4x8x8xf32>, tensor<2x8x4x8xf32>
}

// A batch of one: reshapes between attention and the dispatches that move its result and its operand become a part of these dispatches.
// CHECK-LABEL: func.func @one(
// CHECK-SAME:    %[[Q:.*]]: tensor<1x4x8x8xf32>, %[[P:.*]]: tensor<8x32xf32>)
// CHECK-NOT:     kind = "copy"
// CHECK:         %[[O:.*]] = fsdp.dispatch(%[[Q]], %{{.*}}) inplace [-1] {kind = "attention"}
// CHECK-SAME:      : (tensor<1x4x8x8xf32>, tensor<8x4x8xf32>) -> tensor<8x4x8xf32>
// CHECK-NOT:     kind = "copy"
// CHECK:         %[[ROWS:.*]] = tensor.collapse_shape %[[O]]
// CHECK:         return %[[ROWS]] : tensor<8x32xf32>
#lines = affine_map<(h, i, d) -> (h, i, d)>
#apart = affine_map<(h, i, d) -> (i, h, d)>
func.func @one(%q: tensor<1x4x8x8xf32>, %p: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %h = tensor.expand_shape %p [[0], [1, 2]] output_shape [8, 4, 8] : tensor<8x32xf32> into tensor<8x4x8xf32>
  %t = fsdp.dispatch(%h) inplace [-1] {kind = "copy"} : (tensor<8x4x8xf32>) -> tensor<4x8x8xf32> {
  ^bb0(%x: tensor<8x4x8xf32>):
    %e = tensor.empty() : tensor<4x8x8xf32>
    %0 = linalg.generic {indexing_maps = [#apart, #lines], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : tensor<8x4x8xf32>) outs(%e : tensor<4x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x8x8xf32>
    fsdp.yield %0 : tensor<4x8x8xf32>
  }
  %k = tensor.expand_shape %t [[0, 1], [2], [3]] output_shape [1, 4, 8, 8] : tensor<4x8x8xf32> into tensor<1x4x8x8xf32>
  %o = fsdp.dispatch(%q, %k) inplace [-1] {kind = "attention"} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%a: tensor<1x4x8x8xf32>, %b: tensor<1x4x8x8xf32>):
    %0:2 = fsdp.attention %a, %b, %b scale 0.25
        : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>, tensor<1x4x8xf32>
    fsdp.yield %0#0 : tensor<1x4x8x8xf32>
  }
  %c = tensor.collapse_shape %o [[0, 1], [2], [3]] : tensor<1x4x8x8xf32> into tensor<4x8x8xf32>
  %m = fsdp.dispatch(%c) inplace [-1] {kind = "copy"} : (tensor<4x8x8xf32>) -> tensor<8x4x8xf32> {
  ^bb0(%x: tensor<4x8x8xf32>):
    %e = tensor.empty() : tensor<8x4x8xf32>
    %0 = linalg.generic {indexing_maps = [#lines, #apart], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : tensor<4x8x8xf32>) outs(%e : tensor<8x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8x4x8xf32>
    fsdp.yield %0 : tensor<8x4x8xf32>
  }
  %r = tensor.collapse_shape %m [[0], [1, 2]] : tensor<8x4x8xf32> into tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}
