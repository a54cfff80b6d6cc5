// RUN: fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=full | FileCheck %s
// RUN: fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=row | FileCheck %s --check-prefix=KEEP
// RUN: sed -e 's/\[2\]/[1]/; s/2 x 64/1 x 128/; s/tensor<64xf32>/tensor<128xf32>/g' %s | fsdp-opt --fsdp-rematerialise=activation-checkpointing=full | FileCheck %s
// RUN: fsdp-opt %s --fsdp-rematerialise | FileCheck %s --check-prefix=NONE

// A layer's inner results are computed again before their first reader in the backward, from the layer's input and the
// parameters gathered for the backward. The outputs of the layers and all results of the last unit are kept. The same holds
// on one rank, where gathered parameters are views of the shard.

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @a shards 2 x 64 : f32 reshard true [
  #fsdp.param<"a.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @b shards 2 x 64 : f32 reshard true [
  #fsdp.param<"b.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @last shards 2 x 64 : f32 reshard true [
  #fsdp.param<"last.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]

func.func private @k_inner(%x: tensor<128xf32>, %w: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "row"} {
  return %x : tensor<128xf32>
}
func.func private @k_hand(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  return %x : tensor<128xf32>
}

// CHECK-LABEL: func.func @step
// NONE-LABEL: func.func @step
// NONE-COUNT-3: call @k_inner
// NONE-NOT: call @k_inner
// KEEP-LABEL: func.func @step
// KEEP-COUNT-3: call @k_inner
// KEEP-NOT: call @k_inner
func.func @step(%pa: tensor<64xf32> {fsdp.unit = @a}, %pb: tensor<64xf32> {fsdp.unit = @b}, %pl: tensor<64xf32> {fsdp.unit = @last},
                %x: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %a = fsdp.unshard %pa @a site 0 : tensor<64xf32> -> tensor<128xf32>
  %a0 = fsdp.kernel_call @k_inner(%x, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  // CHECK: %[[A:.*]] = fsdp.kernel_call @k_hand
  %a1 = fsdp.kernel_call @k_hand(%a0, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b = fsdp.unshard %pb @b site 0 : tensor<64xf32> -> tensor<128xf32>
  %b0 = fsdp.kernel_call @k_inner(%a1, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b1 = fsdp.kernel_call @k_hand(%b0, %a1) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %l = fsdp.unshard %pl @last site 0 : tensor<64xf32> -> tensor<128xf32>
  // CHECK: %[[L0:.*]] = fsdp.kernel_call @k_inner
  %l0 = fsdp.kernel_call @k_inner(%b1, %l) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g0 = fsdp.kernel_call @k_hand(%l0, %l) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g1 = fsdp.kernel_call @k_hand(%g0, %l0) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  // CHECK: %[[B:.*]] = fsdp.unshard %{{.*}} @b site 1
  // CHECK-NEXT: %[[B0:.*]] = fsdp.kernel_call @k_inner(%[[A]], %[[B]])
  // CHECK-NEXT: %[[G2:.*]] = fsdp.kernel_call @k_hand(%{{.*}}, %[[B0]])
  %g2 = fsdp.kernel_call @k_hand(%g1, %b0) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b2 = fsdp.unshard %pb @b site 1 : tensor<64xf32> -> tensor<128xf32>
  %g3 = fsdp.kernel_call @k_hand(%g2, %b2) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  // CHECK: %[[A2:.*]] = fsdp.unshard %{{.*}} @a site 1
  %a2 = fsdp.unshard %pa @a site 1 : tensor<64xf32> -> tensor<128xf32>
  // CHECK-NEXT: %[[A0:.*]] = fsdp.kernel_call @k_inner(%{{.*}}, %[[A2]])
  // CHECK-NEXT: fsdp.kernel_call @k_hand(%{{.*}}, %[[A0]])
  %g4 = fsdp.kernel_call @k_hand(%g3, %a0) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g5 = fsdp.kernel_call @k_hand(%g4, %a2) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  return %g5, %g4, %g3 : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
