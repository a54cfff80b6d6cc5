// RUN: fsdp-opt %s --fsdp-add-step-block="clip-grad-norm=0.5" --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,CLIP
// RUN: fsdp-opt %s --fsdp-add-step-block --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,NOCLIP

// Two units on two shards: there are sums of squares per unit and shard, and one all-reduce
// for all units; then the units are added in order. The reference sums the squares of one shard at
// a time, and adds the shards itself.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 2 x 64 : f32 reshard false [#fsdp.param<"a", tensor<100xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
fsdp.unit @f shards 2 x 64 : f32 reshard false [#fsdp.param<"f", tensor<100xf32>, 0, trainable = false, decay = false, init = <constant, 0.0, 0.0>>]
fsdp.unit @b shards 2 x 3072 : f32 reshard false [#fsdp.param<"b", tensor<6000xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %{{[a-z0-9]+}}: tensor<3072xf32> {fsdp.unit = @b},
// CHECK-SAME:    %[[BLOCK:[a-z0-9]+]]: tensor<16xf32> {fsdp.block}, %{{[a-z0-9]+}}: tensor<8xi64> {fsdp.rank}, %{{[a-z0-9]+}}: tensor<3x5xi64> {fsdp.batch = "tokens"}
// CHECK-SAME:    -> (tensor<16xf32> {fsdp.updates = 3 : i64}, tensor<64xf32>, tensor<3072xf32>)
// CHECK:         %[[LOSS:.*]] = tensor.empty() : tensor<f32>
// CHECK:         tensor.expand_shape %{{.*}} : tensor<64xf32> into tensor<1x64xf32>
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<1x64xf32>) outs(%{{.*}} : tensor<1xf32>)
// CHECK:           %[[SQ:.*]] = arith.mulf %in, %in
// CHECK-NEXT:      arith.addf %out, %[[SQ]]
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<1x1xf32>) outs(%{{.*}} : tensor<1xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.addf %out, %in
// CHECK:         tensor.expand_shape %{{.*}} : tensor<3072xf32> into tensor<3x1024xf32>
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<3x1024xf32>) outs(%{{.*}} : tensor<3xf32>)
// CHECK:         tensor.expand_shape %{{.*}} : tensor<3xf32> into tensor<1x3xf32>
// CHECK:         %[[VEC:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2xf32>)
// CHECK:         %[[ALL:.*]] = fsdp.all_reduce %[[VEC]] @mesh ["shard"] sum : tensor<2xf32>
// CHECK:         %[[U0:.*]] = tensor.extract_slice %[[ALL]][0] [1] [1]
// CHECK:         %[[U1:.*]] = tensor.extract_slice %[[ALL]][1] [1] [1]
// CHECK:         %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[LOSS]], %[[U0]], %[[U1]] : tensor<f32>, tensor<f32>, tensor<f32>) outs(%[[BLOCK]] : tensor<16xf32>) {
// CHECK-NEXT:    ^bb0(%[[L:.*]]: f32, %[[N0:.*]]: f32, %[[N1:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK:           %[[SUM:.*]] = arith.addf %[[N0]], %[[N1]]
// CHECK:           %[[NORM:.*]] = math.sqrt %[[SUM]]
// CHECK:           math.absf %[[L]]
// CHECK:           arith.cmpf olt
// CHECK:           math.absf %[[NORM]]
// CHECK:           arith.cmpf olt
// CHECK:           %[[FINITE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CLIP:            %[[GUARD:.*]] = arith.addf %[[NORM]], %
// CLIP:            %[[RATIO:.*]] = arith.divf %{{.*}}, %[[GUARD]]
// CLIP:            arith.minimumf %[[RATIO]], %
// NOCLIP-NOT:      arith.divf
// CHECK:           arith.addf %[[OLD]], %
// CHECK:           %[[T:.*]] = arith.mulf %[[FINITE]], %
// CHECK:           arith.addf %[[OLD]], %[[T]]
// CHECK:         return %[[NEW]], %{{.*}}, %{{.*}} :
func.func @step(%a: tensor<64xf32> {fsdp.unit = @a}, %f: tensor<64xf32> {fsdp.unit = @f}, %b: tensor<3072xf32> {fsdp.unit = @b}, %x: tensor<3x5xi64> {fsdp.batch = "tokens"})
    -> (tensor<f32>, tensor<64xf32>, tensor<3072xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f32>
  %ga = tensor.empty() : tensor<64xf32>
  %gb = tensor.empty() : tensor<3072xf32>
  return %l, %ga, %gb : tensor<f32>, tensor<64xf32>, tensor<3072xf32>
}

// CHECK-LABEL: func.func @eval(
// CHECK-SAME:    %[[BLOCK:[a-z0-9]+]]: tensor<16xf32> {fsdp.block}
// CHECK-SAME:    -> (tensor<16xf32> {fsdp.updates = 3 : i64})
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<f32>) outs(%[[BLOCK]] : tensor<16xf32>)
// CHECK-NEXT:    ^bb0(%[[L:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK:           arith.cmpi eq, %{{.*}}, %c7
// CHECK-NEXT:      %[[R:.*]] = arith.select %{{.*}}, %[[L]], %[[OLD]]
// CHECK-NEXT:      linalg.yield %[[R]]
func.func @eval(%a: tensor<64xf32> {fsdp.unit = @a}, %f: tensor<64xf32> {fsdp.unit = @f}, %b: tensor<3072xf32> {fsdp.unit = @b}, %x: tensor<3x5xi64> {fsdp.batch = "tokens"})
    -> tensor<f32> attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}

// CHECK-LABEL: func.func @reference(
// CHECK:         tensor.extract_slice %[[GA:.*]][0] [64] [1] : tensor<128xf32> to tensor<64xf32>
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<1x64xf32>) outs(%{{.*}} : tensor<1xf32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<1x1xf32>) outs(%{{.*}} : tensor<1xf32>)
// CHECK:         %[[R0:.*]] = tensor.extract_slice %{{.*}}[0] [1] [1] : tensor<1xf32> to tensor<f32>
// CHECK:         tensor.extract_slice %[[GA]][64] [64] [1]
// CHECK:         %[[R1:.*]] = tensor.extract_slice %{{.*}}[0] [1] [1] : tensor<1xf32> to tensor<f32>
// CHECK:         linalg.generic {{.*}} ins(%[[R0]], %[[R1]] : tensor<f32>, tensor<f32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      arith.addf %[[A]], %[[B]]
// CHECK:         tensor.extract_slice %{{.*}}[3072] [3072] [1] : tensor<6144xf32> to tensor<3072xf32>
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<3x1024xf32>) outs(%{{.*}} : tensor<3xf32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<1x3xf32>) outs(%{{.*}} : tensor<1xf32>)
// CHECK-NOT:     all_reduce
func.func @reference(%a: tensor<128xf32> {fsdp.unit = @a}, %f: tensor<128xf32> {fsdp.unit = @f}, %b: tensor<6144xf32> {fsdp.unit = @b}, %x: tensor<2x3x5xi64> {fsdp.batch = "tokens"})
    -> (tensor<f32>, tensor<128xf32>, tensor<6144xf32>) attributes {fsdp.program = "reference", fsdp.mesh = @solo, fsdp.micro_batches = 2 : i64} {
  %l = tensor.empty() : tensor<f32>
  %ga = tensor.empty() : tensor<128xf32>
  %gb = tensor.empty() : tensor<6144xf32>
  return %l, %ga, %gb : tensor<f32>, tensor<128xf32>, tensor<6144xf32>
}

// -----

// The norm of f64 gradients is computed in f64, the norm of
// bf16 gradients in f32. A single rank has no all-reduce.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 1 x 64 : f64 reshard false [#fsdp.param<"a", tensor<10xf64>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
fsdp.unit @b shards 1 x 64 : bf16 reshard false [#fsdp.param<"b", tensor<10xbf16>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// CHECK-LABEL: func.func @step(
// CHECK:         ins(%{{.*}} : tensor<1x64xf64>) outs(%{{.*}} : tensor<1xf64>)
// CHECK:         ins(%{{.*}} : tensor<1x64xbf16>) outs(%{{.*}} : tensor<1xf64>)
// CHECK:         arith.extf %in : bf16 to f64
// CHECK-NOT:     all_reduce
// CHECK:         math.sqrt %{{.*}} : f64
// CHECK:         arith.truncf %{{.*}} : f64 to f32
func.func @step(%a: tensor<64xf64> {fsdp.unit = @a}, %b: tensor<64xbf16> {fsdp.unit = @b}, %x: tensor<3xf64> {fsdp.batch = "x"})
    -> (tensor<f64>, tensor<64xf64>, tensor<64xbf16>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f64>
  %ga = tensor.empty() : tensor<64xf64>
  %gb = tensor.empty() : tensor<64xbf16>
  return %l, %ga, %gb : tensor<f64>, tensor<64xf64>, tensor<64xbf16>
}
