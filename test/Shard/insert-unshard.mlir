// RUN: fsdp-opt %s --fsdp-form-units="mesh=replicate=2,shard=3" --fsdp-insert-unshard="grad-accum=2" --fsdp-verify-sharded | FileCheck %s

// A two-layer perceptron. The unit of an unused layer is an argument, but is not
// gathered; a use inside a region is a use by the op that has the region.

// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[R:[a-z0-9]+]]: tensor<64xf32> {fsdp.unit = @root}
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<64xf32> {fsdp.unit = @fc.0}
// CHECK-SAME:    %[[B:[a-z0-9]+]]: tensor<64xf32> {fsdp.unit = @fc.1}
// CHECK-SAME:    %[[U:[a-z0-9]+]]: tensor<64xf32> {fsdp.unit = @fc.2}
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<2x4xf32> {fsdp.batch = "x"}
// CHECK-SAME:    %{{[a-z0-9]+}}: tensor<2xi64> {fsdp.batch = "targets", fsdp.limit = 8 : i64}
// CHECK-SAME:  ) -> tensor<f32> attributes {fsdp.mesh = @mesh, fsdp.micro_batches = 2 : i64, fsdp.program = "step"}
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<2x8xf32>
// CHECK-NEXT:    %[[FC0:.*]]:2 = fsdp.unshard %[[A]] @fc.0 site 0 : tensor<64xf32> -> tensor<4x8xf32>, tensor<8xf32>
// CHECK-NEXT:    linalg.contract {{.*}} ins(%[[X]], %[[FC0]]#0 :
// CHECK-NEXT:    %[[ROOT:.*]] = fsdp.unshard %[[R]] @root site 0 : tensor<64xf32> -> tensor<1xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ins({{.*}}, %[[FC0]]#1 :
// CHECK:         tensor.extract %[[ROOT]]
// CHECK:         %[[FC1:.*]] = fsdp.unshard %[[B]] @fc.1 site 0 : tensor<64xf32> -> tensor<8x8xf32>
// CHECK-NEXT:    linalg.contract {{.*}} ins({{.*}}, %[[FC1]] :
// CHECK-NOT:     fsdp.unshard
// CHECK:         return

// CHECK-LABEL: func.func @reference(
// CHECK-SAME:    tensor<192xf32> {fsdp.unit = @root}
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<192xf32> {fsdp.unit = @fc.0}
// CHECK-SAME:    attributes {fsdp.mesh = @solo, fsdp.micro_batches = 12 : i64, fsdp.program = "reference"}
// CHECK:         fsdp.unshard %[[A]] @fc.0 site 0 : tensor<192xf32> -> tensor<4x8xf32>, tensor<8xf32>

#row = affine_map<(n, k, m) -> (n, k)>
#col = affine_map<(n, k, m) -> (k, m)>
#out = affine_map<(n, k, m) -> (n, m)>
#id = affine_map<(n, m) -> (n, m)>
#last = affine_map<(n, m) -> (m)>
func.func @loss(
    %w0: tensor<4x8xf32> {fsdp.param = "fc.0.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %b0: tensor<8xf32> {fsdp.param = "fc.0.bias", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %w1: tensor<8x8xf32> {fsdp.param = "fc.1.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %w2: tensor<8x8xf32> {fsdp.param = "fc.2.weight", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    %scale: tensor<1xf32> {fsdp.param = "scale", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %x: tensor<2x4xf32> {fsdp.batch = "x"},
    %t: tensor<2xi64> {fsdp.batch = "targets", fsdp.limit = 8 : i64}) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8xf32>
  %h = linalg.contract indexing_maps = [#row, #col, #out] ins(%x, %w0 : tensor<2x4xf32>, tensor<4x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b0 : tensor<2x8xf32>, tensor<8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = tensor.extract %scale[%c0] : tensor<1xf32>
    %1 = arith.addf %a, %b : f32
    %2 = arith.maximumf %1, %zero : f32
    %3 = arith.mulf %2, %s : f32
    linalg.yield %3 : f32
  } -> tensor<2x8xf32>
  %y = linalg.contract indexing_maps = [#row, #col, #out] ins(%r, %w1 : tensor<2x8xf32>, tensor<8x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %loss, %lse = fsdp.cross_entropy %y, %t : tensor<2x8xf32>, tensor<2xi64> -> tensor<f32>, tensor<2xf32>
  return %loss : tensor<f32>
}
