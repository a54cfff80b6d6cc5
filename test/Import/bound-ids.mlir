// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-bound-ids | FileCheck %s

// The limit is the number of rows; of several lookups, the smallest number; an offset is subtracted.
// CHECK-LABEL: func.func @infer(
// CHECK-SAME: tensor<3xi64> {fsdp.batch = "tokens", fsdp.limit = 5 : i64}
// CHECK-SAME: tensor<3xi64> {fsdp.batch = "targets", fsdp.limit = 4 : i64}
// CHECK-SAME: tensor<3xi8> {fsdp.batch = "kinds", fsdp.limit = 128 : i64}
// CHECK-SAME: tensor<3xi64> {fsdp.batch = "places", fsdp.limit = 7 : i64}
// CHECK-SAME: tensor<3xi64> {fsdp.batch = "small", fsdp.limit = 2 : i64}
func.func @infer(%w: tensor<9x4xf32>, %v: tensor<5x4xf32>, %big: tensor<300x4xf32>,
                 %ids: tensor<3xi64> {fsdp.batch = "tokens"}, %targets: tensor<3xi64> {fsdp.batch = "targets"},
                 %kinds: tensor<3xi8> {fsdp.batch = "kinds"}, %places: tensor<3xi64> {fsdp.batch = "places"},
                 %small: tensor<3xi64> {fsdp.batch = "small", fsdp.limit = 2 : i64}) {
  %a = fsdp.gather_rows %w[%ids] : tensor<9x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %b = fsdp.gather_rows %v[%ids] : tensor<5x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %loss, %lse = fsdp.cross_entropy %a, %targets : tensor<3x4xf32>, tensor<3xi64> -> tensor<f32>, tensor<3xf32>
  %c = fsdp.gather_rows %big[%kinds] : tensor<300x4xf32>, tensor<3xi8> -> tensor<3x4xf32>
  %e = tensor.empty() : tensor<3xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%places : tensor<3xi64>) outs(%e : tensor<3xi64>) {
  ^bb0(%i: i64, %o: i64):
    %two = arith.constant 2 : i64
    %j = arith.addi %i, %two : i64
    linalg.yield %j : i64
  } -> tensor<3xi64>
  %d = fsdp.gather_rows %w[%p] : tensor<9x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %f = fsdp.gather_rows %w[%small] : tensor<9x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %k = arith.constant dense<[0, 8, 3]> : tensor<3xi64>
  %g = fsdp.gather_rows %w[%k] : tensor<9x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @limits(%w: tensor<11x4xf32>,
                  // expected-error @+1 {{argument 1 has 'fsdp.limit' 100, which allows ids outside a lookup; expected ids in [0, 11), the rows of the table: lower 'fsdp.limit'}}
                  %ids: tensor<3xi64> {fsdp.batch = "tokens", fsdp.limit = 100 : i64},
                  // expected-error @+1 {{argument 2 has 'fsdp.limit' 5, which allows ids outside a lookup; expected ids in [0, 4), the classes of the loss: lower 'fsdp.limit'}}
                  %targets: tensor<3xi64> {fsdp.batch = "targets", fsdp.limit = 5 : i64}) {
  // expected-note @+1 {{the lookup is here}}
  %a = fsdp.gather_rows %w[%ids] : tensor<11x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  // expected-note @+1 {{the lookup is here}}
  %loss, %lse = fsdp.cross_entropy %a, %targets : tensor<3x4xf32>, tensor<3xi64> -> tensor<f32>, tensor<3xf32>
  return
}

// -----

func.func @constants(%w: tensor<4x3xf32>) {
  %i = arith.constant dense<[1000000000, -5]> : tensor<2xi64>
  // expected-error @+1 {{expected ids in [0, 4), the rows of the table, found -5 to 1000000000}}
  %x = fsdp.gather_rows %w[%i] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  return
}

// -----

// Ids without a known range are clamped and checked in each step: a function of ids, converted floats, and
// a parameter, whose values a weights file may give.
// CHECK-LABEL: func.func @computed(
// CHECK-SAME: -> (tensor<i64> {fsdp.lookup = {extent = 4 : i64, location = "{{.*}}bound-ids.mlir:[[#@LINE+30]]:8", what = "rows of the table"}}
// CHECK-SAME: tensor<i64> {fsdp.lookup = {extent = 4 : i64, location = "{{.*}}bound-ids.mlir:[[#@LINE+37]]:8", what = "rows of the table"}}
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg2
// CHECK: arith.muli
// CHECK: %[[IN:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<2xi64>)
// CHECK-NEXT: ^bb0(%[[ID:.*]]: i64,
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[LOW:.*]] = arith.maxsi %[[ID]], %[[C0]] : i64
// CHECK-NEXT: %[[C3:.*]] = arith.constant 3 : i64
// CHECK-NEXT: %[[BOTH:.*]] = arith.minsi %[[LOW]], %[[C3]] : i64
// CHECK-NEXT: linalg.yield %[[BOTH]] : i64
// CHECK: %[[WORST:.*]] = linalg.generic {{.*}}iterator_types = ["reduction"]{{.*}} ins(%[[P]] : tensor<2xi64>)
// CHECK-NEXT: ^bb0(%[[ID:.*]]: i64, %[[SO_FAR:.*]]: i64):
// CHECK-NEXT: %[[C4:.*]] = arith.constant 4 : i64
// CHECK-NEXT: %[[GOOD:.*]] = arith.cmpi ult, %[[ID]], %[[C4]] : i64
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[BAD:.*]] = arith.select %[[GOOD]], %[[C0]], %[[ID]] : i64
// CHECK-NEXT: %[[MAX:.*]] = arith.maxui %[[SO_FAR]], %[[BAD]] : i64
// CHECK-NEXT: linalg.yield %[[MAX]] : i64
// CHECK: fsdp.gather_rows %arg0[%[[IN]]]
// CHECK: return %[[WORST]], %{{.*}} : tensor<i64>, tensor<i64>
func.func @computed(%w: tensor<4x3xf32>, %x: tensor<2xf32>, %ids: tensor<2xi64> {fsdp.batch = "tokens"}) {
  %e = tensor.empty() : tensor<2xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<2xi64>) outs(%e : tensor<2xi64>) {
  ^bb0(%i: i64, %o: i64):
    %j = arith.muli %i, %i : i64
    linalg.yield %j : i64
  } -> tensor<2xi64>
  // expected-remark @+1 {{this lookup is checked in each step: its ids are not known to be in [0, 4), the rows of the table; an id outside stops the run}}
  %a = fsdp.gather_rows %w[%p] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e : tensor<2xi64>) {
  ^bb0(%i: f32, %o: i64):
    %j = arith.fptosi %i : f32 to i64
    linalg.yield %j : i64
  } -> tensor<2xi64>
  // expected-remark @+1 {{this lookup is checked in each step}}
  %b = fsdp.gather_rows %w[%q] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  return
}

// -----

// CHECK-LABEL: func.func @parameter(
// CHECK-SAME: -> (tensor<i64> {fsdp.lookup =
func.func @parameter(%w: tensor<4x3xf32> {fsdp.param = "w"}, %p: tensor<2xi64> {fsdp.param = "p"}) {
  // expected-remark @+1 {{this lookup is checked in each step}}
  %a = fsdp.gather_rows %w[%p] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  return
}

// -----

// Ignored targets are valid; narrow ids are checked as i64 and clamped in their own type.
// CHECK-LABEL: func.func @ignored(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2xi8>)
// CHECK: %[[WIDE:.*]] = arith.extsi %[[ID:.*]] : i8 to i64
// CHECK: %[[CLAMPED:.*]] = arith.trunci %{{.*}} : i64 to i8
// CHECK: %[[M100:.*]] = arith.constant -100 : i64
// CHECK: %[[SKIPPED:.*]] = arith.cmpi eq, %[[WIDE]], %[[M100]] : i64
// CHECK: arith.select %[[SKIPPED]], %[[ID]], %[[CLAMPED]] : i8
// CHECK: linalg.generic {{.*}}"reduction"
// CHECK: %[[GOOD:.*]] = arith.cmpi ult
// CHECK: %[[SKIPPED:.*]] = arith.cmpi eq
// CHECK: arith.ori %[[GOOD]], %[[SKIPPED]] : i1
func.func @ignored(%logits: tensor<2x4xf32>, %x: tensor<2xf32>) {
  %e = tensor.empty() : tensor<2xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e : tensor<2xi8>) {
  ^bb0(%i: f32, %o: i8):
    %j = arith.fptosi %i : f32 to i8
    linalg.yield %j : i8
  } -> tensor<2xi8>
  // expected-remark @+1 {{not known to be in [0, 4), the classes of the loss}}
  %loss, %lse = fsdp.cross_entropy %logits, %q ignore -100 : tensor<2x4xf32>, tensor<2xi8> -> tensor<f32>, tensor<2xf32>
  return
}

// -----

// The remainder of a negative number is negative.
func.func @negative_remainder(%w: tensor<9x4xf32>,
                              %places: tensor<3xi64> {fsdp.batch = "places", fsdp.limit = 100 : i64}) {
  %e = tensor.empty() : tensor<3xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%places : tensor<3xi64>) outs(%e : tensor<3xi64>) {
  ^bb0(%i: i64, %o: i64):
    %five = arith.constant 5 : i64
    %nine = arith.constant 9 : i64
    %j = arith.subi %i, %five : i64
    %k = arith.remsi %j, %nine : i64
    linalg.yield %k : i64
  } -> tensor<3xi64>
  // expected-remark @+1 {{this lookup is checked in each step: its ids are not known to be in [0, 9)}}
  %d = fsdp.gather_rows %w[%p] : tensor<9x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return
}

// -----

// An index cast from i1 is -1 for true, so only false is a row.
// CHECK-LABEL: func.func @truth(
// CHECK-SAME: tensor<3xi1> {fsdp.batch = "flags", fsdp.limit = 1 : i64}
func.func @truth(%w: tensor<2x4xf32>, %flags: tensor<3xi1> {fsdp.batch = "flags"}) {
  %e = tensor.empty() : tensor<3xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%flags : tensor<3xi1>) outs(%e : tensor<3xi64>) {
  ^bb0(%i: i1, %o: i64):
    %j = arith.index_cast %i : i1 to index
    %k = arith.index_cast %j : index to i64
    linalg.yield %k : i64
  } -> tensor<3xi64>
  %d = fsdp.gather_rows %w[%p] : tensor<2x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return
}
