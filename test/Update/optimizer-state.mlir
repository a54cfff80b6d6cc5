// RUN: fsdp-opt %s --fsdp-apply-optimizer="weight-decay=0 optimizer-state-dtype=bf16" --cse | FileCheck %s
// RUN: fsdp-opt %s --fsdp-apply-optimizer="weight-decay=0 optimizer-state-dtype=bf16 optimizer-state-rounding=nearest" --cse | FileCheck %s --check-prefix=NEAREST
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="optimizer-state-dtype=f16" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: optimizer-state-dtype: expected f32 or bf16, found 'f16'
// RUN: not fsdp-opt %s --fsdp-apply-optimizer="optimizer-state-dtype=bf16 optimizer=sgd" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: optimizer-state-dtype 'bf16' has no effect: sgd without momentum has no state; remove optimizer-state-dtype, or give momentum
// RUN: sed 's/bf16/f64/g' %s | not fsdp-opt - --fsdp-apply-optimizer="optimizer-state-dtype=bf16" 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: {{.*}}optimizer-state-dtype: expected parameters of f32 or narrower for state in bf16, found f64

// Moments in bf16 with an f32 master: arithmetic in f32; the noise depends on the seed, the step, the unit and the index.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.unit @other shards 2 x 64 : f32 reshard false [
  #fsdp.param<"f", tensor<4xf32>, 0, trainable = false, decay = false, init = <constant, 1.0, 0.0>>]
fsdp.unit @u shards 2 x 64 : bf16 reshard false [
  #fsdp.param<"w", tensor<5x4xbf16>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    tensor<64xbf16> {fsdp.state = "parameter", fsdp.unit = @u},
// CHECK-SAME:    tensor<64xf32> {fsdp.state = "master", fsdp.unit = @u},
// CHECK-SAME:    tensor<64xbf16> {fsdp.state = "first_moment", fsdp.unit = @u},
// CHECK-SAME:    tensor<64xbf16> {fsdp.state = "second_moment", fsdp.unit = @u},
// CHECK-SAME:    %[[RANK:[a-z0-9]+]]: tensor<8xi64> {fsdp.rank}
// CHECK-DAG:     %[[SEED:.*]] = tensor.extract_slice %[[RANK]][4]
// CHECK-DAG:     %[[STEP:.*]] = tensor.extract_slice %[[RANK]][5]
// CHECK-DAG:     %[[SHARD:.*]] = tensor.extract_slice %[[RANK]][1]
// CHECK:         %[[SITES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16xi64>)
// CHECK:           arith.addi %{{.*}}, %c2147483648
// CHECK:         %[[SITE:.*]] = tensor.extract_slice %[[SITES]][8]
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[SEED]], %[[STEP]], %[[SITE]], %[[SHARD]] :
// CHECK:           math.sqrt %{{.*}} : f32
// CHECK:           arith.muli %{{.*}}, %c3528531795
// CHECK:           %[[LOW:.*]] = arith.andi %[[W:.*]], %c65535
// CHECK:           %[[HIGH:.*]] = arith.shrui %[[W]], %c16
// CHECK:           %[[M:.*]] = arith.trunci %[[LOW]] : i64 to i32
// CHECK:           arith.addi %{{.*}}, %[[M]] : i32
// CHECK:           arith.andi %{{.*}}, %c-65536
// CHECK:           arith.truncf %{{.*}} : f32 to bf16
// CHECK:           %[[V:.*]] = arith.trunci %[[HIGH]] : i64 to i32
// CHECK:           arith.addi %{{.*}}, %[[V]] : i32
// CHECK:         return
// NEAREST-LABEL: func.func @step(
// NEAREST-NOT:   arith.bitcast
// NEAREST-NOT:   [4] [1] [1] : tensor<8xi64>
// NEAREST:       return
func.func @step(%f: tensor<64xf32> {fsdp.unit = @other}, %p: tensor<64xbf16> {fsdp.unit = @u}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank})
    -> (tensor<16xf32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %g = tensor.empty() : tensor<64xf32>
  return %block, %g : tensor<16xf32>, tensor<64xf32>
}
