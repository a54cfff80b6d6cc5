// RUN: fsdp-opt %s --fsdp-bind-keys | FileCheck %s

// Three micro-batches of two samples: rank r begins at sample 6 r. The reference begins at 0.

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[RANK:.*]]: tensor<8xi64> {fsdp.rank}
// CHECK-NOT:     fsdp.key
// CHECK:         %[[SEED:.*]] = tensor.extract_slice %[[RANK]][4] [1] [1]
// CHECK:         %[[STEP:.*]] = tensor.extract_slice %[[RANK]][5] [1] [1]
// CHECK:         %[[AT:.*]] = tensor.extract_slice %[[RANK]][0] [1] [1]
// CHECK:         %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[AT]] : tensor<i64>)
// CHECK:           %[[EACH:.*]] = arith.constant 6 : i64
// CHECK:           arith.muli %in, %[[EACH]]
// CHECK:         fsdp.random bernoulli keep 5.000000e-01 seed %[[SEED]] step %[[STEP]] first %[[FIRST]] site 0
// DOC-BEFORE-BEGIN fsdp-bind-keys
func.func @step(%rank: tensor<8xi64> {fsdp.rank}, %x: tensor<3x2x4xi64> {fsdp.batch = "x"},
                %seed: tensor<i64> {fsdp.key = "seed"}, %step: tensor<i64> {fsdp.key = "step"},
                %first: tensor<i64> {fsdp.key = "sample"}) -> tensor<2x4xf32>
    attributes {fsdp.program = "step", fsdp.micro_batches = 3 : i64} {
  %0 = fsdp.random bernoulli keep 0.5 seed %seed step %step first %first site 0 : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// DOC-BEFORE-END

// CHECK-LABEL: func.func @reference(
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0> : tensor<i64>
// CHECK:         fsdp.random uniform seed %{{.*}} step %{{.*}} first %[[ZERO]]
func.func @reference(%rank: tensor<8xi64> {fsdp.rank}, %x: tensor<3x2x4xi64> {fsdp.batch = "x"},
                     %seed: tensor<i64> {fsdp.key = "seed"}, %step: tensor<i64> {fsdp.key = "step"},
                     %first: tensor<i64> {fsdp.key = "sample"}) -> tensor<2x4xf32>
    attributes {fsdp.program = "reference", fsdp.micro_batches = 3 : i64} {
  %0 = fsdp.random uniform seed %seed step %step first %first site 1 : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
