// RUN: fsdp-opt %s --verify-roundtrip | FileCheck %s

// CHECK: fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2, 2]>]
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2, 2]>]

// CHECK: fsdp.unit @h.0 shards 4 x 16 : f32 reshard true
// CHECK-SAME: #fsdp.param<"h.0.w", tensor<4x8xf32>, 0, trainable = true, decay = true, init = <normal, 0.000000e+00, 2.000000e-02>>
fsdp.unit @h.0 shards 4 x 16 : f32 reshard true [
  #fsdp.param<"h.0.w", tensor<4x8xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"h.0.b", tensor<8xf32>, 32, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// CHECK: fsdp.unit @h.1 shards 4 x 16 : f32 reshard false hoisted
// CHECK-SAME: placement <parameters = [], gradients = ["shard"], optimizer = ["shard", "replicate"]>
fsdp.unit @h.1 shards 4 x 16 : f32 reshard false hoisted [] placement <parameters = [], gradients = ["shard"], optimizer = ["shard", "replicate"]>

// CHECK: fsdp.unit @h.2 shards 4 x 16 : f32 reshard true within 2 []
fsdp.unit @h.2 shards 4 x 16 : f32 reshard true within 2 []

// CHECK: fsdp.unit @table shards 2 x 64 : f32 reshard false rows
fsdp.unit @table shards 2 x 64 : f32 reshard false rows [
  #fsdp.param<"table", tensor<16x8xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]

// CHECK-LABEL: func.func @rows
func.func @rows(%s: tensor<64xf32> {fsdp.unit = @table}, %ids: tensor<2x3xi32>, %g: tensor<6x8xbf16>, %flat: tensor<6xi32>) -> tensor<64xf32> {
  // CHECK: fsdp.unshard_rows %{{.*}}[%{{.*}}] @table : tensor<64xf32>, tensor<2x3xi32> -> tensor<2x3x8xbf16>
  %e = fsdp.unshard_rows %s[%ids] @table : tensor<64xf32>, tensor<2x3xi32> -> tensor<2x3x8xbf16>
  // CHECK: fsdp.reduce_rows @table avg %{{.*}} at %{{.*}} : tensor<6x8xbf16>, tensor<6xi32> -> tensor<64xf32>
  %r = fsdp.reduce_rows @table avg %g at %flat : tensor<6x8xbf16>, tensor<6xi32> -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// CHECK-LABEL: func @collectives
func.func @collectives(%s: tensor<16xf32> {fsdp.unit = @h.0}, %x: tensor<4x8xf32>) -> tensor<16xf32> {
  // CHECK: fsdp.unshard %{{.*}} @h.0 site 1 : tensor<16xf32> -> tensor<4x8xbf16>, tensor<8xbf16>
  %w:2 = fsdp.unshard %s @h.0 site 1 : tensor<16xf32> -> tensor<4x8xbf16>, tensor<8xbf16>
  // CHECK: fsdp.shard @h.0(%{{.*}}) : (tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<16xbf16>
  %t = fsdp.shard @h.0 (%w#0, %w#1) : (tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<16xbf16>
  // CHECK: fsdp.reduce_scatter @h.0 avg params [0](%{{.*}}) : (tensor<4x8xf32>) -> tensor<16xf32>
  %g = fsdp.reduce_scatter @h.0 avg params [0] (%x) : (tensor<4x8xf32>) -> tensor<16xf32>
  // CHECK: fsdp.all_reduce %{{.*}} @mesh ["replicate", "shard"] sum : tensor<16xf32>
  %r = fsdp.all_reduce %g @mesh ["replicate", "shard"] sum : tensor<16xf32>
  // CHECK: fsdp.all_gather %{{.*}} @mesh ["shard"] : tensor<16xf32> -> tensor<64xf32>
  %a = fsdp.all_gather %r @mesh ["shard"] : tensor<16xf32> -> tensor<64xf32>
  // CHECK: fsdp.flat_reduce_scatter %{{.*}} @mesh ["shard"] avg : tensor<64xf32> -> tensor<16xf32>
  %f = fsdp.flat_reduce_scatter %a @mesh ["shard"] avg : tensor<64xf32> -> tensor<16xf32>
  // CHECK: fsdp.own_piece %{{.*}} @mesh ["shard"] : tensor<64xf32> -> tensor<16xf32>
  %p = fsdp.own_piece %a @mesh ["shard"] : tensor<64xf32> -> tensor<16xf32>
  // CHECK: fsdp.all_gather %{{.*}} @mesh ["shard:2"] : tensor<16xf32> -> tensor<32xf32>
  %n = fsdp.all_gather %r @mesh ["shard:2"] : tensor<16xf32> -> tensor<32xf32>
  // CHECK: fsdp.shift %{{.*}} @mesh ["shard"] site 1 : tensor<16xf32>
  %moved = fsdp.shift %r @mesh ["shard"] site 1 : tensor<16xf32>
  // CHECK: fsdp.broadcast %{{.*}} @mesh ["shard"] root 3 : tensor<16xf32>
  %b = fsdp.broadcast %r @mesh ["shard"] root 3 : tensor<16xf32>
  return %b : tensor<16xf32>
}

// CHECK-LABEL: func @tensors
func.func @tensors(%table: tensor<10x4xf32>, %ids: tensor<2x3xi64>, %logits: tensor<6x10xf32>, %t: tensor<6xi64>, %c: tensor<i64>) -> tensor<10x4xf32> {
  // CHECK: fsdp.gather_rows %{{.*}}[%{{.*}}] : tensor<10x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  %e = fsdp.gather_rows %table[%ids] : tensor<10x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  // CHECK: fsdp.scatter_add_rows %{{.*}} at %{{.*}} : tensor<2x3x4xf32>, tensor<2x3xi64> -> tensor<10x4xf32>
  %s = fsdp.scatter_add_rows %e at %ids : tensor<2x3x4xf32>, tensor<2x3xi64> -> tensor<10x4xf32>
  // CHECK: fsdp.scatter_add_rows %{{.*}} at %{{.*}} into %{{.*}}(tensor<10x4xf32>)
  %s2 = fsdp.scatter_add_rows %e at %ids into %s (tensor<10x4xf32>) : tensor<2x3x4xf32>, tensor<2x3xi64> -> tensor<10x4xf32>
  // CHECK: fsdp.cross_entropy %{{.*}}, %{{.*}} ignore -100 : tensor<6x10xf32>, tensor<6xi64> -> tensor<f32>, tensor<6xf32>
  %loss, %lse = fsdp.cross_entropy %logits, %t ignore -100 : tensor<6x10xf32>, tensor<6xi64> -> tensor<f32>, tensor<6xf32>
  // CHECK: fsdp.cross_entropy_grad
  %g = fsdp.cross_entropy_grad %logits, %t, %lse, %loss ignore -100
    : tensor<6x10xf32>, tensor<6xi64>, tensor<6xf32>, tensor<f32> -> tensor<6x10xf32>
  // CHECK: fsdp.cross_entropy %{{.*}}, %{{.*}} classes %[[C:.*]] over @mesh ["shard"] ignore 3 : tensor<6x10xf32>, tensor<6xi64>, tensor<i64> -> tensor<f32>, tensor<6xf32>
  %loss2, %lse2 = fsdp.cross_entropy %logits, %t classes %c over @mesh ["shard"] ignore 3
    : tensor<6x10xf32>, tensor<6xi64>, tensor<i64> -> tensor<f32>, tensor<6xf32>
  // CHECK: fsdp.cross_entropy_grad {{.*}} classes %[[C]] ignore 3 : tensor<6x10xf32>, tensor<6xi64>, tensor<6xf32>, tensor<f32>, tensor<i64> -> tensor<6x10xf32>
  %g2 = fsdp.cross_entropy_grad %logits, %t, %lse2, %loss2 classes %c ignore 3
    : tensor<6x10xf32>, tensor<6xi64>, tensor<6xf32>, tensor<f32>, tensor<i64> -> tensor<6x10xf32>
  return %s2 : tensor<10x4xf32>
}

// CHECK-LABEL: func @dispatch
func.func @dispatch(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}) inplace [0] {kind = "map"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  %y = fsdp.dispatch (%a, %b) inplace [0] {kind = "map"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%x: tensor<8xf32>, %z: tensor<8xf32>):
    %s = arith.addf %x, %z : tensor<8xf32>
    // CHECK: fsdp.yield %{{.*}} : tensor<8xf32>
    fsdp.yield %s : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}
