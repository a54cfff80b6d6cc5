// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=parameters+activations offload-min-bytes=4096" --fsdp-schedule-collectives \
// RUN:   --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=parameters+activations offload-min-bytes=4096" \
// RUN:   --fsdp-schedule-collectives=prefetch=copy=0 | FileCheck %s --check-prefix=NONE
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=activations offload-min-bytes=4096" \
// RUN:   --fsdp-schedule-collectives=memory-limit=120000000 --fsdp-pack-arenas | FileCheck %s --check-prefix=MEMORY

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 1024 : f32 reshard true [
  #fsdp.param<"w", tensor<2048xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k_first(%x: tensor<8388608xf32>, %y: tensor<8388608xf32> {fsdp.out = 0 : i64}) -> tensor<8388608xf32> attributes {fsdp.kernel}
func.func private @k_next(%x: tensor<8388608xf32>, %s: tensor<16777216xf32> {fsdp.inout = 0 : i64}) -> tensor<16777216xf32> attributes {fsdp.kernel}
func.func private @k_last(%w: tensor<2048xf32>, %x: tensor<8388608xf32>, %y: tensor<16777216xf32> {fsdp.inout = 0 : i64}) -> tensor<16777216xf32> attributes {fsdp.kernel}

// The activation is copied to the host during the launches that follow, and back before its reader. The shard is copied to
// the device before its gather, which starts after the wait. A copy in flight keeps source and target alive.
// CHECK-LABEL: fsdp.layout @arena
// CHECK: fsdp.buffer @step.0 "saved" activations 33554432 at {{[0-9]+}} in @step from 0 to [[AWAY:[0-9]+]]
// CHECK-LABEL: fsdp.program @step
// CHECK-NEXT: fsdp.launch @k_first
// CHECK-NEXT: fsdp.copy @step.0[0, 33554432] -> @step.host.{{[0-9]}}[0, 33554432] "to the host: saved" {fsdp.channel = 4 : i64, fsdp.exposed = 0.0{{.*}}, fsdp.id = [[OUT:[0-9]+]] : i64
// CHECK-NEXT: fsdp.launch @k_next
// CHECK: fsdp.wait [[OUT]]
// CHECK: fsdp.copy @state.0[0, 4096] -> @step.device.0[0, 4096] "to the device: u parameter" {fsdp.channel = 3 : i64, {{.*}}fsdp.id = [[SHARD:[0-9]+]] : i64
// CHECK-NEXT: fsdp.launch @k_next
// CHECK-DAG: fsdp.copy @step.host.{{[0-9]}}[0, 33554432] -> @step.back.{{[0-9]}}[0, 33554432] "to the device: saved" {fsdp.channel = 3 : i64, fsdp.exposed = 0.0{{.*}}, fsdp.id = [[BACK:[0-9]+]] : i64
// CHECK-DAG: fsdp.wait [[SHARD]]
// CHECK: fsdp.collective 0 all_gather @step.device.0
// CHECK-NEXT: fsdp.launch @k_next
// CHECK-DAG: fsdp.wait 0
// CHECK-DAG: fsdp.wait [[BACK]]
// CHECK: fsdp.launch @k_last

// NONE-LABEL: fsdp.program @step
// NONE: fsdp.copy {{.*}} "to the device: saved" {{.*}} fsdp.limit = "prefetch"
// NONE-NOT: fsdp.launch @k_next
// NONE: fsdp.launch @k_last

// 101 MB of inputs are always live. The limit leaves no memory to keep the 34 MB of the activation longer than necessary.
// MEMORY: fsdp.copy {{.*}} "to the host: saved" {{.*}}fsdp.limit = "memory"
// MEMORY: fsdp.copy {{.*}} "to the device: saved" {{.*}}fsdp.limit = "memory"
fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "u parameter" parameters 4096
  fsdp.state_slot @u parameter @state.0 : tensor<1024xf32>
  fsdp.buffer @input.0 "x" inputs 33554432
  fsdp.buffer @input.1 "s" inputs 67108864
  fsdp.buffer @step.0 "saved" activations 33554432
  fsdp.buffer @step.1 "gathered u" gathered 8192
}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.launch @k_first(@input.0[0, 33554432], @step.0[0, 33554432])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.launch @k_next(@input.0[0, 33554432], @input.1[0, 67108864])
  fsdp.collective 0 all_gather @state.0[0, 4096] -> @step.1[0, 8192] of 1024 x f32 over ["shard"] unit @u
  fsdp.launch @k_last(@step.1[0, 8192], @step.0[0, 33554432], @input.1[0, 67108864])
}
