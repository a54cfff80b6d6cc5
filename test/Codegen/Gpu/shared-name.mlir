// The symbol of a launch's shared memory differs from all kernel names.
// RUN: fsdp-kernel-test %s --device=emulate --target=sm_80 | FileCheck %s --implicit-check-not=FAILED
// CHECK-COUNT-2: : ok
// RUN: fsdp-kernel-test %s --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=PTX
// PTX: .extern .shared {{.*}} shared$$[];
// PTX: .entry shared(
// PTX: .entry shared$$0(

func.func private @shared(%a: tensor<32x48xbf16>, %b: tensor<48x64xbf16>, %c: tensor<32x64xf32> {fsdp.out = 0 : i64}) -> tensor<32x64xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : tensor<32x48xbf16>, tensor<48x64xbf16>) outs(%z : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

func.func private @shared$(%a: tensor<16x8xf32>, %c: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel, fsdp.kind = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<16x8xf32>) outs(%z : tensor<16xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %x, %s : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}
