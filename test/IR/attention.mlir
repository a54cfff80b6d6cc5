// RUN: fsdp-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @plain
// CHECK: fsdp.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 : tensor<1x2x3x64xbf16>, tensor<1x2x5x64xbf16>,
// CHECK-SAME: tensor<1x2x5x32xbf16> -> tensor<1x2x3x32xbf16>, tensor<1x2x3xf32>
func.func @plain(%q: tensor<1x2x3x64xbf16>, %k: tensor<1x2x5x64xbf16>, %v: tensor<1x2x5x32xbf16>) -> tensor<1x2x3x32xbf16> {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.125
      : tensor<1x2x3x64xbf16>, tensor<1x2x5x64xbf16>, tensor<1x2x5x32xbf16> -> tensor<1x2x3x32xbf16>, tensor<1x2x3xf32>
  return %o : tensor<1x2x3x32xbf16>
}

// mask_mod alone: a causal mask, aligned at the bottom right.
// CHECK-LABEL: func @causal
// CHECK: fsdp.attention {{.*}} mask_mod(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
// CHECK: fsdp.yield %{{.*}} : i1
func.func @causal(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %c2 = arith.constant 2 : index
    %end = arith.addi %i, %c2 : index
    %keep = arith.cmpi sge, %end, %j : index
    fsdp.yield %keep : i1
  }
  return %o : tensor<1x2x3x4xf32>
}

// weight_mod: dropout by random elements, also in the gradient.
// CHECK-LABEL: func @dropout
// CHECK: fsdp.attention {{.*}} capture(%{{.*}} : tensor<i64>) {{.*}} weight_mod(%b: index, %h: index, %i: index, %j: index, %[[KEY:.*]]: tensor<i64>) {
// CHECK: %[[SEED:.*]] = tensor.extract %[[KEY]][]
// CHECK: fsdp.random_element bernoulli keep 9.000000e-01 seed %[[SEED]] step %[[SEED]] sample %{{.*}} element %{{.*}} site 3 : f32
// CHECK: fsdp.attention_grad {{.*}} weight_mod(%b: index, %h: index, %i: index, %j: index, %{{.*}}: tensor<i64>) {
// CHECK: fsdp.random_element uniform seed
func.func @dropout(%q: tensor<1x2x3x4xf32>, %key: tensor<i64>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5 capture(%key : tensor<i64>)
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index, %k: tensor<i64>) {
    %seed = tensor.extract %k[] : tensor<i64>
    %n = arith.index_cast %b : index to i64
    %f = fsdp.random_element bernoulli keep 0.9 seed %seed step %seed sample %n element %j site 3 : f32
    fsdp.yield %f : f32
  }
  %dq, %dk, %dv = fsdp.attention_grad %q, %q, %q, %o, %lse, %o scale 0.5 capture(%key : tensor<i64>)
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3x4xf32>
        -> tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index, %k: tensor<i64>) {
    %seed = tensor.extract %k[] : tensor<i64>
    %f = fsdp.random_element uniform seed %seed step %seed sample %seed element %j site 3 : f32
    fsdp.yield %f : f32
  }
  return %dq : tensor<1x2x3x4xf32>
}

// score_mod and mask_mod with captured tensors, and the gradient.
// CHECK-LABEL: func @captures
// CHECK: fsdp.attention {{.*}} capture(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<3xi32>)
// CHECK: score_mod(%[[S:[a-z0-9]+]]: f32, %{{[a-z0-9]+}}: index, %[[H:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: index, %{{[a-z0-9]+}}: index, %[[M:[a-z0-9]+]]: tensor<4xf32>, %{{.*}}: tensor<3xi32>) {
// CHECK: tensor.extract %[[M]][%[[H]]]
// CHECK: } mask_mod(
// CHECK: fsdp.attention_grad {{.*}} gradients(tensor<4xf32>) score_mod
// CHECK: } mask_mod(
// CHECK: } score_grad(%[[G:[a-z0-9]+]]: f32, %{{[a-z0-9]+}}: f32, %{{[a-z0-9]+}}: index, %[[H:[a-z0-9]+]]: index,
// CHECK: fsdp.contribute %[[G]] to %{{.*}}[%[[H]]] : f32, tensor<4xf32>
func.func @captures(%q: tensor<1x4x3x4xf32>, %k: tensor<1x2x3x4xf32>, %bias: tensor<4xf32>, %doc: tensor<3xi32>,
                    %g: tensor<1x4x3x4xf32>) -> tensor<4xf32> {
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%bias, %doc : tensor<4xf32>, tensor<3xi32>)
      : tensor<1x4x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x4x3x4xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %d: tensor<3xi32>) {
    %x = tensor.extract %m[%h] : tensor<4xf32>
    %y = arith.addf %s, %x : f32
    fsdp.yield %y : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %d: tensor<3xi32>) {
    %x = tensor.extract %d[%i] : tensor<3xi32>
    %y = tensor.extract %d[%j] : tensor<3xi32>
    %same = arith.cmpi eq, %x, %y : i32
    fsdp.yield %same : i1
  }
  %dq, %dk, %dv, %dm = fsdp.attention_grad %q, %k, %k, %o, %lse, %g scale 0.5 capture(%bias, %doc : tensor<4xf32>, tensor<3xi32>)
      : tensor<1x4x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x4x3x4xf32>, tensor<1x4x3xf32>,
        tensor<1x4x3x4xf32> -> tensor<1x4x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> gradients(tensor<4xf32>)
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %d: tensor<3xi32>) {
    %x = tensor.extract %m[%h] : tensor<4xf32>
    %y = arith.addf %s, %x : f32
    fsdp.yield %y : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %d: tensor<3xi32>) {
    %x = tensor.extract %d[%i] : tensor<3xi32>
    %y = tensor.extract %d[%j] : tensor<3xi32>
    %same = arith.cmpi eq, %x, %y : i32
    fsdp.yield %same : i1
  } score_grad(%c: f32, %s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>, %d: tensor<3xi32>) {
    fsdp.contribute %c to %m[%h] : f32, tensor<4xf32>
    fsdp.yield %c : f32
  }
  return %dm : tensor<4xf32>
}

// Regions may reuse the names of values of the function, for arguments and for results.
// CHECK-LABEL: func @names
// CHECK: fsdp.attention {{.*}} score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %[[TABLE:.*]]: tensor<2xf32>) {
// CHECK: tensor.extract %[[TABLE]][%{{.*}}]
// CHECK: mask_mod
func.func @names(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %t: tensor<2xf32>, %i: index, %s: f32) -> (tensor<1x2x3x4xf32>, index) {
  %c = arith.constant 2 : index
  %o, %lse = fsdp.attention %q, %k, %k scale 0.5 capture(%t : tensor<2xf32>)
      : tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %t: tensor<2xf32>) {
    %c = tensor.extract %t[%h] : tensor<2xf32>
    %k = arith.addf %s, %c : f32
    fsdp.yield %k : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %t: tensor<2xf32>) {
    %c = arith.constant 3 : index
    %end = arith.addi %i, %c : index
    %keep = arith.cmpi sge, %end, %j : index
    fsdp.yield %keep : i1
  }
  %end = arith.addi %c, %i : index
  return %o, %end : tensor<1x2x3x4xf32>, index
}
