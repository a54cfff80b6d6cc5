// Both operands pass through a map, and k is odd. The padding of the last pair of k must be zero, not exp of zero, which
// would add 1 to each element. The bound is that of bf16, because the kernel, but not the oracle, rounds exp to bf16.
// RUN: fsdp-kernel-test %s --target-cpu=%cpu --also-cpu=x86-64-v3 --tolerance=1.6e-2 | FileCheck %s
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx --tolerance=1.6e-2 | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// CHECK: @nt_mapped_bf16: {{.*}} ok
func.func private @nt_mapped_bf16(%a: tensor<13x33xbf16> {fsdp.range = [-3.0, -2.0]}, %b: tensor<97x33xbf16> {fsdp.range = [-3.0, -2.0]}, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %ea = tensor.empty() : tensor<13x33xbf16>
  %eb = tensor.empty() : tensor<97x33xbf16>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %fa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<13x33xbf16>) outs(%ea : tensor<13x33xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = math.exp %x : bf16
    linalg.yield %y : bf16
  } -> tensor<13x33xbf16>
  %fb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<97x33xbf16>) outs(%eb : tensor<97x33xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = math.exp %x : bf16
    linalg.yield %y : bf16
  } -> tensor<97x33xbf16>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%fa, %fb : tensor<13x33xbf16>, tensor<97x33xbf16>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}
// CHECK: @nn_mapped_bf16: {{.*}} ok
func.func private @nn_mapped_bf16(%a: tensor<13x33xbf16> {fsdp.range = [-3.0, -2.0]}, %b: tensor<33x97xbf16> {fsdp.range = [-3.0, -2.0]}, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %ea = tensor.empty() : tensor<13x33xbf16>
  %eb = tensor.empty() : tensor<33x97xbf16>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %fa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<13x33xbf16>) outs(%ea : tensor<13x33xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = math.exp %x : bf16
    linalg.yield %y : bf16
  } -> tensor<13x33xbf16>
  %fb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<33x97xbf16>) outs(%eb : tensor<33x97xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = math.exp %x : bf16
    linalg.yield %y : bf16
  } -> tensor<33x97xbf16>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%fa, %fb : tensor<13x33xbf16>, tensor<33x97xbf16>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}
// CHECK: @tn_mapped_bf16: {{.*}} ok
func.func private @tn_mapped_bf16(%a: tensor<33x13xbf16> {fsdp.range = [-3.0, -2.0]}, %b: tensor<33x97xbf16> {fsdp.range = [-3.0, -2.0]}, %c: tensor<13x97xf32> {fsdp.out = 0 : i64}) -> tensor<13x97xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x97xf32>
  %ea = tensor.empty() : tensor<33x13xbf16>
  %eb = tensor.empty() : tensor<33x97xbf16>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<13x97xf32>) -> tensor<13x97xf32>
  %fa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<33x13xbf16>) outs(%ea : tensor<33x13xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = math.exp %x : bf16
    linalg.yield %y : bf16
  } -> tensor<33x13xbf16>
  %fb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<33x97xbf16>) outs(%eb : tensor<33x97xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = math.exp %x : bf16
    linalg.yield %y : bf16
  } -> tensor<33x97xbf16>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%fa, %fb : tensor<33x13xbf16>, tensor<33x97xbf16>) outs(%i : tensor<13x97xf32>) -> tensor<13x97xf32>
  return %r : tensor<13x97xf32>
}
