// Attention tile by tile: grouped heads, lengths and dimensions that fill no tile, a score function
// with a captured tensor, and a causal mask aligned to the bottom right. The bits are equal for
// every split and CPU. Errors are at most twice the errors of full score matrices in the same types.
// RUN: fsdp-kernel-test %s --error-factor=2 --target-cpu=%cpu --also-cpu=x86-64-v3 | FileCheck %s
// RUN: fsdp-kernel-test %s --error-factor=2 --target-cpu=amx-loops --also-cpu=%amx | FileCheck %s


// CHECK: @plain: {{.*}} ok
func.func @plain(%q: tensor<1x2x70x64xf32>, %k: tensor<1x2x200x64xf32>, %v: tensor<1x2x200x64xf32>, %o: tensor<1x2x70x64xf32> {fsdp.out = 0 : i64}, %l: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x64xf32>, tensor<1x2x70xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125
      : tensor<1x2x70x64xf32>, tensor<1x2x200x64xf32>, tensor<1x2x200x64xf32> -> tensor<1x2x70x64xf32>, tensor<1x2x70xf32>
  return %r, %lse : tensor<1x2x70x64xf32>, tensor<1x2x70xf32>
}

// CHECK: @causal: {{.*}} ok
func.func @causal(%q: tensor<2x4x113x40xf32>, %k: tensor<2x2x203x40xf32>, %v: tensor<2x2x203x24xf32>, %s : tensor<4xf32>, %o: tensor<2x4x113x24xf32> {fsdp.out = 0 : i64}, %l: tensor<2x4x113xf32> {fsdp.out = 1 : i64}) -> (tensor<2x4x113x24xf32>, tensor<2x4x113xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125 capture(%s : tensor<4xf32>)
      : tensor<2x4x113x40xf32>, tensor<2x2x203x40xf32>, tensor<2x2x203x24xf32> -> tensor<2x4x113x24xf32>, tensor<2x4x113xf32>
      score_mod(%x: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %slope_h = tensor.extract %m[%h] : tensor<4xf32>
    %d = arith.subi %j, %i : index
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f32
    %bias = arith.mulf %slope_h, %distance : f32
    %r = arith.addf %x, %bias : f32
    fsdp.yield %r : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %c = arith.constant 90 : index
    %e = arith.addi %i, %c : index
    %keep = arith.cmpi sge, %e, %j : index
    fsdp.yield %keep : i1
  }
  return %r, %lse : tensor<2x4x113x24xf32>, tensor<2x4x113xf32>
}

// CHECK: @plain_bf16: {{.*}} ok
func.func @plain_bf16(%q: tensor<1x2x70x64xbf16>, %k: tensor<1x2x200x64xbf16>, %v: tensor<1x2x200x64xbf16>, %o: tensor<1x2x70x64xbf16> {fsdp.out = 0 : i64}, %l: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x64xbf16>, tensor<1x2x70xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125
      : tensor<1x2x70x64xbf16>, tensor<1x2x200x64xbf16>, tensor<1x2x200x64xbf16> -> tensor<1x2x70x64xbf16>, tensor<1x2x70xf32>
  return %r, %lse : tensor<1x2x70x64xbf16>, tensor<1x2x70xf32>
}

// CHECK: @causal_bf16: {{.*}} ok
func.func @causal_bf16(%q: tensor<2x4x113x40xbf16>, %k: tensor<2x2x203x40xbf16>, %v: tensor<2x2x203x24xbf16>, %s : tensor<4xf32>, %o: tensor<2x4x113x24xbf16> {fsdp.out = 0 : i64}, %l: tensor<2x4x113xf32> {fsdp.out = 1 : i64}) -> (tensor<2x4x113x24xbf16>, tensor<2x4x113xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125 capture(%s : tensor<4xf32>)
      : tensor<2x4x113x40xbf16>, tensor<2x2x203x40xbf16>, tensor<2x2x203x24xbf16> -> tensor<2x4x113x24xbf16>, tensor<2x4x113xf32>
      score_mod(%x: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %slope_h = tensor.extract %m[%h] : tensor<4xf32>
    %d = arith.subi %j, %i : index
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f32
    %bias = arith.mulf %slope_h, %distance : f32
    %r = arith.addf %x, %bias : f32
    fsdp.yield %r : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %c = arith.constant 90 : index
    %e = arith.addi %i, %c : index
    %keep = arith.cmpi sge, %e, %j : index
    fsdp.yield %keep : i1
  }
  return %r, %lse : tensor<2x4x113x24xbf16>, tensor<2x4x113xf32>
}

// CHECK: @plain_f16: {{.*}} ok
func.func @plain_f16(%q: tensor<1x2x70x64xf16>, %k: tensor<1x2x200x64xf16>, %v: tensor<1x2x200x64xf16>, %o: tensor<1x2x70x64xf16> {fsdp.out = 0 : i64}, %l: tensor<1x2x70xf32> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x64xf16>, tensor<1x2x70xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125
      : tensor<1x2x70x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16> -> tensor<1x2x70x64xf16>, tensor<1x2x70xf32>
  return %r, %lse : tensor<1x2x70x64xf16>, tensor<1x2x70xf32>
}

// CHECK: @causal_f16: {{.*}} ok
func.func @causal_f16(%q: tensor<2x4x113x40xf16>, %k: tensor<2x2x203x40xf16>, %v: tensor<2x2x203x24xf16>, %s : tensor<4xf32>, %o: tensor<2x4x113x24xf16> {fsdp.out = 0 : i64}, %l: tensor<2x4x113xf32> {fsdp.out = 1 : i64}) -> (tensor<2x4x113x24xf16>, tensor<2x4x113xf32>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125 capture(%s : tensor<4xf32>)
      : tensor<2x4x113x40xf16>, tensor<2x2x203x40xf16>, tensor<2x2x203x24xf16> -> tensor<2x4x113x24xf16>, tensor<2x4x113xf32>
      score_mod(%x: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %slope_h = tensor.extract %m[%h] : tensor<4xf32>
    %d = arith.subi %j, %i : index
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f32
    %bias = arith.mulf %slope_h, %distance : f32
    %r = arith.addf %x, %bias : f32
    fsdp.yield %r : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %c = arith.constant 90 : index
    %e = arith.addi %i, %c : index
    %keep = arith.cmpi sge, %e, %j : index
    fsdp.yield %keep : i1
  }
  return %r, %lse : tensor<2x4x113x24xf16>, tensor<2x4x113xf32>
}

// CHECK: @plain_f64: {{.*}} ok
func.func @plain_f64(%q: tensor<1x2x70x64xf64>, %k: tensor<1x2x200x64xf64>, %v: tensor<1x2x200x64xf64>, %o: tensor<1x2x70x64xf64> {fsdp.out = 0 : i64}, %l: tensor<1x2x70xf64> {fsdp.out = 1 : i64}) -> (tensor<1x2x70x64xf64>, tensor<1x2x70xf64>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125
      : tensor<1x2x70x64xf64>, tensor<1x2x200x64xf64>, tensor<1x2x200x64xf64> -> tensor<1x2x70x64xf64>, tensor<1x2x70xf64>
  return %r, %lse : tensor<1x2x70x64xf64>, tensor<1x2x70xf64>
}

// CHECK: @causal_f64: {{.*}} ok
func.func @causal_f64(%q: tensor<2x4x113x40xf64>, %k: tensor<2x2x203x40xf64>, %v: tensor<2x2x203x24xf64>, %s : tensor<4xf64>, %o: tensor<2x4x113x24xf64> {fsdp.out = 0 : i64}, %l: tensor<2x4x113xf64> {fsdp.out = 1 : i64}) -> (tensor<2x4x113x24xf64>, tensor<2x4x113xf64>) attributes {fsdp.kernel, fsdp.kind = "attention"} {
  %r, %lse = fsdp.attention %q, %k, %v scale 0.125 capture(%s : tensor<4xf64>)
      : tensor<2x4x113x40xf64>, tensor<2x2x203x40xf64>, tensor<2x2x203x24xf64> -> tensor<2x4x113x24xf64>, tensor<2x4x113xf64>
      score_mod(%x: f64, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf64>) {
    %slope_h = tensor.extract %m[%h] : tensor<4xf64>
    %d = arith.subi %j, %i : index
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f64
    %bias = arith.mulf %slope_h, %distance : f64
    %r = arith.addf %x, %bias : f64
    fsdp.yield %r : f64
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf64>) {
    %c = arith.constant 90 : index
    %e = arith.addi %i, %c : index
    %keep = arith.cmpi sge, %e, %j : index
    fsdp.yield %keep : i1
  }
  return %r, %lse : tensor<2x4x113x24xf64>, tensor<2x4x113xf64>
}
