// Each marker becomes a product with random factors. New arguments are seed, step and sample.
// RUN: fsdp-opt %s --fsdp-read-dropout-markers | FileCheck %s

// CHECK: func.func @loss(%{{.*}}, %[[SEED:.*]]: tensor<i64> {fsdp.key = "seed"}
// CHECK: fsdp.random bernoulli keep 9.000000e-01 seed %[[SEED]] {{.*}} site 0 per_sample 4 : tensor<2x4xf32>
// CHECK-NOT: call

// DOC-BEFORE-BEGIN fsdp-read-dropout-markers
func.func private @fsdp.dropout.0(tensor<2x4xf32>) -> tensor<2x4xf32>
    attributes {fsdp.dropout = 0.1 : f64}
func.func @loss(%x: tensor<2x4xf32> {fsdp.batch = "x"}) -> tensor<2x4xf32> {
  %0 = call @fsdp.dropout.0(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// DOC-BEFORE-END
