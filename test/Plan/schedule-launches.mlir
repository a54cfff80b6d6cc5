// RUN: fsdp-opt %s --fsdp-schedule-collectives | FileCheck %s

// One kernel needs two gathers, which start directly one after the other and so count as one launch: as in the
// simulator, the second gather has no latency. The third gather starts after another command and has its own latency.

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]

func.func private @k_big(%a: tensor<4096x4096xf32>, %w: tensor<1048576xf32>, %v: tensor<1048576xf32>, %o: tensor<4096x4096xf32> {fsdp.out = 0 : i64}) -> tensor<4096x4096xf32> attributes {fsdp.kernel} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %m = linalg.matmul ins(%a, %a : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %m : tensor<4096x4096xf32>
}

fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "p0" parameters 2097152
  fsdp.buffer @state.1 "p1" parameters 2097152
  fsdp.buffer @state.2 "p2" parameters 2097152
  fsdp.buffer @input.0 "x" inputs 67108864
  fsdp.buffer @step.0 "gathered 0" gathered 4194304 in @step from 0 to 2
  fsdp.buffer @step.1 "gathered 1" gathered 4194304 in @step from 1 to 5
  fsdp.buffer @step.2 "gathered 2" gathered 4194304 in @step from 3 to 5
}

// CHECK-LABEL: fsdp.program @step
// CHECK-NEXT: fsdp.collective 0 {{.*}} fsdp.seconds = 2.72144{{[0-9]*[eE]-0?4}}
// CHECK-NEXT: fsdp.collective 1 {{.*}} fsdp.seconds = 2.62144{{[0-9]*[eE]-0?4}}
// CHECK-NEXT: fsdp.wait 0
// CHECK-NEXT: fsdp.wait 1
// CHECK-NEXT: fsdp.launch
// CHECK: fsdp.collective 2 {{.*}} fsdp.seconds = 2.72144{{[0-9]*[eE]-0?4}}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.collective 0 all_gather @state.0[0, 2097152] -> @step.0[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.collective 1 all_gather @state.1[0, 2097152] -> @step.1[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k_big(@input.0[0, 67108864], @step.0[0, 4194304], @step.1[0, 4194304], @input.0[0, 67108864])
  fsdp.launch @k_big(@input.0[0, 67108864], @step.1[0, 4194304], @step.1[0, 4194304], @input.0[0, 67108864])
  fsdp.collective 2 all_gather @state.2[0, 2097152] -> @step.2[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k_big(@input.0[0, 67108864], @step.1[0, 4194304], @step.2[0, 4194304], @input.0[0, 67108864])
}
