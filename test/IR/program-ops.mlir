// RUN: fsdp-opt %s --verify-roundtrip | FileCheck %s

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 16 : f32 reshard true [
  #fsdp.param<"w", tensor<16xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
// CHECK: func.func private @k
func.func private @k(%x: tensor<16xf32>, %s: tensor<16xf32> {fsdp.inout = 0 : i64},
                     %o: tensor<4xi1> {fsdp.out = 1 : i64}) -> (tensor<16xf32>, tensor<4xi1>)
    attributes {fsdp.kernel}
// CHECK: %{{.*}}:2 = fsdp.kernel_call @k(%{{.*}}, %{{.*}}) inplace [1, -1]
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %r:2 = fsdp.kernel_call @k(%x, %x) inplace [1, -1]
      : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<4xi1>)
  return %r#0 : tensor<16xf32>
}
// CHECK: fsdp.layout @arena arena 4096 block @block rank @rank attributes {
// CHECK-SAME: host_bytes = 64 : i64, lower_bound = 512 : i64, shared_bytes = 64 : i64, worker_bytes = 128 : i64, workers = 2 : i64, workspace_offset = 1024 : i64}
fsdp.layout @arena arena 4096 block @block rank @rank attributes {
    host_bytes = 64 : i64, lower_bound = 512 : i64, shared_bytes = 64 : i64, worker_bytes = 128 : i64, workers = 2 : i64,
    workspace_offset = 1024 : i64} {
  // CHECK: fsdp.buffer @s "u parameter" parameters 64 at 0
  fsdp.buffer @s "u parameter" parameters 64 at 0
  // CHECK: fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.state_slot @u parameter @s : tensor<16xf32>
  fsdp.buffer @block "step block" control 64 at 64
  fsdp.buffer @rank "rank block" control 32 at 128
  fsdp.buffer @i "ids" inputs 256 at 192
  // CHECK: fsdp.input_slot "tokens" @i : tensor<2x16xi64> limit 7 or [-100] micro_batches 2
  fsdp.input_slot "tokens" @i : tensor<2x16xi64> limit 7 or [-100] micro_batches 2
  // CHECK: fsdp.buffer @g "gathered u" gathered 128 at 448 in @step from 0 to 8
  fsdp.buffer @g "gathered u" gathered 128 at 448 in @step from 0 to 8
  // CHECK: fsdp.buffer @h "moments" optimizer 64 host at 0
  fsdp.buffer @h "moments" optimizer 64 host at 0
  // CHECK: fsdp.buffer @m "mask" activations 4
  fsdp.buffer @m "mask" activations 4
}
// CHECK: fsdp.program @step layout @arena mesh @mesh {
fsdp.program @step layout @arena mesh @mesh {
  // CHECK-NEXT: fsdp.collective 0 all_gather @s[0, 64] -> @g[0, 128] of 16 x f32 over ["shard"] channel 1 unit @u "u"
  fsdp.collective 0 all_gather @s[0, 64] -> @g[0, 128] of 16 x f32 over ["shard"] channel 1 unit @u "u"
  // CHECK-NEXT: fsdp.wait 0
  fsdp.wait 0
  // CHECK-NEXT: fsdp.collective 1 reduce_scatter @g[0, 128] -> @s[0, 64] of 16 x f32 over ["shard"] reduce avg
  fsdp.collective 1 reduce_scatter @g[0, 128] -> @s[0, 64] of 16 x f32 over ["shard"] reduce avg
  // CHECK-NEXT: fsdp.collective 12 shift @s[0, 4] -> @s[4, 4] of 1 x f32 over ["shard"]
  fsdp.collective 12 shift @s[0, 4] -> @s[4, 4] of 1 x f32 over ["shard"]
  // CHECK-NEXT: fsdp.collective 2 broadcast @s[0, 4] -> @s[4, 4] of 1 x f32 over ["shard"] root 1
  fsdp.collective 2 broadcast @s[0, 4] -> @s[4, 4] of 1 x f32 over ["shard"] root 1
  // CHECK-NEXT: fsdp.fill @g[0, 64] piece 64 of ["shard"]
  fsdp.fill @g[0, 64] piece 64 of ["shard"]
  // CHECK-NEXT: fsdp.collective 3 all_gather @g[0, 64] piece 64 of ["shard"] -> @g[0, 128] of 16 x f32 over ["shard"]
  fsdp.collective 3 all_gather @g[0, 64] piece 64 of ["shard"] -> @g[0, 128] of 16 x f32 over ["shard"]
  // CHECK-NEXT: fsdp.collective 4 all_reduce @g[0, 64] -> @g[0, 64] of 16 x f32 over ["shard"] reduce avg
  fsdp.collective 4 all_reduce @g[0, 64] -> @g[0, 64] of 16 x f32 over ["shard"] reduce avg
  // CHECK-NEXT: fsdp.loop 2 {
  fsdp.loop 2 {
    // CHECK-NEXT: fsdp.launch @k (@g[64, 64], @s[0, 64], @m[0, 4]) "map w"
    fsdp.launch @k (@g[64, 64], @s[0, 64], @m[0, 4]) "map w"
    // CHECK-NEXT: fsdp.copy @i[0, 64] step 128 -> @g[0, 64]
    fsdp.copy @i[0, 64] step 128 -> @g[0, 64]
  }
  // CHECK: fsdp.fill @m[0, 4] "mask"
  fsdp.fill @m[0, 4] "mask"
  // CHECK-NEXT: fsdp.initialise @u parameter 0 "w"
  fsdp.initialise @u parameter 0 "w"
}
