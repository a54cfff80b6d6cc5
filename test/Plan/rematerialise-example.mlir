// The call that computes %a0 is repeated for the backward; calls of the last unit are not repeated.
// RUN: fsdp-opt %s '--fsdp-rematerialise=activation-checkpointing=full' | FileCheck %s

// CHECK: %[[A:.*]] = fsdp.unshard %{{.*}} @a site 1
// CHECK-NEXT: %[[A0:.*]] = fsdp.kernel_call @k(%{{.*}}, %[[A]])
// CHECK-NEXT: fsdp.kernel_call @k(%{{.*}}, %[[A0]])

// DOC-BEFORE-BEGIN fsdp-rematerialise
// DOC-AFTER: @step
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @a shards 2 x 64 : f32 reshard true [
  #fsdp.param<"a.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @last shards 2 x 64 : f32 reshard true [
  #fsdp.param<"last.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @k(%x: tensor<128xf32>, %w: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64})
    -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "row"}
func.func @step(%pa: tensor<64xf32> {fsdp.unit = @a}, %pl: tensor<64xf32> {fsdp.unit = @last}, %x: tensor<128xf32>)
    -> (tensor<64xf32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %a = fsdp.unshard %pa @a site 0 : tensor<64xf32> -> tensor<128xf32>
  %a0 = fsdp.kernel_call @k(%x, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %a1 = fsdp.kernel_call @k(%a0, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %l = fsdp.unshard %pl @last site 0 : tensor<64xf32> -> tensor<128xf32>
  %l0 = fsdp.kernel_call @k(%a1, %l) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g0 = fsdp.kernel_call @k(%l0, %l) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %r = fsdp.reduce_scatter @last avg params [0] (%g0) : (tensor<128xf32>) -> tensor<64xf32>
  %b = fsdp.unshard %pa @a site 1 : tensor<64xf32> -> tensor<128xf32>
  %g1 = fsdp.kernel_call @k(%g0, %a0) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g2 = fsdp.kernel_call @k(%g1, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %s = fsdp.reduce_scatter @a avg params [0] (%g2) : (tensor<128xf32>) -> tensor<64xf32>
  return %r, %s : tensor<64xf32>, tensor<64xf32>
}
// DOC-BEFORE-END
