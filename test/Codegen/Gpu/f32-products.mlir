// --f32-products=tf32: one product of rounded factors instead of three. The factor 1 + 0.75 / 1024 is rounded to 1 + 1 / 1024: the error is a
// quarter of 1 / 1024. If it were truncated, the error would be three quarters.
// RUN: fsdp-kernel-test %s --only=along --device=emulate --target=sm_80 | FileCheck %s --check-prefix=EXACT
// EXACT: @along: launches 1x128+{{.*}}, error 0.0e+00: ok
// RUN: fsdp-kernel-test %s --only=along --f32-products=tf32 --tolerance=1e-3 --device=emulate --target=sm_80 | FileCheck %s --check-prefix=SM80
// SM80: @along: launches 1x128+{{.*}}, error 2.4e-04: ok
// RUN: sed 's/"32x32"/"wg128x64"/' %s > %t.mlir
// RUN: fsdp-kernel-test %t.mlir --f32-products=tf32 --tolerance=1e-3 --device=emulate --target=sm_90a | FileCheck %s --check-prefix=SM90
// SM90: @along: launches 1x384+{{.*}}, scratch 0, {{.*}}, error 2.4e-04: ok
// SM90: @across: launches 1x256+4224 1x256+4224 1x384+{{.*}}, scratch 512, {{.*}}, error 2.4e-04: ok
//
// sm_80 multiplies once per step of k instead of three times.
// RUN: fsdp-kernel-test %s --only=along --emit=ptx | grep -c "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" > %t.exact
// RUN: fsdp-kernel-test %s --only=along --f32-products=tf32 --emit=ptx | grep -c "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" > %t.tf32
// RUN: paste -d ' ' %t.exact %t.tf32 | awk '{ print $1 / $2 }' | FileCheck %s --check-prefix=TIMES
// TIMES: {{^3$}}
// RUN: fsdp-kernel-test %t.mlir --f32-products=tf32 --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=WGMMA
// WGMMA-DAG: wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32
// WGMMA-DAG: .entry across_lhs(
// WGMMA-DAG: .entry across_rhs(
//
// Without the option, wgmma multiplies three times as often, and the error is that of f32.
// RUN: fsdp-kernel-test %t.mlir --device=emulate --target=sm_90a | FileCheck %s --check-prefix=PARTS
// PARTS: @along: launches 1x384+{{.*}}, error 0.0e+00: ok
// PARTS: @across: launches 1x256+4224 1x256+4224 1x384+{{.*}}, error 0.0e+00: ok
// RUN: fsdp-kernel-test %t.mlir --only=along --target=sm_90a --emit=ptx | grep -c "wgmma.mma_async" > %t.exact
// RUN: fsdp-kernel-test %t.mlir --only=along --f32-products=tf32 --target=sm_90a --emit=ptx | grep -c "wgmma.mma_async" > %t.tf32
// RUN: paste -d ' ' %t.exact %t.tf32 | awk '{ print $1 / $2 }' | FileCheck %s --check-prefix=TIMES
//
// Remarks name the kernels, and why wgmma cannot be used.
// RUN: sed 's/, fsdp.gemm_tile = "32x32"//' %s > %t.free.mlir
// RUN: fsdp-kernel-test %t.free.mlir --f32-products=tf32 --target=sm_90a --emit=ptx 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: f32 factors are rounded to TF32; mma.sync multiplies them instead of wgmma: it takes fewer clocks
// REMARK: remark: f32 factors are rounded to TF32; mma.sync multiplies them instead of wgmma: a factor is computed or converted while it is loaded
// RUN: fsdp-kernel-test %t.free.mlir --target=sm_90a --emit=ptx 2>&1 >/dev/null | count 0
//
// RUN: not fsdp-kernel-test %s --f32-products=half --emit=ptx 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: --f32-products=half: expected exact or tf32
// RUN: not fsdp-kernel-test %s --f32-products=tf32 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: --f32-products has no effect without --device=emulate, --emit or --save-bundle

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func private @along(%a: tensor<8x8xf32> {fsdp.values = dense<1.000732421875> : tensor<8x8xf32>}, %b: tensor<8x8xf32> {fsdp.values = dense<1.0> : tensor<8x8xf32>},
                         %c: tensor<8x8xf32> {fsdp.out = 0}) -> tensor<8x8xf32> attributes {fsdp.kernel, fsdp.gemm_tile = "32x32"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// Both factors extend across k.
func.func private @across(%a: tensor<8x8xf32> {fsdp.values = dense<1.0> : tensor<8x8xf32>}, %b: tensor<8x8xf32> {fsdp.values = dense<1.000732421875> : tensor<8x8xf32>},
                          %c: tensor<8x8xf32> {fsdp.out = 0}) -> tensor<8x8xf32> attributes {fsdp.kernel, fsdp.gemm_tile = "32x32"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.contract indexing_maps = [#km, #kn, #mn] ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// bf16 is converted to f32 while it is loaded.
func.func private @mixed(%a: tensor<8x8xbf16>, %b: tensor<8x8xf32> {fsdp.bits = 11}, %c: tensor<8x8xf32> {fsdp.out = 0}) -> tensor<8x8xf32> attributes {fsdp.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<8x8xbf16>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
