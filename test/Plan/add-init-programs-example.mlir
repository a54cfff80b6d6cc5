// The state is filled with zeros, then the parameter gets its initial values.
// RUN: fsdp-opt %s --fsdp-add-init-programs | FileCheck %s

// CHECK: fsdp.program @init layout @arena {
// CHECK-NEXT: fsdp.fill @state.0[0, 256]
// CHECK-NEXT: fsdp.initialise @u parameter 0 "w"
// CHECK-NEXT: fsdp.fill @state.1[0, 256]

// DOC-BEFORE-BEGIN fsdp-add-init-programs
// DOC-AFTER: fsdp.program
fsdp.unit @u shards 1 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<64xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "u parameter" parameters 256
  fsdp.state_slot @u parameter @state.0 : tensor<64xf32>
  fsdp.buffer @state.1 "u momentum" optimizer 256
  fsdp.state_slot @u momentum @state.1 : tensor<64xf32>
}
// DOC-BEFORE-END
