// The momentum is in the host's arena, so the update runs there on copies of its other operands.
// RUN: fsdp-opt %s '--fsdp-offload-buffers=offload=optimizer' | FileCheck %s

// CHECK: fsdp.buffer @state.1 "u momentum" optimizer 256 host
// CHECK: fsdp.copy @step.0[0, 256] -> @step.host.0[0, 256]
// CHECK: fsdp.launch @k_update (@step.host.0[0, 256], @step.host.1[0, 256], @state.1[0, 256])
// CHECK: fsdp.copy @step.host.1[0, 256] -> @state.0[0, 256]

// DOC-BEFORE-BEGIN fsdp-offload-buffers
fsdp.unit @u shards 1 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<64xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k_update(%g: tensor<64xf32>, %w: tensor<64xf32> {fsdp.inout = 0 : i64},
    %m: tensor<64xf32> {fsdp.inout = 1 : i64}) -> (tensor<64xf32>, tensor<64xf32>) attributes {fsdp.kernel}
fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "u parameter" parameters 256
  fsdp.state_slot @u parameter @state.0 : tensor<64xf32>
  fsdp.buffer @state.1 "u momentum" optimizer 256
  fsdp.state_slot @u momentum @state.1 : tensor<64xf32>
  fsdp.buffer @step.0 "gradient" gradients 256 in @step from 0 to 1
}
fsdp.program @step layout @arena {
  fsdp.fill @step.0[0, 256]
  fsdp.launch @k_update (@step.0[0, 256], @state.0[0, 256], @state.1[0, 256])
}
// DOC-BEFORE-END
