// RUN: fsdp-opt %s --fsdp-outline-kernels --verify-roundtrip | FileCheck %s

// Three dispatches become two kernels: names of values and source locations do not distinguish kernels.
#id = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @f
// CHECK: %[[A:.*]] = fsdp.kernel_call @[[EXP:k_[0-9a-f]{16}]](%{{.*}}) inplace [-1] {layer = 0 : i64}
// CHECK: %[[B:.*]] = fsdp.kernel_call @[[EXP]](%[[A]]) inplace [-1]
// CHECK: fsdp.kernel_call @[[OVER:k_[0-9a-f]{16}]](%[[A]], %[[B]]) inplace [1]
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = fsdp.dispatch (%x) inplace [-1] {kind = "map", layer = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32> {
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
  ^bb0(%other: tensor<8xf32>):
    %empty = tensor.empty() : tensor<8xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%other : tensor<8xf32>) outs(%empty : tensor<8xf32>) {
    ^bb0(%i: f32, %p: f32):
      %w = math.exp %i : f32
      linalg.yield %w : f32
    } -> tensor<8xf32>
    fsdp.yield %y : tensor<8xf32>
  }
  %c = fsdp.dispatch (%a, %b) inplace [1] {kind = "map"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%l: tensor<8xf32>, %r: tensor<8xf32>):
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%l : tensor<8xf32>) outs(%r : tensor<8xf32>) {
    ^bb0(%i: f32, %p: f32):
      %w = arith.addf %i, %p : f32
      linalg.yield %w : f32
    } -> tensor<8xf32>
    fsdp.yield %y : tensor<8xf32>
  }
  return %c : tensor<8xf32>
}
// CHECK: func.func private @[[EXP]](%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32> {fsdp.out = 0 : i64}) -> tensor<8xf32> attributes {fsdp.kernel, fsdp.kind = "map"}
// CHECK: math.exp
// CHECK: func.func private @[[OVER]](%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32> {fsdp.inout = 0 : i64}) -> tensor<8xf32>
// CHECK-NOT: func.func
