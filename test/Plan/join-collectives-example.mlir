// No op is between the start and the await, so the two become one op.
// RUN: fsdp-opt %s --fsdp-join-collectives | FileCheck %s

// CHECK: fsdp.all_reduce %{{.*}} @mesh ["shard"] sum
// CHECK-NOT: fsdp.await

// DOC-BEFORE-BEGIN fsdp-join-collectives
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %t = fsdp.all_reduce_start %x @mesh ["shard"] sum channel 1 id 0 : tensor<16xf32> -> !fsdp.token<tensor<16xf32>>
  %r = fsdp.await %t : !fsdp.token<tensor<16xf32>>
  return %r : tensor<16xf32>
}
// DOC-BEFORE-END
