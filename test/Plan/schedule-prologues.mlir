// The gather depends on two launches. The norm moves together with the gather. The cast does not move, because the norm
// between them reads its result.
// RUN: fsdp-opt %s --fsdp-schedule-collectives=prefetch=forward=0 --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]

func.func private @k_big(%a: tensor<4096x4096xf32>, %w: tensor<1048576xf32>, %o: tensor<4096x4096xf32> {fsdp.out = 0 : i64}) -> tensor<4096x4096xf32> attributes {fsdp.kernel} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %m = linalg.matmul ins(%a, %a : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %m : tensor<4096x4096xf32>
}
func.func private @k_cast(%a: tensor<524288xf32>, %o: tensor<524288xf32> {fsdp.out = 0 : i64}) -> tensor<524288xf32> attributes {fsdp.kernel} {
  return %a : tensor<524288xf32>
}
func.func private @k_norm(%a: tensor<524288xf32>, %o: tensor<16xf32> {fsdp.out = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel} {
  %e = tensor.extract_slice %a[0] [16] [1] : tensor<524288xf32> to tensor<16xf32>
  return %e : tensor<16xf32>
}

fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "p0" parameters 2097152
  fsdp.buffer @state.1 "p1" parameters 4194304
  fsdp.buffer @input.0 "x" inputs 67108864
  fsdp.buffer @step.0 "gathered" gathered 4194304 in @step from 0 to 5
  fsdp.buffer @step.1 "norm" control 64 in @step from 1 to 1
}

// CHECK-LABEL: fsdp.program @step
// CHECK-NEXT: fsdp.launch @k_cast
// CHECK-NEXT: fsdp.launch @k_big
// CHECK-NEXT: fsdp.launch @k_big
// CHECK-NEXT: fsdp.launch @k_norm
// CHECK-NEXT: fsdp.collective 0 all_gather
// CHECK-NEXT: fsdp.wait 0
// CHECK-NEXT: fsdp.launch @k_big (@input.0[0, 67108864], @step.0
fsdp.program @step layout @arena mesh @mesh {
  fsdp.launch @k_cast(@state.0[0, 2097152], @step.0[0, 2097152] piece 2097152 of ["shard"])
  fsdp.launch @k_norm(@step.0[0, 2097152] piece 2097152 of ["shard"], @step.1[0, 64])
  fsdp.collective 0 all_gather @step.0[0, 2097152] piece 2097152 of ["shard"] -> @step.0[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k_big(@input.0[0, 67108864], @state.1[0, 4194304], @input.0[0, 67108864])
  fsdp.launch @k_big(@input.0[0, 67108864], @state.1[0, 4194304], @input.0[0, 67108864])
  fsdp.launch @k_big(@input.0[0, 67108864], @step.0[0, 4194304], @input.0[0, 67108864])
}
