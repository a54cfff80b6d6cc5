// RUN: fsdp-opt %s --fsdp-apply-optimizer="weight-decay=0.1" --cse --split-input-file | FileCheck %s --check-prefixes=CHECK,ADAMW
// RUN: fsdp-opt %s --fsdp-apply-optimizer="optimizer=sgd momentum=0.9" --split-input-file | FileCheck %s --check-prefix=SGD
// RUN: fsdp-opt %s --fsdp-apply-optimizer="optimizer=sgd weight-decay=0" --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: fsdp-opt %s --fsdp-apply-optimizer="beta1=0" --split-input-file | FileCheck %s --check-prefix=BETA

// State arguments follow the parameters of trained units, and results update them.
// Decay ends at element 20 of the flat buffer, whichever rank has that element.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @root shards 2 x 64 : f32 reshard false [
  #fsdp.param<"w", tensor<5x4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>,
  #fsdp.param<"b", tensor<4xf32>, 32, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

fsdp.unit @root.frozen shards 2 x 64 : f32 reshard false [
  #fsdp.param<"f", tensor<4xf32>, 0, trainable = false, decay = false, init = <constant, 1.0, 0.0>>]

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[P:[a-z0-9]+]]: tensor<64xf32> {fsdp.state = "parameter", fsdp.unit = @root},
// CHECK-SAME:    %[[M:[a-z0-9]+]]: tensor<64xf32> {fsdp.state = "first_moment", fsdp.unit = @root},
// CHECK-SAME:    %[[V:[a-z0-9]+]]: tensor<64xf32> {fsdp.state = "second_moment", fsdp.unit = @root},
// CHECK-SAME:    %{{[a-z0-9]+}}: tensor<64xf32> {fsdp.state = "parameter", fsdp.unit = @root.frozen},
// CHECK-SAME:    %[[BLOCK:[a-z0-9]+]]: tensor<16xf32> {fsdp.block}, %[[RANK:[a-z0-9]+]]: tensor<8xi64> {fsdp.rank}
// CHECK-SAME:    -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<64xf32> {fsdp.updates = 1 : i64}, tensor<64xf32> {fsdp.updates = 2 : i64}, tensor<16xf32> {fsdp.updates = 4 : i64})
// CHECK:         %[[G:.*]] = tensor.empty() : tensor<64xf32>
// CHECK-DAG:     %[[CLIP:.*]] = tensor.extract_slice %[[BLOCK]][4] [1] [1] : tensor<16xf32> to tensor<f32>
// CHECK-DAG:     %[[FINITE:.*]] = tensor.extract_slice %[[BLOCK]][6] [1] [1] : tensor<16xf32> to tensor<f32>
// CHECK-DAG:     %[[SHARD:.*]] = tensor.extract_slice %[[RANK]][1] [1] [1] : tensor<8xi64> to tensor<i64>
// CHECK-DAG:     %[[LR:.*]] = tensor.extract_slice %[[BLOCK]][0] [1] [1] : tensor<16xf32> to tensor<f32>
// CHECK-DAG:     %[[T:.*]] = tensor.extract_slice %[[BLOCK]][1] [1] [1] : tensor<16xf32> to tensor<f32>
// CHECK:         %[[F:.*]]:3 = linalg.generic {{.*}} ins(%[[LR]], %[[T]] : tensor<f32>, tensor<f32>)
// CHECK-COUNT-2:   math.exp %{{.*}} : f64
// CHECK:         %[[NEW:.*]]:3 = linalg.generic {{.*}} ins(%[[G]], %[[FINITE]], %[[CLIP]], %[[F]]#0, %[[F]]#1, %[[F]]#2, %[[SHARD]] :
// CHECK-SAME:        outs(%[[P]], %[[M]], %[[V]] : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
// CHECK-NEXT:    ^bb0(%[[GI:.*]]: f32, %[[FI:.*]]: f32, %[[CI:.*]]: f32, %[[RATE:.*]]: f32, %[[SCALE:.*]]: f32, %[[KEPT:.*]]: f32, %[[SI:.*]]: i64, %[[PI:.*]]: f32, %[[MI:.*]]: f32, %[[VI:.*]]: f32):
// CHECK:           %[[CLIPPED:.*]] = arith.mulf %[[GI]], %[[CI]]
// CHECK:           %[[I:.*]] = linalg.index 0
// CHECK:           %[[R:.*]] = arith.index_cast %[[SI]] : i64 to index
// CHECK:           %[[BASE:.*]] = arith.muli %[[R]], %c64
// CHECK:           %[[AT:.*]] = arith.addi %[[BASE]], %[[I]]
// CHECK:           %[[DECAYED:.*]] = arith.mulf %[[PI]], %[[KEPT]]
// CHECK:           %[[IN:.*]] = arith.cmpi ult, %[[AT]], %c20
// CHECK:           %[[P0:.*]] = arith.select %[[IN]], %[[DECAYED]], %[[PI]]
// CHECK:           %[[D:.*]] = arith.subf %[[CLIPPED]], %[[MI]]
// CHECK:           %[[DM:.*]] = arith.mulf %[[D]], %
// CHECK:           %[[M1:.*]] = arith.addf %[[MI]], %[[DM]]
// CHECK:           %[[GG:.*]] = arith.mulf %[[CLIPPED]], %[[CLIPPED]]
// CHECK:           %[[GV:.*]] = arith.mulf %[[GG]], %
// CHECK:           %[[V0:.*]] = arith.mulf %[[VI]], %
// CHECK:           %[[V1:.*]] = arith.addf %[[V0]], %[[GV]]
// CHECK:           %[[ROOT:.*]] = math.sqrt %[[V1]]
// CHECK:           %[[SCALED:.*]] = arith.mulf %[[ROOT]], %[[SCALE]]
// CHECK:           %[[DEN:.*]] = arith.addf %[[SCALED]], %
// CHECK:           %[[Q:.*]] = arith.divf %[[M1]], %[[DEN]]
// CHECK:           %[[STEP:.*]] = arith.mulf %[[RATE]], %[[Q]]
// CHECK:           %[[P1:.*]] = arith.subf %[[P0]], %[[STEP]]
// CHECK:           %[[OK:.*]] = arith.cmpf une, %[[FI]], %
// CHECK-DAG:       arith.select %[[OK]], %[[P1]], %[[PI]]
// CHECK-DAG:       arith.select %[[OK]], %[[M1]], %[[MI]]
// CHECK-DAG:       arith.select %[[OK]], %[[V1]], %[[VI]]
// CHECK:         return %[[NEW]]#0, %[[NEW]]#1, %[[NEW]]#2, %[[BLOCK]]

// SGD-LABEL: func.func @step(
// SGD-SAME:    tensor<64xf32> {fsdp.state = "momentum", fsdp.unit = @root}
// SGD:         linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>)
// SGD:         %[[CLIPPED:.*]] = arith.mulf
// SGD:         %[[WD:.*]] = arith.mulf
// SGD:         %[[ADDED:.*]] = arith.addf %[[CLIPPED]], %[[WD]]
// SGD:         %[[GRAD:.*]] = arith.select %{{.*}}, %[[ADDED]], %[[CLIPPED]]
// SGD:         %[[OLD:.*]] = arith.mulf
// SGD:         %[[BUF:.*]] = arith.addf %[[OLD]], %[[GRAD]]
// SGD:         %[[STEP:.*]] = arith.mulf %{{.*}}, %[[BUF]]
// SGD:         arith.subf %{{.*}}, %[[STEP]]

// PLAIN-LABEL: func.func @step(
// PLAIN-NOT:   momentum
// PLAIN-SAME:  -> (tensor<64xf32> {fsdp.updates = 0 : i64}, tensor<16xf32> {fsdp.updates = 2 : i64})
// PLAIN-NOT:   linalg.index
// PLAIN:       return

// BETA-LABEL: func.func @step(
// BETA-COUNT-1: math.exp
// BETA-NOT:     math.exp
// BETA:         return
func.func @step(%p: tensor<64xf32> {fsdp.unit = @root}, %f: tensor<64xf32> {fsdp.unit = @root.frozen}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %g = tensor.empty() : tensor<64xf32>
  return %block, %g : tensor<16xf32>, tensor<64xf32>
}

// CHECK-LABEL: func.func @eval(
// CHECK-SAME:    "first_moment"
// CHECK-SAME:    "second_moment"
// CHECK-SAME:    -> (tensor<16xf32> {fsdp.updates = 4 : i64})
// CHECK-NEXT:    return
func.func @eval(%p: tensor<64xf32> {fsdp.unit = @root}, %f: tensor<64xf32> {fsdp.unit = @root.frozen}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank}, %x: tensor<5x4xf32> {fsdp.batch = "x"})
    -> tensor<16xf32> attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  return %block : tensor<16xf32>
}

// A rank has the whole buffer, so the local index is the global index.
// CHECK-LABEL: func.func @reference(
// CHECK-NOT:     tensor<i64>
// CHECK:         %[[I:.*]] = linalg.index 0
// CHECK:         arith.cmpi ult, %[[I]], %c20
func.func @reference(%p: tensor<128xf32> {fsdp.unit = @root}, %f: tensor<128xf32> {fsdp.unit = @root.frozen}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank}, %x: tensor<2x5x4xf32> {fsdp.batch = "x"})
    -> (tensor<16xf32>, tensor<128xf32>) attributes {fsdp.program = "reference", fsdp.mesh = @solo, fsdp.micro_batches = 2 : i64} {
  %g = tensor.empty() : tensor<128xf32>
  return %block, %g : tensor<16xf32>, tensor<128xf32>
}

// -----

// bf16 parameters with f32 gradients: state and arithmetic in f32. f64: all f64.
// A unit with decay everywhere or nowhere needs no index. Each boundary between ranges with and
// without decay is compared with the index.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 1 x 64 : bf16 reshard false [#fsdp.param<"a", tensor<2x5xbf16>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
fsdp.unit @b shards 1 x 64 : f64 reshard false [#fsdp.param<"b", tensor<10xf64>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
fsdp.unit @c shards 1 x 64 : f32 reshard false [
  #fsdp.param<"c0", tensor<4xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>,
  #fsdp.param<"c1", tensor<2x2xf32>, 16, trainable = true, decay = true, init = <constant, 0.0, 0.0>>,
  #fsdp.param<"c2", tensor<4xf32>, 32, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// ADAMW-LABEL: func.func @step(
// ADAMW-SAME:    tensor<64xbf16> {fsdp.state = "parameter", fsdp.unit = @a}
// ADAMW-SAME:    tensor<64xf32> {fsdp.state = "master", fsdp.unit = @a}
// ADAMW-SAME:    tensor<64xf32> {fsdp.state = "first_moment", fsdp.unit = @a}
// ADAMW-SAME:    tensor<64xf64> {fsdp.state = "second_moment", fsdp.unit = @b}
// ADAMW:         outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
// ADAMW-NOT:     linalg.index
// ADAMW:         arith.truncf %{{.*}} : f32 to bf16
// ADAMW:         outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<64xf64>, tensor<64xf64>, tensor<64xf64>)
// ADAMW-NOT:     linalg.index
// ADAMW:         outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
// ADAMW:         arith.cmpi ult, %{{.*}}, %c20
// ADAMW:         arith.cmpi ult, %{{.*}}, %c4
func.func @step(%a: tensor<64xbf16> {fsdp.unit = @a}, %b: tensor<64xf64> {fsdp.unit = @b}, %c: tensor<64xf32> {fsdp.unit = @c}, %block: tensor<16xf32> {fsdp.block}, %rank: tensor<8xi64> {fsdp.rank})
    -> (tensor<16xf32>, tensor<64xf32>, tensor<64xf64>, tensor<64xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %ga = tensor.empty() : tensor<64xf32>
  %gb = tensor.empty() : tensor<64xf64>
  %gc = tensor.empty() : tensor<64xf32>
  return %block, %ga, %gb, %gc : tensor<16xf32>, tensor<64xf32>, tensor<64xf64>, tensor<64xf32>
}
