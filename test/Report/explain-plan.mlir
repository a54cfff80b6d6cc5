// RUN: fsdp-opt %s --fsdp-explain-plan -o /dev/null 2>&1 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-explain-plan=json -o /dev/null 2>&1 | FileCheck %s --check-prefix=JSON

// Two replicas of two shards, with three micro-batches: each micro-batch gathers and reduces the unit.
// DOC-BEFORE-BEGIN fsdp-explain-plan
fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 32 : f32 reshard true [
  #fsdp.param<"w", tensor<8x6xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>,
  #fsdp.param<"f", tensor<4xf32>, 48, trainable = false, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.layout @arena arena 1024 block @block attributes {lower_bound = 896 : i64} {
  fsdp.buffer @state.0 "u parameter" parameters 128 at 0
  fsdp.state_slot @u parameter @state.0 : tensor<32xf32>
  fsdp.buffer @state.1 "u first_moment" optimizer 128 at 128
  fsdp.state_slot @u first_moment @state.1 : tensor<32xf32>
  fsdp.buffer @block "step block" control 64 at 256
  fsdp.buffer @step.0 "gathered u" gathered 256 at 320 in @step from 1 to 2
  fsdp.buffer @step.1 "shard of u" gradients 128 at 576 in @step from 2 to 3
  fsdp.buffer @step.2 "norm" control 4 at 704 in @step from 3 to 3
  fsdp.buffer @step.3 "sum of u" gradients 128 at 768 in @step from 3 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.loop 3 {
    fsdp.collective 0 all_gather @state.0[0, 128] -> @step.0[0, 256] of 32 x f32 over ["shard"] unit @u "u"
    fsdp.collective 1 reduce_scatter @step.0[0, 256] -> @step.1[0, 128] of 32 x f32 over ["shard"] reduce avg unit @u "u"
  }
  fsdp.collective 2 all_reduce @block[0, 4] -> @step.2[0, 4] of 1 x f32 over ["replicate", "shard"] reduce sum
  fsdp.collective 3 all_reduce @step.1[0, 128] -> @step.3[0, 128] of 32 x f32 over ["replicate"] reduce avg unit @u
}
// DOC-BEFORE-END

// CHECK: Mesh replicate=2 shard=2: 4 ranks
// CHECK: parameters {{ *}}128 {{ *}}128 B unsharded 208 B
// CHECK: gradients {{ *}}256 {{ *}}256 B unsharded 192 B
// CHECK: optimizer {{ *}}128 {{ *}}128 B unsharded 192 B
// CHECK: control {{ *}}128
// CHECK: peak (arena) {{ *}}1024 {{ *}}1.0 KiB 114.3 % of the lower bound
// CHECK: padding {{ *}}48
// CHECK: owned {{ *}}512 B {{ *}}592 B unsharded: 1/1.16
// CHECK: Memory peaks at command 2 of @step (reduce_scatter u): 704 B
// CHECK-NEXT: = activations 0 B + gathered 256 B + owned 384 B + others 64 B
// CHECK-NEXT: the largest buffers:
// CHECK-NEXT: gathered 256 256 B gathered u
// CHECK: all_gather over shard f32 3 x 768 B payload 384 B on the wire
// CHECK: reduce_scatter over shard f32 3 x 768 B payload 384 B on the wire
// CHECK: all_reduce scalars over replicate x shard f32 1 x 4 B payload 6 B on the wire
// CHECK: all_reduce over replicate f32 1 x 128 B payload 128 B on the wire
// CHECK: Units
// CHECK-NEXT: u 2 parameters 52 x f32 128 B owned 256 B gathered 48 B padding kept until the backward
// CHECK: step 0 launches, 8 collectives, 0 copies, 0 fills

// JSON: "memory": {
// JSON-NEXT: "parameters": 128,
// JSON-NEXT: "gradients": 256,
// JSON-NEXT: "optimizer": 128,
// JSON-NEXT: "activations": 0,
// JSON-NEXT: "gathered": 256,
// JSON-NEXT: "staging": 0,
// JSON-NEXT: "workspace": 0,
// JSON: "peak": 1024,
// JSON: "moment_of_peak": {
// JSON: "bytes": 704,
// JSON-NEXT: "owned": 384,
// JSON: "units": [
// JSON-NEXT: {
// JSON-NEXT: "name": "u",
// JSON-NEXT: "parameters": 2,
// JSON-NEXT: "elements": 52,
// JSON-NEXT: "trained_elements": 48,
// JSON-NEXT: "dtype": "f32",
// JSON-NEXT: "gather_dtype": "f32",
// JSON-NEXT: "shard_bytes": 128,
// JSON-NEXT: "optimizer_bytes": 128,
// JSON-NEXT: "gathered_bytes": 256,
// JSON-NEXT: "kept_bytes": 0,
// JSON-NEXT: "padding_bytes": 48,
// JSON-NEXT: "reshard": "kept until the backward",
// JSON: "communication": [
// JSON: "kind": "all_gather",
// JSON-NEXT: "axis": "shard",
// JSON-NEXT: "dtype": "f32",
// JSON-NEXT: "bytes": 768,
// JSON-NEXT: "wire_bytes": 384,
// JSON-NEXT: "count": 3,
