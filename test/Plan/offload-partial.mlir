// An activation that several commands write in slices stays on the device, because a copy of the whole
// would read bytes that are not written yet. An activation that one command writes as a whole is offloaded.
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=activations offload-min-bytes=1" --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s

func.func private @k_use(%x: tensor<1024xf32>, %y: tensor<1024xf32> {fsdp.out = 0 : i64}) -> tensor<1024xf32> attributes {fsdp.kernel}

// CHECK-LABEL: fsdp.program @step
// CHECK-NOT: fsdp.copy @step.0
// CHECK: fsdp.fill @step.1[0, 4096]
// CHECK-NEXT: fsdp.copy @step.1[0, 4096] -> @step.host.0[0, 4096] "to the host: whole"
// CHECK-NOT: fsdp.copy {{.*}}@step.0
// CHECK: fsdp.fill @step.0[2048, 2048]
// CHECK-NEXT: fsdp.launch @k_use (@step.0[0, 4096]
// CHECK-NEXT: fsdp.copy @step.host.0[0, 4096] -> @step.back.1[0, 4096] "to the device: whole"
// CHECK-NEXT: fsdp.launch @k_use (@step.back.1[0, 4096]
fsdp.layout @arena arena 0 {
  fsdp.buffer @state "state" parameters 4096
  fsdp.buffer @step.0 "parts" activations 4096 in @step from 0 to 20
  fsdp.buffer @step.1 "whole" activations 4096 in @step from 1 to 21
}
fsdp.program @step layout @arena {
  fsdp.fill @step.0[0, 2048]
  fsdp.fill @step.1[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @state[0, 4096]
  fsdp.fill @step.0[2048, 2048]
  fsdp.launch @k_use(@step.0[0, 4096], @state[0, 4096])
  fsdp.launch @k_use(@step.1[0, 4096], @state[0, 4096])
}
