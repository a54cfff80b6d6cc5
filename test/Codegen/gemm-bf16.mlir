// bf16 products are summed in f32, in pairs of k. The bits are equal with and without vdpbf16ps, and
// a bf16 result is rounded once. AMX has another order, in which tiles and loops give equal bits.
// RUN: fsdp-kernel-test %s --target-cpu=%cpu --also-cpu=x86-64-v3 | FileCheck %s
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx | FileCheck %s

// CHECK: @nn_13x97x33_bf16_f32_acc: {{.*}} ok
func.func private @nn_13x97x33_bf16_f32_acc(%a: tensor<13x33xbf16>, %b: tensor<33x97xbf16>, %c: tensor<13x97xf32> {fsdp.inout = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<13x33xbf16>, tensor<33x97xbf16>) outs(%c : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @nt_13x97x33_bf16_f32: {{.*}} ok
func.func private @nt_13x97x33_bf16_f32(%a: tensor<13x33xbf16>, %b: tensor<97x33xbf16>, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<13x33xbf16>, tensor<97x33xbf16>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @tn_13x97x33_bf16_f32_acc: {{.*}} ok
func.func private @tn_13x97x33_bf16_f32_acc(%a: tensor<33x13xbf16>, %b: tensor<33x97xbf16>, %c: tensor<13x97xf32> {fsdp.inout = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<33x13xbf16>, tensor<33x97xbf16>) outs(%c : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @tt_13x97x33_bf16_f32: {{.*}} ok
func.func private @tt_13x97x33_bf16_f32(%a: tensor<33x13xbf16>, %b: tensor<97x33xbf16>, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<33x13xbf16>, tensor<97x33xbf16>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}

// CHECK: @nn_1x1x1_bf16_f32: {{.*}} ok
func.func private @nn_1x1x1_bf16_f32(%a: tensor<1x1xbf16>, %b: tensor<1x1xbf16>, %c: tensor<1x1xf32> {fsdp.out = 0 : i64}) -> tensor<1x1xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<1x1xbf16>, tensor<1x1xbf16>) outs(%i : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %r : tensor<1x1xf32>
}

// CHECK: @nt_64x96x32_bf16_bf16: {{.*}} ok
func.func private @nt_64x96x32_bf16_bf16(%a: tensor<64x32xbf16>, %b: tensor<96x32xbf16>, %c: tensor<64x96xbf16> {fsdp.out = 0 : i64}) -> tensor<64x96xbf16> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<64x32xbf16>, tensor<96x32xbf16>) outs(%i : tensor<64x96xf32>) -> tensor<64x96xf32>
  %e2 = tensor.empty() : tensor<64x96xbf16>
  %t = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],iterator_types=["parallel","parallel"]} ins(%r : tensor<64x96xf32>) outs(%e2 : tensor<64x96xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %q = arith.truncf %x : f32 to bf16
    linalg.yield %q : bf16
  } -> tensor<64x96xbf16>
  return %t : tensor<64x96xbf16>
}

// CHECK: @tn_20x70x2201_bf16_bf16: {{.*}} ok
func.func private @tn_20x70x2201_bf16_bf16(%a: tensor<2201x20xbf16>, %b: tensor<2201x70xbf16>, %c: tensor<20x70xbf16> {fsdp.out = 0 : i64}) -> tensor<20x70xbf16> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x70xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<20x70xf32>) -> tensor<20x70xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<2201x20xbf16>, tensor<2201x70xbf16>) outs(%i : tensor<20x70xf32>) -> tensor<20x70xf32>
  %e2 = tensor.empty() : tensor<20x70xbf16>
  %t = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],iterator_types=["parallel","parallel"]} ins(%r : tensor<20x70xf32>) outs(%e2 : tensor<20x70xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %q = arith.truncf %x : f32 to bf16
    linalg.yield %q : bf16
  } -> tensor<20x70xbf16>
  return %t : tensor<20x70xbf16>
}

// CHECK: @tt_7x30x5_bf16_bf16: {{.*}} ok
func.func private @tt_7x30x5_bf16_bf16(%a: tensor<5x7xbf16>, %b: tensor<30x5xbf16>, %c: tensor<7x30xbf16> {fsdp.out = 0 : i64}) -> tensor<7x30xbf16> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x30xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<7x30xf32>) -> tensor<7x30xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<5x7xbf16>, tensor<30x5xbf16>) outs(%i : tensor<7x30xf32>) -> tensor<7x30xf32>
  %e2 = tensor.empty() : tensor<7x30xbf16>
  %t = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],iterator_types=["parallel","parallel"]} ins(%r : tensor<7x30xf32>) outs(%e2 : tensor<7x30xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %q = arith.truncf %x : f32 to bf16
    linalg.yield %q : bf16
  } -> tensor<7x30xbf16>
  return %t : tensor<7x30xbf16>
}

// Few rows and a right side of more than 4 MB: micro-kernels prefetch the next panel.
// CHECK: @nt_61x1030x2050_bf16_f32: {{.*}} ok
func.func private @nt_61x1030x2050_bf16_f32(%a: tensor<61x2050xbf16>, %b: tensor<1030x2050xbf16>, %c: tensor<61x1030xf32> {fsdp.out = 0 : i64}) -> tensor<61x1030xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<61x1030xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<61x2050xbf16>, tensor<1030x2050xbf16>) outs(%i : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  return %r : tensor<61x1030xf32>
}

// CHECK: @nn_61x1030x2050_bf16_f32: {{.*}} ok
func.func private @nn_61x1030x2050_bf16_f32(%a: tensor<61x2050xbf16>, %b: tensor<2050x1030xbf16>, %c: tensor<61x1030xf32> {fsdp.out = 0 : i64}) -> tensor<61x1030xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<61x1030xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<61x2050xbf16>, tensor<2050x1030xbf16>) outs(%i : tensor<61x1030xf32>) -> tensor<61x1030xf32>
  return %r : tensor<61x1030xf32>
}

// Results of more than 2 MiB, which AMX kernels store past the caches: rows of whole cache lines with
// a narrow last strip, and rows that begin inside a cache line.
// CHECK: @nn_650x816x300_bf16_f32: {{.*}} ok
func.func private @nn_650x816x300_bf16_f32(%a: tensor<650x300xbf16>, %b: tensor<300x816xbf16>, %c: tensor<650x816xf32> {fsdp.out = 0 : i64}) -> tensor<650x816xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<650x816xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<650x816xf32>) -> tensor<650x816xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<650x300xbf16>, tensor<300x816xbf16>) outs(%i : tensor<650x816xf32>) -> tensor<650x816xf32>
  return %r : tensor<650x816xf32>
}

// CHECK: @nn_650x1632x70_bf16_bf16: {{.*}} ok
func.func private @nn_650x1632x70_bf16_bf16(%a: tensor<650x70xbf16>, %b: tensor<70x1632xbf16>, %c: tensor<650x1632xbf16> {fsdp.out = 0 : i64}) -> tensor<650x1632xbf16> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<650x1632xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<650x1632xf32>) -> tensor<650x1632xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<650x70xbf16>, tensor<70x1632xbf16>) outs(%i : tensor<650x1632xf32>) -> tensor<650x1632xf32>
  %e2 = tensor.empty() : tensor<650x1632xbf16>
  %t = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],iterator_types=["parallel","parallel"]} ins(%r : tensor<650x1632xf32>) outs(%e2 : tensor<650x1632xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %q = arith.truncf %x : f32 to bf16
    linalg.yield %q : bf16
  } -> tensor<650x1632xbf16>
  return %t : tensor<650x1632xbf16>
}

// CHECK: @nn_650x817x70_bf16_f32: {{.*}} ok
func.func private @nn_650x817x70_bf16_f32(%a: tensor<650x70xbf16>, %b: tensor<70x817xbf16>, %c: tensor<650x817xf32> {fsdp.out = 0 : i64}) -> tensor<650x817xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<650x817xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<650x817xf32>) -> tensor<650x817xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<650x70xbf16>, tensor<70x817xbf16>) outs(%i : tensor<650x817xf32>) -> tensor<650x817xf32>
  return %r : tensor<650x817xf32>
}

// Two blocks of rows, and strips of two panels, each of which is finished beside the next one. The last strip is a part of a panel.
// CHECK: @nt_530x552x1000_bf16_residual: {{.*}} ok
func.func private @nt_530x552x1000_bf16_residual(%a: tensor<530x1000xbf16>, %b: tensor<552x1000xbf16>, %x: tensor<530x552xf32>, %c: tensor<530x552xbf16> {fsdp.out = 0 : i64}) -> tensor<530x552xbf16> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<530x552xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<530x552xf32>) -> tensor<530x552xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<530x1000xbf16>, tensor<552x1000xbf16>) outs(%i : tensor<530x552xf32>) -> tensor<530x552xf32>
  %e2 = tensor.empty() : tensor<530x552xbf16>
  %t = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],iterator_types=["parallel","parallel"]} ins(%r, %x : tensor<530x552xf32>, tensor<530x552xf32>) outs(%e2 : tensor<530x552xbf16>) {
  ^bb0(%p: f32, %q: f32, %y: bf16):
    %sum = arith.addf %p, %q : f32
    %half = arith.truncf %sum : f32 to bf16
    linalg.yield %half : bf16
  } -> tensor<530x552xbf16>
  return %t : tensor<530x552xbf16>
}

// Results of more than 2 MiB, in f32 and in bf16, whose rows are whole cache lines: AMX kernels store them past the caches.
// CHECK: @nn_1090x992x40_bf16_two: {{.*}} ok
func.func private @nn_1090x992x40_bf16_two(%a: tensor<1090x40xbf16>, %b: tensor<40x992xbf16>, %x: tensor<992xf32>, %c: tensor<1090x992xf32> {fsdp.out = 0 : i64}, %d: tensor<1090x992xbf16> {fsdp.out = 1 : i64}) -> (tensor<1090x992xf32>, tensor<1090x992xbf16>) attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1090x992xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1090x992xf32>) -> tensor<1090x992xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<1090x40xbf16>, tensor<40x992xbf16>) outs(%i : tensor<1090x992xf32>) -> tensor<1090x992xf32>
  %e2 = tensor.empty() : tensor<1090x992xbf16>
  %t:2 = linalg.generic {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(j)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],iterator_types=["parallel","parallel"]} ins(%r, %x : tensor<1090x992xf32>, tensor<992xf32>) outs(%e, %e2 : tensor<1090x992xf32>, tensor<1090x992xbf16>) {
  ^bb0(%p: f32, %q: f32, %y: f32, %w: bf16):
    %sum = arith.addf %p, %q : f32
    %product = arith.mulf %sum, %p : f32
    %half = arith.truncf %product : f32 to bf16
    linalg.yield %sum, %half : f32, bf16
  } -> (tensor<1090x992xf32>, tensor<1090x992xbf16>)
  return %t#0, %t#1 : tensor<1090x992xf32>, tensor<1090x992xbf16>
}
