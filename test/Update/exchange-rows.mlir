// RUN: fsdp-opt %s --fsdp-exchange-rows | FileCheck %s

// Each of two ranks has 8 rows of the table and looks up 3 ids. In the step, ids and rows are exchanged between ranks;
// sums of rows carry fsdp.rows and the gradient fsdp.unit. The reference has all rows and looks them up locally.

// DOC-BEFORE-BEGIN fsdp-exchange-rows
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @table shards 2 x 64 : f32 reshard false rows [
  #fsdp.param<"table", tensor<15x8xf32>, 0, trainable = true, decay = true, init = <constant, 0.0, 0.0>>]
// DOC-BEFORE-END

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[S:[a-z0-9]+]]: tensor<64xf32> {fsdp.unit = @table}, %[[IDS:[a-z0-9]+]]: tensor<1x3xi32>
// CHECK:         %[[FLAT:.*]] = tensor.collapse_shape %[[IDS]]
// CHECK:         %[[ALL:.*]] = fsdp.all_gather %[[FLAT]] @mesh ["shard"] {fsdp.rows = @table} : tensor<3xi32> -> tensor<6xi32>
// CHECK:         %[[T:.*]] = tensor.expand_shape %[[S]] {{.*}} : tensor<64xf32> into tensor<8x8xf32>
// The rank's first row:
// CHECK:         linalg.index 0
// CHECK:         arith.muli %{{.*}}, %c8_i64
// CHECK:         fsdp.own_piece %{{.*}} @mesh ["shard"] : tensor<2xi64> -> tensor<1xi64>
// CHECK:         %[[LOCAL:.*]] = linalg.generic {{.*}} ins(%[[ALL]], %{{.*}} : tensor<6xi32>, tensor<i64>)
// CHECK:           arith.subi
// CHECK:           %[[OWN:.*]] = arith.cmpi ult, %{{.*}}, %c8_i64
// CHECK:           arith.select %[[OWN]], %{{.*}}, %c8_i64
// CHECK:         %[[PICKED:.*]] = linalg.generic {{.*}} ins(%[[LOCAL]] : tensor<6xi64>) outs(%{{.*}} : tensor<6x8xbf16>)
// CHECK:           tensor.extract %[[T]]
// CHECK:           arith.truncf
// CHECK:           arith.select
// CHECK:         fsdp.flat_reduce_scatter %{{.*}} @mesh ["shard"] sum {fsdp.rows = @table} : tensor<48xbf16> -> tensor<24xbf16>
// CHECK:         tensor.expand_shape %{{.*}} : tensor<24xbf16> into tensor<1x3x8xbf16>
// CHECK:         fsdp.all_gather %{{.*}} {fsdp.rows = @table} : tensor<24xbf16> -> tensor<48xbf16>
// CHECK:         %[[SUM:.*]] = fsdp.scatter_add_rows %{{.*}} at %{{.*}} {fsdp.rows = @table} : tensor<6x8xf32>, tensor<6xi64> -> tensor<9x8xf32>
// CHECK:         tensor.extract_slice %[[SUM]][0, 0] [8, 8] [1, 1]
// CHECK:         linalg.generic {{.*}} attrs = {fsdp.unit = @table}
// CHECK:         %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK:         arith.mulf %{{.*}}, %[[HALF]] : f32
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK:         arith.extf %{{.*}} : bf16 to f32
// DOC-BEFORE-BEGIN fsdp-exchange-rows
// DOC-AFTER: @step
// DOC-LINES: 32
func.func @step(%s: tensor<64xf32> {fsdp.unit = @table}, %ids: tensor<1x3xi32>, %g: tensor<3x8xbf16>, %flat: tensor<3xi32>)
    -> (tensor<1x3x8xbf16>, tensor<64xf32>) attributes {fsdp.mesh = @mesh} {
  %e = fsdp.unshard_rows %s[%ids] @table : tensor<64xf32>, tensor<1x3xi32> -> tensor<1x3x8xbf16>
  %r = fsdp.reduce_rows @table avg %g at %flat : tensor<3x8xbf16>, tensor<3xi32> -> tensor<64xf32>
  return %e, %r : tensor<1x3x8xbf16>, tensor<64xf32>
}
// DOC-BEFORE-END

// CHECK-LABEL: func.func @reference(
// CHECK-NOT:     all_gather
// CHECK:         fsdp.gather_rows %{{.*}}[%{{.*}}] : tensor<16x8xf32>, tensor<1x3xi32> -> tensor<1x3x8xf32>
// CHECK:         %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         arith.addf %{{.*}}, %[[ZERO]] : f32
// CHECK:         fsdp.scatter_add_rows %{{.*}} {fsdp.rows = @table} : tensor<3x8xf32>, tensor<3xi32> -> tensor<16x8xf32>
// CHECK-NOT:     arith.mulf
// CHECK:         return
func.func @reference(%s: tensor<128xf32> {fsdp.unit = @table}, %ids: tensor<1x3xi32>, %g: tensor<3x8xbf16>, %flat: tensor<3xi32>)
    -> (tensor<1x3x8xbf16>, tensor<128xf32>) attributes {fsdp.mesh = @solo} {
  %e = fsdp.unshard_rows %s[%ids] @table : tensor<128xf32>, tensor<1x3xi32> -> tensor<1x3x8xbf16>
  %r = fsdp.reduce_rows @table avg %g at %flat : tensor<3x8xbf16>, tensor<3xi32> -> tensor<128xf32>
  return %e, %r : tensor<1x3x8xbf16>, tensor<128xf32>
}
