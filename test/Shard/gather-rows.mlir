// A table of the root with lookups becomes a unit whose shards are whole rows, if all ranks together look up at most
// half as many rows as it has, and it is not small. Lookups exchange rows; other readers gather the table.

// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=2" --fsdp-insert-unshard --fsdp-verify-sharded | FileCheck %s
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=4" | FileCheck %s --check-prefix=MANY
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=4 gather-rows=always" | FileCheck %s --check-prefix=ALWAYS
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=2 gather-rows=never" | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=2" --fsdp-insert-unshard="grad-accum=2 grad-sync=last" | FileCheck %s --check-prefix=SYNC
// RUN: fsdp-opt %s --fsdp-form-units="mesh=shard=1 gather-rows=always" 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not fsdp-opt %s --fsdp-form-units="mesh=shard=2 gather-rows=some" 2>&1 | FileCheck %s --check-prefix=WORD

// CHECK: fsdp.unit @root shards 2 x 64 : f32 reshard false [{{.*}}"w"
// CHECK: fsdp.unit @table shards 2 x 262144 : f32 reshard false rows [#fsdp.param<"table", tensor<32768x16xf32>, 0,
// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[T:[a-z0-9]+]]: tensor<262144xf32> {fsdp.unit = @table}
// CHECK-SAME:    %[[IDS:[a-z0-9]+]]: tensor<6000xi64>
// CHECK:         %[[E:.*]] = fsdp.unshard_rows %[[T]][%[[IDS]]] @table : tensor<262144xf32>, tensor<6000xi64> -> tensor<6000x16xf32>
// CHECK:         %[[WHOLE:.*]] = fsdp.unshard %[[T]] @table site 0 : tensor<262144xf32> -> tensor<32768x16xf32>
// CHECK-NEXT:    linalg.contract {{.*}} ins(%[[E]], %[[WHOLE]] :
// CHECK-LABEL: func.func @reference(
// CHECK:         fsdp.unshard_rows {{.*}} : tensor<524288xf32>, tensor<6000xi64> -> tensor<6000x16xf32>

// MANY: fsdp.unit @root {{.*}}"table"
// MANY-NOT: rows [
// ALWAYS: fsdp.unit @table shards 4 x 131072 : f32 reshard false rows
// NEVER-NOT: rows [
// SYNC: rows [#fsdp.param<"table"
// SYNC-NOT: unshard_rows
// ALONE: warning: gather-rows 'always' has no effect
// ALONE-NOT: rows [
// WORD: error: gather-rows: expected auto, always or never, found 'some'

#a = affine_map<(n, v, h) -> (n, h)>
#b = affine_map<(n, v, h) -> (v, h)>
#c = affine_map<(n, v, h) -> (n, v)>
#nv = affine_map<(n, v) -> (n, v)>
#none = affine_map<(n, v) -> ()>
func.func @loss(%table: tensor<32768x16xf32> {fsdp.param = "table", fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
                %w: tensor<1xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
                %ids: tensor<6000xi64> {fsdp.batch = "tokens", fsdp.limit = 32768 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = fsdp.gather_rows %table[%ids] : tensor<32768x16xf32>, tensor<6000xi64> -> tensor<6000x16xf32>
  %empty = tensor.empty() : tensor<6000x32768xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6000x32768xf32>) -> tensor<6000x32768xf32>
  %y = linalg.contract indexing_maps = [#a, #b, #c] ins(%e, %table : tensor<6000x16xf32>, tensor<32768x16xf32>)
      outs(%init : tensor<6000x32768xf32>) -> tensor<6000x32768xf32>
  %scalar = tensor.empty() : tensor<f32>
  %sum = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [#nv, #none], iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<6000x32768xf32>) outs(%sum : tensor<f32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = tensor.extract %w[%c0] : tensor<1xf32>
    %p = arith.mulf %x, %s : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
