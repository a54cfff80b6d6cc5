// The whole stage on a model written by hand.
// RUN: fsdp-opt %s --fsdp-import="batch=4=x,5=y" 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log
// RUN: fsdp-opt %s --fsdp-import="batch=4=x,5=y" 2>/dev/null | fsdp-opt --fsdp-verify-imported --verify-roundtrip -o /dev/null

// LOG-DAG: remark: inferred initial values normal(0, 0.02) for 2 parameters: l1.w, l2.w
// LOG-DAG: remark: inferred initial values 0 for 2 parameters: l1.b, l2.b

// CHECK-LABEL: func.func @loss
// CHECK-SAME: tensor<16x32xf32> {fsdp.init = #fsdp.init<normal, 0.000000e+00, 2.000000e-02>, fsdp.param = "l1.w"}
// CHECK-SAME: tensor<32xf32> {fsdp.init = #fsdp.init<constant, 0.000000e+00, 0.000000e+00>, fsdp.param = "l1.b"}
// CHECK-SAME: %[[X:arg[0-9]+]]: tensor<8x16xf32> {fsdp.batch = "x"}
// CHECK: linalg.contract indexing_maps = {{.*}} ins(%[[X]],
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK-NEXT: math.tanh
// CHECK: linalg.contract
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.mulf
// CHECK: iterator_types = ["reduction", "reduction"]
// CHECK: arith.divf
// CHECK: return %{{.*}} : tensor<f32>
func.func @loss(%w1: tensor<16x32xf32> {fsdp.param = "l1.w"}, %b1: tensor<32xf32> {fsdp.param = "l1.b"}, %w2: tensor<32x4xf32> {fsdp.param="l2.w"}, %b2: tensor<4xf32> {fsdp.param="l2.b"}, %x: tensor<8x16xf32>, %y: tensor<8x4xf32>) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<8x32xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %h = linalg.matmul ins(%x, %w1 : tensor<8x16xf32>, tensor<16x32xf32>) outs(%f1 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %bb = linalg.broadcast ins(%b1 : tensor<32xf32>) outs(%e1 : tensor<8x32xf32>) dimensions = [0]
  %a = arith.addf %h, %bb : tensor<8x32xf32>
  %t = math.tanh %a : tensor<8x32xf32>
  %e2 = tensor.empty() : tensor<8x4xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %o = linalg.matmul ins(%t, %w2 : tensor<8x32xf32>, tensor<32x4xf32>) outs(%f2 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %b2b = linalg.broadcast ins(%b2 : tensor<4xf32>) outs(%e2 : tensor<8x4xf32>) dimensions = [0]
  %o2 = arith.addf %o, %b2b : tensor<8x4xf32>
  %d = arith.subf %o2, %y : tensor<8x4xf32>
  %s = arith.mulf %d, %d : tensor<8x4xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %l = linalg.reduce { arith.addf } ins(%s : tensor<8x4xf32>) outs(%f0 : tensor<f32>) dimensions = [0, 1]
  %n = arith.constant dense<32.0> : tensor<f32>
  %r = arith.divf %l, %n : tensor<f32>
  return %r : tensor<f32>
}
