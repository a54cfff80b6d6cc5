// The axis context: the gather of split values has a reduce-scatter as adjoint, the own piece has zeros around it, and
// shared cotangents are divided by the number of ranks.
// RUN: fsdp-opt %s --fsdp-add-backward | FileCheck %s
// CHECK-LABEL: func.func @f
// CHECK: fsdp.all_gather %{{.*}} @mesh ["context"] : tensor<8xf32> -> tensor<16xf32>
// CHECK-NOT: fsdp.share_cotangent
// CHECK: arith.constant 5.000000e-01 : f32
// CHECK: arith.mulf
// CHECK: fsdp.flat_reduce_scatter %{{.*}} @mesh ["context"] sum : tensor<16xf32> -> tensor<8xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<i64>) outs(%{{.*}} : tensor<2x8xf32>)
// CHECK: arith.cmpi eq
// CHECK: return
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>] context 2
func.func @f(%w: tensor<16xf32> {fsdp.param = "w"}, %part: tensor<i64> {fsdp.key = "context"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %own = fsdp.own_piece %w @mesh ["context"] : tensor<16xf32> -> tensor<8xf32>
  %all = fsdp.all_gather %own @mesh ["context"] : tensor<8xf32> -> tensor<16xf32>
  %y = fsdp.share_cotangent %all @mesh ["context"] : tensor<16xf32>
  %e = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%y : tensor<16xf32>) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
