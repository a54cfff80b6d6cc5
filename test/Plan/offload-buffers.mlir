// RUN: fsdp-opt %s --fsdp-offload-buffers=offload=optimizer | FileCheck %s --check-prefix=OPTIMIZER
// RUN: fsdp-opt %s --fsdp-offload-buffers=offload=parameters+gradients+optimizer | FileCheck %s --check-prefix=STATE
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=activations offload-min-bytes=4096" | FileCheck %s --check-prefix=ACTIVATIONS
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=activations offload-min-bytes=4097" | FileCheck %s --check-prefix=SMALL
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=parameters+gradients+optimizer+activations offload-min-bytes=1" --fsdp-pack-arenas \
// RUN:   --fsdp-verify-planned | FileCheck %s --check-prefix=PACKED
// RUN: fsdp-opt %s --fsdp-offload-buffers=offload=optimizer:file --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s --check-prefix=FILE
// RUN: fsdp-opt %s --fsdp-offload-buffers=offload=optimizer:file --fsdp-schedule-collectives --fsdp-pack-arenas --fsdp-verify-planned \
// RUN:   | FileCheck %s --check-prefix=AHEAD
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=optimizer host-computes=false" --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s --check-prefix=DEVICE
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=optimizer:file host-computes=false" --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s --check-prefix=DEVICEFILE
// RUN: fsdp-opt %s "--fsdp-offload-buffers=offload=parameters+gradients+optimizer host-computes=false" | FileCheck %s --check-prefix=ALLDEVICE
// RUN: not fsdp-opt %s --fsdp-offload-buffers=offload=optimizer+optimizer:file 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not fsdp-opt %s --fsdp-offload-buffers=offload=optimizer+optimizer 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: offload: expected none, or each of parameters, gradients, optimizer (or optimizer:file) and activations at most once, joined by +, found 'optimizer+optimizer'

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]

func.func private @k_next(%x: tensor<1024xf32>, %y: tensor<1024xf32> {fsdp.out = 0 : i64}) -> tensor<1024xf32> attributes {fsdp.kernel}
func.func private @k_use(%w: tensor<128xf32>, %x: tensor<1024xf32>, %y: tensor<1024xf32> {fsdp.out = 0 : i64}) -> tensor<1024xf32> attributes {fsdp.kernel}
func.func private @k_gradient(%x: tensor<1024xf32>, %y: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel}
func.func private @k_norm(%g: tensor<64xf32>, %n: tensor<f32> {fsdp.out = 0 : i64}) -> tensor<f32> attributes {fsdp.kernel}
func.func private @k_update(%b: tensor<16xf32>, %g: tensor<64xf32>, %w: tensor<64xf32> {fsdp.inout = 0 : i64},
    %m: tensor<64xf32> {fsdp.inout = 1 : i64}) -> (tensor<64xf32>, tensor<64xf32>) attributes {fsdp.kernel}

// The update runs on the host, where the moments are: gradient and parameter are copied to the host, and the parameter back.
// OPTIMIZER: fsdp.buffer @state.1 "u momentum" optimizer 256 host
// OPTIMIZER: fsdp.buffer @step.host.0 "on the host: step block" staging 64 host in @step
// OPTIMIZER-LABEL: fsdp.program @step
// OPTIMIZER: fsdp.collective 0 all_gather @state.0[0, 256] -> @step.0
// OPTIMIZER: fsdp.collective 1 reduce_scatter @step.2[0, 512] -> @step.3[0, 256]
// OPTIMIZER-NEXT: fsdp.launch @k_norm (@step.3[0, 256], @step.6[0, 4])
// OPTIMIZER-NEXT: fsdp.copy @block[0, 64] -> @step.host.0[0, 64] "to the host: step block"
// OPTIMIZER-NEXT: fsdp.copy @step.3[0, 256] -> @step.host.1[0, 256] "to the host: gradient shard"
// OPTIMIZER-NEXT: fsdp.copy @state.0[0, 256] -> @step.host.2[0, 256] "to the host: u parameter"
// OPTIMIZER-NEXT: fsdp.launch @k_update (@step.host.0[0, 64], @step.host.1[0, 256], @step.host.2[0, 256], @state.1[0, 256])
// OPTIMIZER-NEXT: fsdp.copy @step.host.2[0, 256] -> @state.0[0, 256] "to the device: u parameter"

// If only the device computes, the moments are copied to the device and back; the gradient and the parameter are not copied.
// DEVICE: fsdp.buffer @state.1 "u momentum" optimizer 256 host
// DEVICE: fsdp.buffer @step.device.0 "on the device: u momentum" staging 256 at
// DEVICE-LABEL: fsdp.program @step
// DEVICE: fsdp.launch @k_norm (@step.3[0, 256], @step.6[0, 4])
// DEVICE-NEXT: fsdp.copy @state.1[0, 256] -> @step.device.0[0, 256] "to the device: u momentum"
// DEVICE-NEXT: fsdp.launch @k_update (@block[0, 64], @step.3[0, 256], @state.0[0, 256], @step.device.0[0, 256])
// DEVICE-NEXT: fsdp.copy @step.device.0[0, 256] -> @state.1[0, 256] "to the host: u momentum"
// DEVICE-NEXT: }
// DEVICEFILE-LABEL: fsdp.program @step
// DEVICEFILE: fsdp.copy @state.1[0, 256] -> @step.device.0[0, 256] "from the file: u momentum"
// DEVICEFILE-NEXT: fsdp.launch @k_update (@block[0, 64], @step.3[0, 256], @state.0[0, 256], @step.device.0[0, 256])
// DEVICEFILE-NEXT: fsdp.copy @step.device.0[0, 256] -> @state.1[0, 256] "to the file: u momentum"
// ALLDEVICE-LABEL: fsdp.program @step
// ALLDEVICE-NOT: fsdp.launch {{.*}}(@step.3[
// ALLDEVICE-NOT: fsdp.launch {{.*}}@state
// ALLDEVICE: fsdp.copy @step.device.{{[0-9]+}}[0, 256] -> @state.0[0, 256] "to the host: u parameter"

// State in the file is copied to the host for the update and back after it; a schedule overlaps the copies with compute.
// FILE: fsdp.layout @arena {{.*}}fsdp.file_bytes = 4096
// FILE: fsdp.buffer @state.1 "u momentum" optimizer 256 at 0 {fsdp.file}
// FILE-LABEL: fsdp.program @step
// FILE: fsdp.copy @state.1[0, 256] -> @step.host.[[M:[0-9]+]][0, 256] "from the file: u momentum"
// FILE-NEXT: fsdp.launch @k_update ({{.*}}, @step.host.[[M]][0, 256])
// FILE: fsdp.copy @step.host.[[M]][0, 256] -> @state.1[0, 256] "to the file: u momentum"
// AHEAD: fsdp.copy {{.*}} "from the file: u momentum" {fsdp.channel = 5 : i64, {{.*}}fsdp.id = [[ID:[0-9]+]] : i64
// AHEAD: fsdp.wait [[ID]]
// AHEAD: fsdp.launch @k_update
// AHEAD: fsdp.copy {{.*}} "to the file: u momentum" {fsdp.channel = 6 : i64, {{.*}}fsdp.id = [[BACK:[0-9]+]] : i64
// AHEAD: fsdp.wait [[BACK]]
// BOTH: error: offload: expected none, or each of {{.*}} at most once, joined by +

// A gather reads a device copy of its shard. A reduced gradient is copied to the host, which also computes its norm.
// STATE: fsdp.buffer @state.0 "u parameter" parameters 256 host
// STATE: fsdp.buffer @step.3 "gradient shard" gradients 256 host in @step
// STATE-LABEL: fsdp.program @step
// STATE-NEXT: fsdp.copy @state.0[0, 256] -> @step.device.0[0, 256] "to the device: u parameter"
// STATE-NEXT: fsdp.collective 0 all_gather @step.device.0[0, 256] -> @step.0
// STATE: fsdp.collective 1 reduce_scatter @step.2[0, 512] -> @step.device.1[0, 256]
// STATE-NEXT: fsdp.copy @step.device.1[0, 256] -> @step.3[0, 256] "to the host: gradient shard"
// STATE-NEXT: fsdp.launch @k_norm (@step.3[0, 256], @step.host.{{[0-9]+}}[0, 4])
// STATE-NEXT: fsdp.copy @step.host.{{[0-9]+}}[0, 4] -> @step.6[0, 4] "to the device: norm"
// STATE-NEXT: fsdp.copy @block
// STATE-NEXT: fsdp.launch @k_update (@step.host.{{[0-9]+}}[0, 64], @step.3[0, 256], @state.0[0, 256], @state.1[0, 256])

// A saved activation is copied to the host after its last use in the forward, and back before its next use.
// ACTIVATIONS: fsdp.buffer @step.host.0 "saved" activations 4096 host in @step
// ACTIVATIONS: fsdp.buffer @step.back.1 "saved" activations 4096 in @step
// ACTIVATIONS-LABEL: fsdp.program @step
// ACTIVATIONS: fsdp.launch @k_next (@step.1[0, 4096], @step.4[0, 4096])
// ACTIVATIONS-NEXT: fsdp.copy @step.1[0, 4096] -> @step.host.0[0, 4096] "to the host: saved"
// ACTIVATIONS: fsdp.copy @step.host.0[0, 4096] -> @step.back.1[0, 4096] "to the device: saved"
// ACTIVATIONS-NEXT: fsdp.launch @k_gradient (@step.back.1[0, 4096], @step.2[0, 512])
// SMALL-NOT: fsdp.copy

// PACKED: fsdp.layout @arena {{.*}}host_bytes = {{[1-9]}}
fsdp.layout @arena arena 0 block @block {
  fsdp.buffer @state.0 "u parameter" parameters 256
  fsdp.state_slot @u parameter @state.0 : tensor<64xf32>
  fsdp.buffer @state.1 "u momentum" optimizer 256
  fsdp.state_slot @u momentum @state.1 : tensor<64xf32>
  fsdp.buffer @block "step block" control 64
  fsdp.buffer @input.0 "x" inputs 4096
  fsdp.buffer @step.0 "gathered u" gathered 512 in @step from 0 to 1
  fsdp.buffer @step.1 "saved" activations 4096 in @step from 1 to 19
  fsdp.buffer @step.2 "gradient" staging 512 in @step from 19 to 20
  fsdp.buffer @step.3 "gradient shard" gradients 256 in @step from 20 to 22
  fsdp.buffer @step.4 "even" activations 4096 in @step from 2 to 18
  fsdp.buffer @step.5 "odd" activations 4096 in @step from 3 to 18
  fsdp.buffer @step.6 "norm" control 4 in @step from 21 to 21
}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.collective 0 all_gather @state.0[0, 256] -> @step.0[0, 512] of 64 x f32 over ["shard"] unit @u
  fsdp.launch @k_use(@step.0[0, 512], @input.0[0, 4096], @step.1[0, 4096])
  fsdp.launch @k_next(@step.1[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_next(@step.4[0, 4096], @step.5[0, 4096])
  fsdp.launch @k_next(@step.5[0, 4096], @step.4[0, 4096])
  fsdp.launch @k_gradient(@step.1[0, 4096], @step.2[0, 512])
  fsdp.collective 1 reduce_scatter @step.2[0, 512] -> @step.3[0, 256] of 64 x f32 over ["shard"] reduce sum unit @u
  fsdp.launch @k_norm(@step.3[0, 256], @step.6[0, 4])
  fsdp.launch @k_update(@block[0, 64], @step.3[0, 256], @state.0[0, 256], @state.1[0, 256])
}
