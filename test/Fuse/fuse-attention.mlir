// RUN: fsdp-opt %s --fsdp-decompose-named-ops --fsdp-form-dispatches --fsdp-verify-fused | FileCheck %s
// RUN: fsdp-opt %s --fsdp-decompose-named-ops=fuse-attention=false | FileCheck %s --check-prefix=WHOLE

// On CPUs, attention is alone in its dispatch and reads whole tensors in memory: the strided slice and the
// table of constants have dispatches of their own.
// CHECK-LABEL: func @alone
// CHECK: %[[TABLE:.*]] = fsdp.dispatch() {{.*}} {kind = "map"}
// CHECK: %[[Q:.*]] = fsdp.dispatch(%{{.*}}) {{.*}} {kind = "copy"}
// CHECK: %[[O:.*]] = fsdp.dispatch(%[[Q]], %{{.*}}, %[[TABLE]]) {{.*}} {kind = "attention"}
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: fsdp.attention
// CHECK: fsdp.dispatch(%[[O]]) {{.*}} {kind = "map"}
// WHOLE-LABEL: func @alone
// WHOLE-NOT: fsdp.attention
func.func @alone(%qkv: tensor<1x2x8x12xf32>, %k: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %table = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %q = tensor.extract_slice %qkv[0, 0, 0, 0] [1, 2, 8, 4] [1, 1, 1, 1] : tensor<1x2x8x12xf32> to tensor<1x2x8x4xf32>
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%table : tensor<2xf32>)
      : tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<2xf32>) {
    %x = tensor.extract %m[%h] : tensor<2xf32>
    %y = arith.addf %s, %x : f32
    fsdp.yield %y : f32
  }
  %e = tensor.empty() : tensor<1x2x8x4xf32>
  %y = linalg.exp ins(%o : tensor<1x2x8x4xf32>) outs(%e : tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %y : tensor<1x2x8x4xf32>
}

// The same ops in a loop, with a constant that is defined before the loop.
// CHECK-LABEL: func @looped
// CHECK: %[[TABLE:.*]] = fsdp.dispatch() {{.*}} {kind = "map"}
// CHECK: scf.for
// CHECK: fsdp.dispatch(%{{.*}}, %{{.*}}, %[[TABLE]]) {{.*}} {kind = "attention"}
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: fsdp.attention
func.func @looped(%q: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %table = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i0 = %c0 to %c3 step %c1 iter_args(%k = %q) -> tensor<1x2x8x4xf32> {
    %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%table : tensor<2xf32>)
        : tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x8x4xf32>, tensor<1x2x8xf32>
        score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<2xf32>) {
      %x = tensor.extract %m[%h] : tensor<2xf32>
      %y = arith.addf %s, %x : f32
      fsdp.yield %y : f32
    }
    scf.yield %o : tensor<1x2x8x4xf32>
  }
  return %r : tensor<1x2x8x4xf32>
}
