// RUN: fsdp-opt %s --fsdp-form-dispatches --fsdp-verify-fused --split-input-file | FileCheck %s

// A value with a reader other than a kernel gets its own kernel: slices of a gradient at any offset, and constants.
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
// CHECK-LABEL: func @loose
// CHECK-DAG: %[[A:.*]] = fsdp.dispatch(%[[G:.*]]) inplace [-1] {kind = "copy"}
// CHECK-DAG: %[[B:.*]] = fsdp.dispatch(%[[G]]) inplace [-1] {kind = "copy"}
// CHECK-DAG: %[[C:.*]] = fsdp.dispatch() inplace [-1] {kind = "map"}
// CHECK: fsdp.all_reduce %[[C]] @mesh
// CHECK: return %[[A]], %[[B]]
func.func @loose(%x: tensor<7xf32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<7xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<7xf32>
  %a = tensor.extract_slice %g[1] [4] [1] : tensor<7xf32> to tensor<4xf32>
  %b = tensor.extract_slice %g[4] [3] [1] : tensor<7xf32> to tensor<3xf32>
  %c = arith.constant dense<1.0> : tensor<f32>
  %d = fsdp.all_reduce %c @mesh ["shard"] sum : tensor<f32>
  return %a, %b, %d : tensor<4xf32>, tensor<3xf32>, tensor<f32>
}
