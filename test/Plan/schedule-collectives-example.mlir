// The gather of the second unit starts before the product of the first unit.
// RUN: fsdp-opt %s --fsdp-schedule-collectives | FileCheck %s

// CHECK: fsdp.collective 0 all_gather
// CHECK-NEXT: fsdp.collective 1 all_gather
// CHECK-NEXT: fsdp.wait 0
// CHECK-NEXT: fsdp.launch @k
// CHECK-NEXT: fsdp.wait 1
// CHECK-NEXT: fsdp.launch @k

// DOC-BEFORE-BEGIN fsdp-schedule-collectives
// DOC-AFTER: @step
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
func.func private @k(%a: tensor<4096x4096xf32>, %w: tensor<1048576xf32>, %o: tensor<4096x4096xf32> {fsdp.out = 0 : i64})
    -> tensor<4096x4096xf32> attributes {fsdp.kernel} {
  %m = linalg.matmul ins(%a, %a : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%o : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %m : tensor<4096x4096xf32>
}
fsdp.layout @arena arena 0 {
  fsdp.buffer @state.0 "p0" parameters 2097152
  fsdp.buffer @state.1 "p1" parameters 2097152
  fsdp.buffer @input.0 "x" inputs 67108864
  fsdp.buffer @step.0 "gathered 0" gathered 4194304 in @step from 0 to 1
  fsdp.buffer @step.1 "gathered 1" gathered 4194304 in @step from 2 to 3
}
fsdp.program @step layout @arena mesh @mesh {
  fsdp.collective 0 all_gather @state.0[0, 2097152] -> @step.0[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k (@input.0[0, 67108864], @step.0[0, 4194304], @input.0[0, 67108864])
  fsdp.collective 1 all_gather @state.1[0, 2097152] -> @step.1[0, 4194304] of 524288 x f32 over ["shard"]
  fsdp.launch @k (@input.0[0, 67108864], @step.1[0, 4194304], @input.0[0, 67108864])
}
// DOC-BEFORE-END
