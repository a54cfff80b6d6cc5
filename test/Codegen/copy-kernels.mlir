// Views inside kernels: permutations, slices, concatenations, padding, tables, masks.
// RUN: fsdp-kernel-test %s --also-cpu=x86-64-v3 | FileCheck %s

#id4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#r   = affine_map<(d0, d1) -> (d0, d1)>

// Heads moved to the front and back.
// CHECK: @to_heads: {{.*}} ok
func.func private @to_heads(%x: tensor<2x7x48xf32>, %y: tensor<2x3x7x16xf32> {fsdp.out = 0}) -> tensor<2x3x7x16xf32> attributes {fsdp.kernel} {
  %h = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [2, 7, 3, 16] : tensor<2x7x48xf32> into tensor<2x7x3x16xf32>
  %e = tensor.empty() : tensor<2x3x7x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, c, b, d)>, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%h : tensor<2x7x3x16xf32>) outs(%e : tensor<2x3x7x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x3x7x16xf32>
  return %t : tensor<2x3x7x16xf32>
}

// Consecutive elements of the result lie apart in the source.
// CHECK: @transpose: {{.*}} ok
func.func private @transpose(%x: tensor<37x50xf32>, %y: tensor<50x37xf32> {fsdp.out = 0}) -> tensor<50x37xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<50x37xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<37x50xf32>) outs(%e : tensor<50x37xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<50x37xf32>
  return %t : tensor<50x37xf32>
}

// Rotary embedding: two halves swapped by a concatenation, tables of sines.
// CHECK: @rotary: phases 30/1, shared 0, worker 0, {{.*}} ok
func.func private @rotary(%x: tensor<2x3x5x32xf32>, %cos: tensor<5x32xf32>, %sin: tensor<5x32xf32>, %y: tensor<2x3x5x32xf32> {fsdp.out = 0})
    -> tensor<2x3x5x32xf32> attributes {fsdp.kernel} {
  %lo = tensor.extract_slice %x[0, 0, 0, 0] [2, 3, 5, 16] [1, 1, 1, 1] : tensor<2x3x5x32xf32> to tensor<2x3x5x16xf32>
  %hi = tensor.extract_slice %x[0, 0, 0, 16] [2, 3, 5, 16] [1, 1, 1, 1] : tensor<2x3x5x32xf32> to tensor<2x3x5x16xf32>
  %e = tensor.empty() : tensor<2x3x5x16xf32>
  %neg = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%hi : tensor<2x3x5x16xf32>) outs(%e : tensor<2x3x5x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<2x3x5x16xf32>
  %rot = tensor.concat dim(3) %neg, %lo : (tensor<2x3x5x16xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x32xf32>
  %e2 = tensor.empty() : tensor<2x3x5x32xf32>
  %r = linalg.generic {indexing_maps = [#id4, #id4, affine_map<(a, b, c, d) -> (c, d)>, affine_map<(a, b, c, d) -> (c, d)>, #id4],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %rot, %cos, %sin : tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>, tensor<5x32xf32>, tensor<5x32xf32>) outs(%e2 : tensor<2x3x5x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.mulf %b, %s : f32
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<2x3x5x32xf32>
  return %r : tensor<2x3x5x32xf32>
}

// The gradient of a split (three tensors side by side), and of a slice (padding).
// CHECK: @parts: {{.*}} ok
func.func private @parts(%a: tensor<9x11xf32>, %b: tensor<9x11xf32>, %c: tensor<9x11xf32>, %y: tensor<9x33xf32> {fsdp.out = 0},
    %z: tensor<12x40xf32> {fsdp.out = 1}) -> (tensor<9x33xf32>, tensor<12x40xf32>) attributes {fsdp.kernel} {
  %0 = tensor.concat dim(1) %a, %b, %c : (tensor<9x11xf32>, tensor<9x11xf32>, tensor<9x11xf32>) -> tensor<9x33xf32>
  %zero = arith.constant 0.0 : f32
  %1 = tensor.pad %0 low[1, 3] high[2, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<9x33xf32> to tensor<12x40xf32>
  return %0, %1 : tensor<9x33xf32>, tensor<12x40xf32>
}

// A box written into an in-place operand; the other elements stay.
// CHECK: @box: {{.*}} ok
func.func private @box(%a: tensor<3x5xf32>, %y: tensor<8x9xf32> {fsdp.inout = 0}) -> tensor<8x9xf32> attributes {fsdp.kernel} {
  %0 = tensor.insert_slice %a into %y[2, 4] [3, 5] [1, 1] : tensor<3x5xf32> into tensor<8x9xf32>
  return %0 : tensor<8x9xf32>
}

// A table of constants and a mask of i1.
// CHECK: @table: {{.*}} ok
func.func private @table(%x: tensor<6x4xf32>, %m: tensor<6x4xi1>, %y: tensor<6x4xf32> {fsdp.out = 0}, %n: tensor<6x4xi1> {fsdp.out = 1})
    -> (tensor<6x4xf32>, tensor<6x4xi1>) attributes {fsdp.kernel} {
  %t = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4xf32>
  %e1 = tensor.empty() : tensor<6x4xi1>
  %r:2 = linalg.generic {indexing_maps = [#r, affine_map<(a, b) -> (b)>, #r, #r, #r], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t, %m : tensor<6x4xf32>, tensor<4xf32>, tensor<6x4xi1>) outs(%e, %e1 : tensor<6x4xf32>, tensor<6x4xi1>) {
  ^bb0(%a: f32, %b: f32, %c: i1, %o: f32, %p: i1):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.select %c, %0, %zero : f32
    %2 = arith.cmpf ogt, %0, %zero : f32
    linalg.yield %1, %2 : f32, i1
  } -> (tensor<6x4xf32>, tensor<6x4xi1>)
  return %r#0, %r#1 : tensor<6x4xf32>, tensor<6x4xi1>
}

// Positions that depend on data and differ between lanes.
// CHECK: @gather: {{.*}} ok
func.func private @gather(%x: tensor<91xf32>, %at: tensor<130xi32> {fsdp.limit = 91}, %y: tensor<130xf32> {fsdp.out = 0}) -> tensor<130xf32> attributes {fsdp.kernel} {
  %e = tensor.empty() : tensor<130xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%at : tensor<130xi32>) outs(%e : tensor<130xf32>) {
  ^bb0(%i: i32, %o: f32):
    %0 = arith.index_cast %i : i32 to index
    %1 = tensor.extract %x[%0] : tensor<91xf32>
    linalg.yield %1 : f32
  } -> tensor<130xf32>
  return %r : tensor<130xf32>
}

// A mask computed from positions.
// CHECK: @causal: {{.*}} ok
func.func private @causal(%x: tensor<13x70xf16>, %y: tensor<13x70xf16> {fsdp.out = 0}) -> tensor<13x70xf16> attributes {fsdp.kernel} {
  %low = arith.constant -1000.0 : f16
  %e = tensor.empty() : tensor<13x70xf16>
  %r = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<13x70xf16>) outs(%e : tensor<13x70xf16>) {
  ^bb0(%a: f16, %o: f16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.cmpi sge, %i, %j : index
    %1 = arith.select %0, %a, %low : f16
    %2 = math.exp %1 : f16
    linalg.yield %2 : f16
  } -> tensor<13x70xf16>
  return %r : tensor<13x70xf16>
}
