// The backward gathers the parameters of the unit a second time (site 1).
// RUN: fsdp-opt %s --fsdp-add-backward --canonicalize --cse --fsdp-regather-parameters | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK: fsdp.unshard %[[S:.*]] @u site 0
// CHECK: %[[W:.*]] = fsdp.unshard %[[S]] @u site 1
// CHECK: linalg.generic {{.*}} ins(%[[W]], 

// DOC-BEFORE-BEGIN fsdp-regather-parameters
// DOC-SETUP: --fsdp-add-backward --canonicalize --cse
// DOC-ARGS: --fsdp-regather-parameters
// DOC-AFTER: @step
#v = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<8xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
func.func @loss(%s: tensor<64xf32> {fsdp.unit = @u}) -> tensor<f32> attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %zero = arith.constant 0.0 : f32
  %w = fsdp.unshard %s @u site 0 : tensor<64xf32> -> tensor<8xf32>
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#v, #none], iterator_types = ["reduction"]}
      ins(%w : tensor<8xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
// DOC-BEFORE-END
