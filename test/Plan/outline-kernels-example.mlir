// Both dispatches have the same structure, so they become calls of one kernel.
// RUN: fsdp-opt %s --fsdp-outline-kernels | FileCheck %s

// CHECK: fsdp.kernel_call @[[K:k_[0-9a-f]{16}]](
// CHECK: fsdp.kernel_call @[[K]](
// CHECK: func.func private @[[K]](

// DOC-BEFORE-BEGIN fsdp-outline-kernels
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = fsdp.dispatch (%x) inplace [-1] {kind = "map"} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%in : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%u: f32, %o: f32):
      %v = math.exp %u : f32
      linalg.yield %v : f32
    } -> tensor<8xf32>
    fsdp.yield %r : tensor<8xf32>
  }
  %b = fsdp.dispatch (%a) inplace [-1] {kind = "map"} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%in : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%u: f32, %o: f32):
      %v = math.exp %u : f32
      linalg.yield %v : f32
    } -> tensor<8xf32>
    fsdp.yield %r : tensor<8xf32>
  }
  return %b : tensor<8xf32>
}
// DOC-BEFORE-END
