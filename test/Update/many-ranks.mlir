// RUN: fsdp-opt %s --fsdp-shard="mesh=shard=20000" --fsdp-add-backward --fsdp-update | FileCheck %s

// A loop sums the norm over the shards, instead of an op or operand per shard. The number of ops is therefore
// independent of the number of ranks.
// CHECK-LABEL: func.func @reference
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<f32>)
// CHECK: %[[AT:.*]] = arith.muli %[[I]], %c64
// CHECK: tensor.extract_slice %{{.*}}[%[[AT]]] [64] [1] : tensor<1280000xf32> to tensor<64xf32>
// CHECK: %[[X:.*]] = tensor.extract_slice %{{.*}}[0] [1] [1] : tensor<1xf32> to tensor<f32>
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<f32>) outs(%[[S]] : tensor<f32>)
// CHECK: arith.addf
// CHECK: scf.yield
// CHECK: ins(%{{.*}}, %[[SUM]] :
func.func @loss(%k: tensor<4xf32> {fsdp.param = "k", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
                %x: tensor<4xf32> {fsdp.batch = "x"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%k, %x : tensor<4xf32>, tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
