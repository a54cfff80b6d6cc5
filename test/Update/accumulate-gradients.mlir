// RUN: fsdp-opt %s --fsdp-accumulate-gradients --cse --split-input-file | FileCheck %s

// Mean over 2 replicas with 2 micro-batches each, on 3 shards: the reference nests one loop per level.
// The step has a loop over micro-batches and collectives for the other levels.

// DOC-BEFORE-BEGIN fsdp-accumulate-gradients
fsdp.mesh @mesh [#fsdp.axis<"replicate", [2]>, #fsdp.axis<"shard", [3]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 3 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<5x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"b", tensor<4xf32>, 32, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// DOC-BEFORE-END

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[P:[a-z0-9]+]]: tensor<64xf32> {fsdp.unit = @root}, %[[X:[a-z0-9]+]]: tensor<2x5x4xf32> {fsdp.batch = "x"}
// CHECK-SAME:    -> (tensor<f32>, tensor<64xf32>)
// CHECK-DAG:     %[[Z0:.*]] = linalg.fill ins(%{{.*}}) outs(%{{.*}} : tensor<f32>)
// CHECK-DAG:     %[[Z1:.*]] = linalg.fill ins(%{{.*}}) outs(%{{.*}} : tensor<64xf32>)
// CHECK:         %[[SUMS:.*]]:2 = scf.for %[[I:.*]] = %c0 to %c2 step %c1 iter_args(%[[A0:.*]] = %[[Z0]], %[[A1:.*]] = %[[Z1]])
// CHECK-NEXT:      %[[XI:.*]] = tensor.extract_slice %[[X]][%[[I]], 0, 0] [1, 5, 4] [1, 1, 1] : tensor<2x5x4xf32> to tensor<5x4xf32>
// CHECK-NEXT:      %[[W:.*]]:2 = fsdp.unshard %[[P]] @root site 0
// CHECK-NEXT:      linalg.mul ins(%[[W]]#0, %[[XI]] :
// CHECK:           %[[G:.*]] = fsdp.reduce_scatter @root avg
// CHECK-NEXT:      %[[L:.*]] = fsdp.all_reduce %{{.*}} @mesh ["shard"] avg : tensor<f32>
// CHECK-NEXT:      %[[S0:.*]] = linalg.generic {{.*}} ins(%[[L]] : tensor<f32>) outs(%[[A0]] : tensor<f32>)
// CHECK:             arith.addf %out, %in
// CHECK:           %[[S1:.*]] = linalg.generic {{.*}} ins(%[[G]] : tensor<64xf32>) outs(%[[A1]] : tensor<64xf32>)
// CHECK:           scf.yield %[[S0]], %[[S1]]
// CHECK:         %[[M0:.*]] = linalg.generic {{.*}} ins(%[[SUMS]]#0 : tensor<f32>)
// CHECK:           arith.mulf %in, %{{.*}} : f32
// CHECK:         %[[M1:.*]] = linalg.generic {{.*}} ins(%[[SUMS]]#1 : tensor<64xf32>)
// CHECK:         %[[R0:.*]] = fsdp.all_reduce %[[M0]] @mesh ["replicate"] avg : tensor<f32>
// CHECK:         %[[R1:.*]] = fsdp.all_reduce %[[M1]] @mesh ["replicate"] avg : tensor<64xf32>
// CHECK:         return %[[R0]], %[[R1]]
// DOC-BEFORE-BEGIN fsdp-accumulate-gradients
// DOC-AFTER: @step
func.func @step(%s: tensor<64xf32> {fsdp.unit = @root}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 2 : i64} {
  %w, %b = fsdp.unshard %s @root site 0 : tensor<64xf32> -> tensor<5x4xf32>, tensor<4xf32>
  %d = linalg.mul ins(%w, %x : tensor<5x4xf32>, tensor<5x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>
  %l = tensor.extract_slice %b[0] [1] [1] : tensor<4xf32> to tensor<f32>
  %g = fsdp.reduce_scatter @root avg params [0] (%d) : (tensor<5x4xf32>) -> tensor<64xf32>
  return %l, %g : tensor<f32>, tensor<64xf32>
}
// DOC-BEFORE-END

// CHECK-LABEL: func.func @eval(
// CHECK-SAME:    tensor<2x5x4xf32> {fsdp.batch = "x"}) -> tensor<f32>
// CHECK:         scf.for
// CHECK:           fsdp.all_reduce %{{.*}} @mesh ["shard"] avg
// CHECK:         fsdp.all_reduce %{{.*}} @mesh ["replicate"] avg
func.func @eval(%s: tensor<64xf32> {fsdp.unit = @root}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> tensor<f32> attributes {fsdp.program = "eval", fsdp.mesh = @mesh, fsdp.micro_batches = 2 : i64} {
  %w, %b = fsdp.unshard %s @root site 0 : tensor<64xf32> -> tensor<5x4xf32>, tensor<4xf32>
  %l = tensor.extract_slice %b[0] [1] [1] : tensor<4xf32> to tensor<f32>
  return %l : tensor<f32>
}

// CHECK-LABEL: func.func @reference(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<12x5x4xf32> {fsdp.batch = "x"}
// CHECK:         scf.for %[[R:.*]] = %c0 to %c2 step %c1
// CHECK:           %[[RI:.*]] = arith.muli %[[R]], %c6
// CHECK:           scf.for %[[A:.*]] = %c0 to %c2 step %c1
// CHECK:             %[[AI:.*]] = arith.addi %[[RI]], %[[A]]
// CHECK:             scf.for %[[S:.*]] = %c0 to %c3 step %c1
// CHECK:               %[[S2:.*]] = arith.muli %[[S]], %c2
// CHECK:               %[[SI:.*]] = arith.addi %[[AI]], %[[S2]]
// CHECK:               tensor.extract_slice %[[X]][%[[SI]], 0, 0]
// CHECK-NOT:     all_reduce
// CHECK:         return
func.func @reference(%s: tensor<192xf32> {fsdp.unit = @root}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<192xf32>) attributes {fsdp.program = "reference", fsdp.mesh = @solo, fsdp.micro_batches = 12 : i64} {
  %w, %b = fsdp.unshard %s @root site 0 : tensor<192xf32> -> tensor<5x4xf32>, tensor<4xf32>
  %d = linalg.mul ins(%w, %x : tensor<5x4xf32>, tensor<5x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>
  %l = tensor.extract_slice %b[0] [1] [1] : tensor<4xf32> to tensor<f32>
  %g = fsdp.reduce_scatter @root avg params [0] (%d) : (tensor<5x4xf32>) -> tensor<192xf32>
  return %l, %g : tensor<f32>, tensor<192xf32>
}

// -----

// One rank and one micro-batch need no loop and no collective. A bf16
// gradient over two micro-batches is summed in f32 and rounded once.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// CHECK-LABEL: func.func @step(
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    return
func.func @step(%s: tensor<64xf32> {fsdp.unit = @root}, %x: tensor<f32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<64xbf16>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %g = tensor.empty() : tensor<64xbf16>
  return %x, %g : tensor<f32>, tensor<64xbf16>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 1 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// CHECK-LABEL: func.func @step(
// CHECK:         scf.for {{.*}} -> (tensor<f32>, tensor<64xf32>) {
// CHECK:           tensor.extract_slice %{{.*}}[%{{.*}}] [1] [1] : tensor<4xf32> to tensor<f32>
// CHECK:           arith.extf %in : bf16 to f32
// CHECK-NEXT:      arith.addf
// CHECK:         scf.yield
// CHECK:         arith.mulf
// CHECK:         arith.mulf
// CHECK-NEXT:    arith.truncf %{{.*}} : f32 to bf16
func.func @step(%s: tensor<64xf32> {fsdp.unit = @root}, %x: tensor<f32> {fsdp.batch = "x"})
    -> (tensor<f32>, tensor<64xbf16>) attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 4 : i64} {
  %g = tensor.empty() : tensor<64xbf16>
  return %x, %g : tensor<f32>, tensor<64xbf16>
}
