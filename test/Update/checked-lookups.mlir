// RUN: fsdp-opt %s --fsdp-accumulate-gradients --cse | FileCheck %s --check-prefix=LOOP
// RUN: fsdp-opt %s --fsdp-accumulate-gradients --fsdp-add-step-block --cse | FileCheck %s --check-prefix=BLOCK
// RUN: not fsdp-opt %S/Inputs/lookup-type.mlir --fsdp-add-step-block 2>&1 | FileCheck %s --check-prefix=TYPE

// Two checked lookups over two micro-batches on two shards. The loops compute the largest unsigned index. The all-reduce of the
// sums of squares also counts the ranks with a failed lookup. The block records which lookup failed on this rank.

// BLOCK: module attributes {fsdp.lookups = [{extent = 8 : i64, location = "m.mlir:1:2", what = "rows of the table"}, {extent = 4 : i64, location = "m.mlir:3:4", what = "classes of the loss"}]}
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @a shards 2 x 64 : f32 reshard false [#fsdp.param<"a", tensor<100xf32>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]

// LOOP-LABEL: func.func @step(
// LOOP-SAME: -> (tensor<f32>, tensor<64xf32>, tensor<i64> {fsdp.lookup = {extent = 8 : i64,
// LOOP: %[[ZERO:.*]] = arith.constant 0 : i64
// LOOP: %[[NONE:.*]] = linalg.fill ins(%[[ZERO]] : i64) outs(%{{.*}} : tensor<i64>)
// LOOP: %[[R:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[X:.*]] = %[[NONE]], %[[Y:.*]] = %[[NONE]])
// LOOP: linalg.generic {{.*}} ins(%{{.*}} : tensor<i64>) outs(%[[X]] : tensor<i64>)
// LOOP-NEXT: ^bb0(%[[IN:.*]]: i64, %[[OUT:.*]]: i64):
// LOOP-NEXT: arith.maxui %[[OUT]], %[[IN]] : i64
// LOOP: linalg.generic {{.*}} ins(%{{.*}} : tensor<i64>) outs(%[[Y]] : tensor<i64>)
// LOOP: scf.yield
// LOOP: return %{{.*}}, %{{.*}}, %[[R]]#2, %[[R]]#3 :

// BLOCK-LABEL: func.func @step(
// BLOCK-SAME: -> (tensor<16xf32> {fsdp.updates = 1 : i64}, tensor<64xf32>)
// BLOCK: %[[MADE:.*]]:5 = linalg.generic {{.*}} ins(%{{.*}}#2, %{{.*}}#3 : tensor<i64>, tensor<i64>)
// BLOCK-NEXT: ^bb0(%[[FIRST:.*]]: i64, %[[SECOND:.*]]: i64,
// BLOCK: %[[BAD2:.*]] = arith.cmpi ne, %[[SECOND]], %[[C0:.*]] : i64
// BLOCK: %[[I2:.*]] = arith.select %[[BAD2]], %[[SECOND]], %[[C0]] : i64
// BLOCK: %[[N2:.*]] = arith.select %[[BAD2]], %c2{{.*}}, %[[C0]] : i64
// BLOCK: %[[BAD1:.*]] = arith.cmpi ne, %[[FIRST]], %[[C0]] : i64
// BLOCK: %[[I1:.*]] = arith.select %[[BAD1]], %[[FIRST]], %[[I2]] : i64
// BLOCK: %[[N1:.*]] = arith.select %[[BAD1]], %c1{{.*}}, %[[N2]] : i64
// BLOCK: %[[BAD:.*]] = arith.cmpi ne, %[[N1]], %[[C0]] : i64
// BLOCK: %[[FLAG:.*]] = arith.select %[[BAD]], %{{.*}}, %{{.*}} : f32
// BLOCK: arith.sitofp %[[N1]] : i64 to f32
// BLOCK: arith.shrui %[[I1]], %{{.*}} : i64
// BLOCK: %[[VEC:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[MADE]]#0 : tensor<f32>, tensor<f32>) outs(%{{.*}} : tensor<2xf32>)
// BLOCK: %[[ALL:.*]] = fsdp.all_reduce %[[VEC]] @mesh ["shard"] sum : tensor<2xf32>
// BLOCK: %[[RANKS:.*]] = tensor.extract_slice %[[ALL]][1] [1] [1]
// BLOCK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[MADE]]#1, %[[MADE]]#2, %[[MADE]]#3, %[[MADE]]#4, %[[RANKS]] :
// BLOCK-NEXT: ^bb0({{.*}} %[[COUNT:[a-z0-9_]+]]: f32, %{{[a-z0-9_]+}}: f32):
// BLOCK: %[[NUMBERS:.*]] = arith.andi
// BLOCK: %[[ALLIN:.*]] = arith.cmpf oeq, %[[COUNT]], %{{.*}} : f32
// BLOCK: %[[GOOD:.*]] = arith.andi %[[NUMBERS]], %[[ALLIN]] : i1
// BLOCK: arith.select %[[GOOD]],
func.func @step(%a: tensor<64xf32> {fsdp.unit = @a}, %x: tensor<3xi64> {fsdp.batch = "tokens"})
    -> (tensor<f32>, tensor<64xf32>, tensor<i64> {fsdp.lookup = {extent = 8 : i64, location = "m.mlir:1:2", what = "rows of the table"}},
        tensor<i64> {fsdp.lookup = {extent = 4 : i64, location = "m.mlir:3:4", what = "classes of the loss"}})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh, fsdp.micro_batches = 2 : i64} {
  %l = tensor.empty() : tensor<f32>
  %g = tensor.empty() : tensor<64xf32>
  %c = tensor.empty() : tensor<i64>
  %d = tensor.extract_slice %x[0] [1] [1] : tensor<3xi64> to tensor<i64>
  return %l, %g, %c, %d : tensor<f32>, tensor<64xf32>, tensor<i64>, tensor<i64>
}

// The program @eval checks lookups too, with an all-reduce of its own for the count.
// BLOCK-LABEL: func.func @eval(
// BLOCK-SAME: -> (tensor<16xf32> {fsdp.updates = 1 : i64})
// BLOCK: %[[MADE:.*]]:5 = linalg.generic
// BLOCK: %[[COUNTED:.*]] = fsdp.all_reduce %{{.*}} @mesh ["shard"] sum : tensor<1xf32>
// BLOCK: tensor.extract_slice %[[COUNTED]]
// BLOCK: return %{{.*}} : tensor<16xf32>
func.func @eval(%a: tensor<64xf32> {fsdp.unit = @a}, %x: tensor<3xi64> {fsdp.batch = "tokens"})
    -> (tensor<f32>, tensor<i64> {fsdp.lookup = {extent = 8 : i64, location = "m.mlir:1:2", what = "rows of the table"}},
        tensor<i64> {fsdp.lookup = {extent = 4 : i64, location = "m.mlir:3:4", what = "classes of the loss"}})
    attributes {fsdp.program = "eval", fsdp.mesh = @mesh} {
  %l = tensor.empty() : tensor<f32>
  %c = tensor.empty() : tensor<i64>
  %d = tensor.extract_slice %x[0] [1] [1] : tensor<3xi64> to tensor<i64>
  return %l, %c, %d : tensor<f32>, tensor<i64>, tensor<i64>
}

// The reference runs on one rank and has no collectives.
// BLOCK-LABEL: func.func @reference(
// BLOCK-NOT: fsdp.all_reduce
func.func @reference(%a: tensor<128xf32> {fsdp.unit = @a}, %x: tensor<3xi64> {fsdp.batch = "tokens"})
    -> (tensor<f32>, tensor<128xf32>, tensor<i64> {fsdp.lookup = {extent = 8 : i64, location = "m.mlir:1:2", what = "rows of the table"}},
        tensor<i64> {fsdp.lookup = {extent = 4 : i64, location = "m.mlir:3:4", what = "classes of the loss"}})
    attributes {fsdp.program = "reference", fsdp.mesh = @solo, fsdp.micro_batches = 4 : i64} {
  %l = tensor.empty() : tensor<f32>
  %g = tensor.empty() : tensor<128xf32>
  %c = tensor.empty() : tensor<i64>
  %d = tensor.extract_slice %x[0] [1] [1] : tensor<3xi64> to tensor<i64>
  return %l, %g, %c, %d : tensor<f32>, tensor<128xf32>, tensor<i64>, tensor<i64>
}

// TYPE: lookup-type.mlir:{{.*}}: error: expected result 2 with 'fsdp.lookup' to be 'tensor<i64>' and to have a dictionary, found 'tensor<i32>'
