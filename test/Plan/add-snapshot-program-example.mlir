// Each state is copied to a persistent buffer in host memory.
// RUN: fsdp-opt %s --fsdp-add-snapshot-program | FileCheck %s
// RUN: fsdp-opt %s --fsdp-add-snapshot-program --fsdp-pack-arenas --fsdp-verify-planned | FileCheck %s --check-prefix=PACKED

// CHECK: fsdp.layout @arena arena 0
// CHECK: fsdp.buffer @snapshot "snapshot of u parameter" snapshot 256 host
// CHECK-NEXT: fsdp.buffer @snapshot_0 "snapshot of u momentum" snapshot 128 host
// CHECK: fsdp.program @snapshot layout @arena {
// CHECK-NEXT: fsdp.copy @state.0[0, 256] -> @snapshot[0, 256] "snapshot of u parameter"
// CHECK-NEXT: fsdp.copy @state.1[0, 128] -> @snapshot_0[0, 128] "snapshot of u momentum"

// The copies are neighbours after other buffers that always live, and no program's buffers are among them.
// PACKED: fsdp.layout @arena arena 256 attributes {host_bytes = 576 : i64
// PACKED: fsdp.buffer @state.1 "u momentum" optimizer 128 host at 0
// PACKED: fsdp.buffer @step.0 "x" staging 64 host at 512 in @step from 0 to 1
// PACKED: fsdp.buffer @snapshot "snapshot of u parameter" snapshot 256 host at 128
// PACKED: fsdp.buffer @snapshot_0 "snapshot of u momentum" snapshot 128 host at 384

// DOC-BEFORE-BEGIN fsdp-add-snapshot-program
// DOC-AFTER: fsdp.program
fsdp.unit @u shards 1 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<64xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "u parameter" parameters 256
  fsdp.state_slot @u parameter @state.0 : tensor<64xf32>
  fsdp.buffer @state.1 "u momentum" optimizer 128 host
  fsdp.state_slot @u momentum @state.1 : tensor<64xbf16>
  fsdp.buffer @step.0 "x" staging 64 host in @step from 0 to 1
}
// DOC-BEFORE-END
