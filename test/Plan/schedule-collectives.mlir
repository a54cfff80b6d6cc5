// RUN: fsdp-opt %s --fsdp-schedule-collectives | FileCheck %s
// RUN: fsdp-opt %s --fsdp-schedule-collectives=prefetch=forward=0 | FileCheck %s --check-prefix=NONE
// RUN: fsdp-opt %s --fsdp-schedule-collectives=memory-limit=78000000 | FileCheck %s --check-prefix=MEMORY
// RUN: fsdp-opt %s --fsdp-schedule-collectives --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s --check-prefix=PACKED
// RUN: fsdp-opt %s --fsdp-schedule-collectives --fsdp-schedule-collectives | FileCheck %s
// RUN: not fsdp-opt %s --fsdp-schedule-collectives=cluster=/nowhere.json 2>&1 | FileCheck %s --check-prefix=NOFILE

// Each of two gathers overlaps with the kernel before its reader, and the reduction with the kernel after it. The cast of a
// shard moves with its gather, the norm of a reduced gradient with its wait.

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
  fsdp.buffer @state.1 "p1" parameters 2097152
  fsdp.buffer @input.0 "x" inputs 67108864
  fsdp.buffer @step.0 "gathered 0" gathered 4194304 in @step from 0 to 1
  fsdp.buffer @step.1 "gathered 1" gathered 4194304 in @step from 2 to 4
  fsdp.buffer @step.2 "gradient" staging 4194304 in @step from 5 to 6
  fsdp.buffer @step.3 "gradient shard" gradients 2097152 in @step from 6 to 7
  fsdp.buffer @step.4 "norm" control 64 in @step from 7 to 7
}

// CHECK-LABEL: fsdp.program @step
// CHECK-SAME: fsdp.schedule = {bound = {{.*}}cluster = "cpu"
// Only the cast for the second gather can run during the first gather.
// CHECK-NEXT: fsdp.collective 0 all_gather @state.0{{.*}} channel 1 {fsdp.exposed = {{.*}}fsdp.limit = "beginning"
// CHECK-NEXT: fsdp.launch @k_cast
// CHECK-NEXT: fsdp.collective 1 all_gather @step.1{{.*}} channel 1 {fsdp.exposed = 0.0{{.*}}, fsdp.seconds
// CHECK-NEXT: fsdp.wait 0
// CHECK-NEXT: fsdp.launch @k_big (@input.0[0, 67108864], @step.0
// CHECK-NEXT: fsdp.wait 1
// CHECK-NEXT: fsdp.launch @k_big (@input.0[0, 67108864], @step.1
// CHECK-NEXT: fsdp.fill @step.2
// CHECK-NEXT: fsdp.collective 2 reduce_scatter {{.*}} channel 2 {fsdp.exposed = 0.0
// CHECK-NEXT: fsdp.launch @k_big (@input.0[0, 67108864], @step.1
// CHECK-NEXT: fsdp.wait 2
// CHECK-NEXT: fsdp.launch @k_norm

// NONE-LABEL: fsdp.program @step
// NONE: fsdp.launch @k_big (@input.0[0, 67108864], @step.0
// NONE-NEXT: fsdp.launch @k_cast
// NONE-NEXT: fsdp.collective 1 {{.*}} fsdp.limit = "prefetch"
// NONE-NEXT: fsdp.wait 1

// 71.3 MB are always live: one gathered unit fits into the limit, two do not.
// MEMORY-LABEL: fsdp.program @step
// MEMORY: fsdp.launch @k_big (@input.0[0, 67108864], @step.0
// MEMORY: fsdp.collective 1 {{.*}} fsdp.limit = "memory"

// PACKED: fsdp.buffer @step.1 "gathered 1" gathered 4194304 at {{[0-9]+}} in @step from 1 to 9

// NOFILE: error: '/nowhere.json': cannot be read
fsdp.program @step layout @arena mesh @mesh {
  fsdp.collective 0 all_gather @state.0[0, 2097152] -> @step.0[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k_big(@input.0[0, 67108864], @step.0[0, 4194304], @input.0[0, 67108864])
  fsdp.launch @k_cast(@state.1[0, 2097152], @step.1[0, 2097152] piece 2097152 of ["shard"])
  fsdp.collective 1 all_gather @step.1[0, 2097152] piece 2097152 of ["shard"] -> @step.1[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k_big(@input.0[0, 67108864], @step.1[0, 4194304], @input.0[0, 67108864])
  fsdp.fill @step.2[0, 4194304]
  fsdp.collective 2 reduce_scatter @step.2[0, 4194304] -> @step.3[0, 2097152] of 524288 x f32 over ["shard"] reduce avg
  fsdp.launch @k_norm(@step.3[0, 2097152], @step.4[0, 64])
  fsdp.launch @k_big(@input.0[0, 67108864], @step.1[0, 4194304], @input.0[0, 67108864])
}
