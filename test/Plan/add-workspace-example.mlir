// The kernel needs 4096 bytes of scratch memory per worker.
// RUN: fsdp-opt %s '--fsdp-add-workspace=threads-per-rank=2' | FileCheck %s

// CHECK: fsdp.layout @arena arena 12288 attributes {lower_bound = 64 : i64, worker_bytes = 4096 : i64, workers = 2 : i64, workspace_offset = 4096 : i64}

// DOC-BEFORE-BEGIN fsdp-add-workspace
module attributes {fsdp.kernel_scratch = {k = array<i64: 0, 4096>}} {
  func.func private @k(%x: tensor<16xf32> {fsdp.inout = 0 : i64}) -> tensor<16xf32> attributes {fsdp.kernel}
  fsdp.layout @arena arena 64 attributes {lower_bound = 64 : i64} {
    fsdp.buffer @state.0 "s" parameters 64 at 0
  }
  fsdp.program @step layout @arena {
    fsdp.launch @k (@state.0[0, 64])
  }
}
// DOC-BEFORE-END
