// RUN: fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/2 | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/3+row | FileCheck %s --check-prefixes=CHECK,THIRD
// RUN: fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/1+row | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: not fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/x 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/ 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=contract/2+contract 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fsdp-opt %s --fsdp-rematerialise=activation-checkpointing=selective=/2 2>&1 | FileCheck %s --check-prefix=KIND

// contract/2 keeps the first, third and fifth contraction of a unit, whatever other kernels are between them.
// The second and fourth contraction and the row kernel are computed again. Each unit counts from its own first
// contraction. contract/3 keeps the first and fourth, and the fifth because it is the output of the unit.
// ZERO: error: policy of activation checkpointing 'selective=contract/0': expected a number of at least 1 after 'contract/', to keep the first of each so many, found '0'
// WORD: 'selective=contract/x': expected a number of at least 1 after 'contract/', to keep the first of each so many, found 'x'
// NOTHING: 'selective=contract/': expected a number of at least 1 after 'contract/', to keep the first of each so many, found ''
// TWICE: 'selective=contract/2+contract': expected each kind of kernels once, found 'contract' twice
// KIND: 'selective=/2': expected kinds of kernels (contract, {{.*}}), found ''

fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @a shards 2 x 64 : f32 reshard true [
  #fsdp.param<"a.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @b shards 2 x 64 : f32 reshard true [
  #fsdp.param<"b.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
fsdp.unit @last shards 2 x 64 : f32 reshard true [
  #fsdp.param<"last.w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]

func.func private @k_row(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "row"} {
  return %x : tensor<128xf32>
}
func.func private @k_1(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  return %x : tensor<128xf32>
}
func.func private @k_2(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  return %x : tensor<128xf32>
}
func.func private @k_3(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  return %x : tensor<128xf32>
}
func.func private @k_4(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  return %x : tensor<128xf32>
}
func.func private @k_5(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "contract"} {
  return %x : tensor<128xf32>
}
func.func private @k_grad(%x: tensor<128xf32>, %y: tensor<128xf32>, %o: tensor<128xf32> {fsdp.out = 0 : i64}) -> tensor<128xf32> attributes {fsdp.kernel, fsdp.kind = "map"} {
  return %x : tensor<128xf32>
}

// CHECK-LABEL: func.func @step
func.func @step(%pa: tensor<64xf32> {fsdp.unit = @a}, %pb: tensor<64xf32> {fsdp.unit = @b}, %pl: tensor<64xf32> {fsdp.unit = @last},
                %x: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>) attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %a = fsdp.unshard %pa @a site 0 : tensor<64xf32> -> tensor<128xf32>
  %a1 = fsdp.kernel_call @k_1(%x, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %ar = fsdp.kernel_call @k_row(%a1, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %a2 = fsdp.kernel_call @k_2(%ar, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %a3 = fsdp.kernel_call @k_3(%a2, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %a4 = fsdp.kernel_call @k_4(%a3, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %a5 = fsdp.kernel_call @k_5(%a4, %a) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b = fsdp.unshard %pb @b site 0 : tensor<64xf32> -> tensor<128xf32>
  %b1 = fsdp.kernel_call @k_1(%a5, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %br = fsdp.kernel_call @k_row(%b1, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b2 = fsdp.kernel_call @k_2(%br, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b3 = fsdp.kernel_call @k_3(%b2, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b4 = fsdp.kernel_call @k_4(%b3, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %b5 = fsdp.kernel_call @k_5(%b4, %b) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %l = fsdp.unshard %pl @last site 0 : tensor<64xf32> -> tensor<128xf32>
  %l0 = fsdp.kernel_call @k_row(%b5, %l) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g0 = fsdp.kernel_call @k_grad(%l0, %l) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g1 = fsdp.kernel_call @k_grad(%g0, %l0) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  // CHECK: fsdp.unshard %{{.*}} @b site 1
  // CHECK-NEXT: fsdp.kernel_call @k_grad(
  // HALF-NEXT: fsdp.kernel_call @k_4(
  // HALF-NEXT: fsdp.kernel_call @k_row(
  // HALF-NEXT: fsdp.kernel_call @k_2(
  // THIRD-NEXT: fsdp.kernel_call @k_grad(
  // THIRD-NEXT: fsdp.kernel_call @k_2(
  // THIRD-NEXT: fsdp.kernel_call @k_3(
  // CHECK-COUNT-3: fsdp.kernel_call @k_grad(
  %bs = fsdp.unshard %pb @b site 1 : tensor<64xf32> -> tensor<128xf32>
  %g2 = fsdp.kernel_call @k_grad(%g1, %bs) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g3 = fsdp.kernel_call @k_grad(%g2, %b4) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g4 = fsdp.kernel_call @k_grad(%g3, %b3) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g5 = fsdp.kernel_call @k_grad(%g4, %b2) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g6 = fsdp.kernel_call @k_grad(%g5, %br) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g7 = fsdp.kernel_call @k_grad(%g6, %b1) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  // CHECK: fsdp.unshard %{{.*}} @a site 1
  // CHECK-NEXT: fsdp.kernel_call @k_grad(
  // HALF-NEXT: fsdp.kernel_call @k_4(
  // HALF-NEXT: fsdp.kernel_call @k_row(
  // HALF-NEXT: fsdp.kernel_call @k_2(
  // THIRD-NEXT: fsdp.kernel_call @k_grad(
  // THIRD-NEXT: fsdp.kernel_call @k_2(
  // THIRD-NEXT: fsdp.kernel_call @k_3(
  // CHECK-COUNT-3: fsdp.kernel_call @k_grad(
  %as = fsdp.unshard %pa @a site 1 : tensor<64xf32> -> tensor<128xf32>
  %g8 = fsdp.kernel_call @k_grad(%g7, %as) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g9 = fsdp.kernel_call @k_grad(%g8, %a4) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g10 = fsdp.kernel_call @k_grad(%g9, %a3) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g11 = fsdp.kernel_call @k_grad(%g10, %a2) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g12 = fsdp.kernel_call @k_grad(%g11, %ar) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %g13 = fsdp.kernel_call @k_grad(%g12, %a1) inplace [-1] : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  // HALF-NOT: @k_{{[1-5r]}}
  // THIRD-NOT: @k_{{[1-5r]}}
  // ALL-NOT: @k_{{[1-5r]}}
  // CHECK: return
  return %g13, %g1 : tensor<128xf32>, tensor<128xf32>
}
