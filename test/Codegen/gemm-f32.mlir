// Contractions in all transposes and odd sizes, with and without an accumulator,
// against the oracle. The bits are equal for every split and for both vector widths. AMX has another
// arithmetic, in which tiles and loops give equal bits.
// RUN: fsdp-kernel-test %s --target-cpu=%cpu --also-cpu=x86-64-v3 | FileCheck %s
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx | FileCheck %s

// CHECK: @nn_13x97x33_f32_f32: {{.*}} ok
func.func private @nn_13x97x33_f32_f32(%a: tensor<13x33xf32>, %b: tensor<33x97xf32>, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<13x33xf32>, tensor<33x97xf32>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @nt_13x97x33_f32_f32_acc: {{.*}} ok
func.func private @nt_13x97x33_f32_f32_acc(%a: tensor<13x33xf32>, %b: tensor<97x33xf32>, %c: tensor<13x97xf32> {fsdp.inout = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<13x33xf32>, tensor<97x33xf32>) outs(%c : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @tn_13x97x33_f32_f32: {{.*}} ok
func.func private @tn_13x97x33_f32_f32(%a: tensor<33x13xf32>, %b: tensor<33x97xf32>, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<33x13xf32>, tensor<33x97xf32>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @tt_13x97x33_f32_f32_acc: {{.*}} ok
func.func private @tt_13x97x33_f32_f32_acc(%a: tensor<33x13xf32>, %b: tensor<97x33xf32>, %c: tensor<13x97xf32> {fsdp.inout = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<33x13xf32>, tensor<97x33xf32>) outs(%c : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @nn_1x1x1_f32_f32: {{.*}} ok
func.func private @nn_1x1x1_f32_f32(%a: tensor<1x1xf32>, %b: tensor<1x1xf32>, %c: tensor<1x1xf32> {fsdp.out = 0 : i64}) -> tensor<1x1xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<1x1xf32>, tensor<1x1xf32>) outs(%i : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %r : tensor<1x1xf32>
}

// CHECK: @tt_7x5x3_f32_f32: {{.*}} ok
func.func private @tt_7x5x3_f32_f32(%a: tensor<3x7xf32>, %b: tensor<5x3xf32>, %c: tensor<7x5xf32> {fsdp.out = 0 : i64}) -> tensor<7x5xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<3x7xf32>, tensor<5x3xf32>) outs(%i : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %r : tensor<7x5xf32>
}

// CHECK: @nt_1x50x20_f32_f32: {{.*}} ok
func.func private @nt_1x50x20_f32_f32(%a: tensor<1x20xf32>, %b: tensor<50x20xf32>, %c: tensor<1x50xf32> {fsdp.out = 0 : i64}) -> tensor<1x50xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x50xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x50xf32>) -> tensor<1x50xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<1x20xf32>, tensor<50x20xf32>) outs(%i : tensor<1x50xf32>) -> tensor<1x50xf32>
  return %r : tensor<1x50xf32>
}

// CHECK: @nn_50x1x20_f32_f32_acc: {{.*}} ok
func.func private @nn_50x1x20_f32_f32_acc(%a: tensor<50x20xf32>, %b: tensor<20x1xf32>, %c: tensor<50x1xf32> {fsdp.inout = 0 : i64}) -> tensor<50x1xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<50x20xf32>, tensor<20x1xf32>) outs(%c : tensor<50x1xf32>) -> tensor<50x1xf32>
  return %r : tensor<50x1xf32>
}

// CHECK: @tn_64x96x32_f32_f32: {{.*}} ok
func.func private @tn_64x96x32_f32_f32(%a: tensor<32x64xf32>, %b: tensor<32x96xf32>, %c: tensor<64x96xf32> {fsdp.out = 0 : i64}) -> tensor<64x96xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<32x64xf32>, tensor<32x96xf32>) outs(%i : tensor<64x96xf32>) -> tensor<64x96xf32>
  return %r : tensor<64x96xf32>
}

// CHECK: @nt_20x70x1100_f32_f32_acc: {{.*}} ok
func.func private @nt_20x70x1100_f32_f32_acc(%a: tensor<20x1100xf32>, %b: tensor<70x1100xf32>, %c: tensor<20x70xf32> {fsdp.inout = 0 : i64}) -> tensor<20x70xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<20x1100xf32>, tensor<70x1100xf32>) outs(%c : tensor<20x70xf32>) -> tensor<20x70xf32>
  return %r : tensor<20x70xf32>
}

// CHECK: @tn_13x97x33_f64_f64: {{.*}} ok
func.func private @tn_13x97x33_f64_f64(%a: tensor<33x13xf64>, %b: tensor<33x97xf64>, %c: tensor<13x97xf64> {fsdp.out = 0 : i64}) -> tensor<13x97xf64> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<13x97xf64>
  %i = linalg.fill ins(%z : f64) outs(%e : tensor<13x97xf64>) -> tensor<13x97xf64>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<33x13xf64>, tensor<33x97xf64>) outs(%i : tensor<13x97xf64>) -> tensor<13x97xf64>
  return %r : tensor<13x97xf64>
}

// CHECK: @nt_14x33x70_f64_f64_acc: {{.*}} ok
func.func private @nt_14x33x70_f64_f64_acc(%a: tensor<14x70xf64>, %b: tensor<33x70xf64>, %c: tensor<14x33xf64> {fsdp.inout = 0 : i64}) -> tensor<14x33xf64> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<14x70xf64>, tensor<33x70xf64>) outs(%c : tensor<14x33xf64>) -> tensor<14x33xf64>
  return %r : tensor<14x33xf64>
}

// CHECK: @nt_13x97x33_f16_f32: {{.*}} ok
func.func private @nt_13x97x33_f16_f32(%a: tensor<13x33xf16>, %b: tensor<97x33xf16>, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<13x33xf16>, tensor<97x33xf16>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @tn_9x20x33_f16_f32: {{.*}} ok
func.func private @tn_9x20x33_f16_f32(%a: tensor<33x9xf16>, %b: tensor<33x20xf16>, %c: tensor<9x20xf32> {fsdp.out = 0 : i64}) -> tensor<9x20xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x20xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<9x20xf32>) -> tensor<9x20xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<33x9xf16>, tensor<33x20xf16>) outs(%i : tensor<9x20xf32>) -> tensor<9x20xf32>
  return %r : tensor<9x20xf32>
}

// Few rows and a right side of more than 4 MB: micro-kernels prefetch the next panel, with lines along k or along n.
// CHECK: @nt_61x1030x1030_f32_f32: {{.*}} ok
func.func private @nt_61x1030x1030_f32_f32(%a: tensor<61x1030xf32>, %b: tensor<1030x1030xf32>, %c: tensor<61x1030xf32> {fsdp.out = 0 : i64}) -> tensor<61x1030xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<61x1030xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<61x1030xf32>, tensor<1030x1030xf32>) outs(%i : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  return %r : tensor<61x1030xf32>
}

// CHECK: @nn_61x1030x1030_f32_f32: {{.*}} ok
func.func private @nn_61x1030x1030_f32_f32(%a: tensor<61x1030xf32>, %b: tensor<1030x1030xf32>, %c: tensor<61x1030xf32> {fsdp.out = 0 : i64}) -> tensor<61x1030xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<61x1030xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<61x1030xf32>, tensor<1030x1030xf32>) outs(%i : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  return %r : tensor<61x1030xf32>
}

// More rows, and a right side of more than 1 MB: if the shared cache is distant, the parts of micro-kernels prefetch the next panel.
// CHECK: @nt_205x1103x301_f32_f32: {{.*}} ok
func.func private @nt_205x1103x301_f32_f32(%a: tensor<205x301xf32>, %b: tensor<1103x301xf32>, %c: tensor<205x1103xf32> {fsdp.out = 0 : i64}) -> tensor<205x1103xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<205x1103xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<205x1103xf32>) -> tensor<205x1103xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<205x301xf32>, tensor<1103x301xf32>) outs(%i : tensor<205x1103xf32>) -> tensor<205x1103xf32>
  return %r : tensor<205x1103xf32>
}

// CHECK: @nn_205x1103x301_f32_f32: {{.*}} ok
func.func private @nn_205x1103x301_f32_f32(%a: tensor<205x301xf32>, %b: tensor<301x1103xf32>, %c: tensor<205x1103xf32> {fsdp.out = 0 : i64}) -> tensor<205x1103xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<205x1103xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<205x1103xf32>) -> tensor<205x1103xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<205x301xf32>, tensor<301x1103xf32>) outs(%i : tensor<205x1103xf32>) -> tensor<205x1103xf32>
  return %r : tensor<205x1103xf32>
}
