// RUN: fsdp-opt %s --fsdp-accumulate-gradients --cse --split-input-file --verify-diagnostics | FileCheck %s

// First the targets of all micro-batches are counted and added over the ranks. Each loss is then weighted by its share.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 2 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4x5xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
#none = affine_map<() -> ()>
// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[T:[a-z0-9]+]]: tensor<3x4xi64> {fsdp.batch = "targets"}) ->
// CHECK:         %[[SUM:.*]] = scf.for %[[I:.*]] = %c0 to %c3 step %c1
// CHECK:           tensor.extract_slice %[[T]][%[[I]], 0] [1, 4] [1, 1]
// CHECK:           linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK:             arith.cmpi ne, %{{.*}}, %c-100
// CHECK:         %[[TOTAL:.*]] = fsdp.all_reduce %[[SUM]] @mesh ["shard"] sum : tensor<f64>
// CHECK:         scf.for
// CHECK:           %[[COUNT:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK:           %[[W:.*]] = linalg.generic {{.*}} ins(%[[COUNT]], %[[TOTAL]] : tensor<f64>, tensor<f64>) outs(%{{.*}} : tensor<f32>)
// CHECK:             arith.cmpf ogt
// CHECK:             arith.mulf %{{.*}}, %cst{{.*}} : f64
// CHECK:             arith.divf
// CHECK:             arith.truncf
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %t: tensor<4xi64> {fsdp.batch = "targets"}, %n: tensor<f32> {fsdp.loss_weight})
    -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 3 : i64} {
  %w = fsdp.unshard %s @u site 0 : tensor<64xf32> -> tensor<4x5xf32>
  %l, %lse = fsdp.cross_entropy %w, %t ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %d = fsdp.cross_entropy_grad %w, %t, %lse, %n ignore -100 : tensor<4x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32> -> tensor<4x5xf32>
  %g = fsdp.reduce_scatter @u avg params [0] (%d) : (tensor<4x5xf32>) -> tensor<64xf32>
  return %l, %g : tensor<f32>, tensor<64xf32>
}

// -----

// Targets that depend on a parameter cannot be counted before the step.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4x5xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
#in = affine_map<(i) -> (i)>
func.func @step(%s: tensor<64xf32> {fsdp.unit = @u}, %t: tensor<4xi64> {fsdp.batch = "targets"}, %n: tensor<f32> {fsdp.loss_weight})
    -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  // expected-error@+1 {{expected targets that depend on the batch alone, so that they can be counted before a step; use --grad-divide=average}}
  %w = fsdp.unshard %s @u site 0 : tensor<64xf32> -> tensor<4x5xf32>
  %column = tensor.extract_slice %w[0, 0] [4, 1] [1, 1] : tensor<4x5xf32> to tensor<4xf32>
  %e = tensor.empty() : tensor<4xi64>
  %made = linalg.generic {indexing_maps = [#in, #in], iterator_types = ["parallel"]} ins(%column : tensor<4xf32>) outs(%e : tensor<4xi64>) {
  ^bb0(%a: f32, %o: i64):
    %0 = arith.fptosi %a : f32 to i64
    linalg.yield %0 : i64
  } -> tensor<4xi64>
  %l, %lse = fsdp.cross_entropy %w, %made ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %d = fsdp.cross_entropy_grad %w, %made, %lse, %n ignore -100 : tensor<4x5xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32> -> tensor<4x5xf32>
  %g = fsdp.reduce_scatter @u avg params [0] (%d) : (tensor<4x5xf32>) -> tensor<64xf32>
  return %l, %g : tensor<f32>, tensor<64xf32>
}
