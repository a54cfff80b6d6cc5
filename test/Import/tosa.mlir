// TOSA in the form of torch-mlir and TFLite: weights are constants of the module.
// RUN: fsdp-opt %s --fsdp-import="attach-loss=cross_entropy" 2>/dev/null | FileCheck %s
// RUN: fsdp-opt %s --fsdp-lower-tosa | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: func.func @main
// CHECK-SAME: {fsdp.batch = "tokens", fsdp.limit = 5 : i64}
// CHECK-SAME: fsdp.param = "emb"
// CHECK-SAME: fsdp.param = "w"
// CHECK-SAME: {fsdp.batch = "targets", fsdp.limit = 5 : i64}
// CHECK: fsdp.gather_rows
// CHECK: fsdp.attention
// CHECK: linalg.contract
// CHECK: fsdp.cross_entropy
// LOWER-NOT: tosa.
func.func @main(%ids: tensor<1x4xi32>) -> tensor<1x4x5xf32> {
  %emb = "tosa.const"() <{values = dense_resource<emb> : tensor<1x5x6xf32>}> : () -> tensor<1x5x6xf32>
  %w = "tosa.const"() <{values = dense_resource<w> : tensor<1x6x5xf32>}> : () -> tensor<1x6x5xf32>
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %x = tosa.gather %emb, %ids : (tensor<1x5x6xf32>, tensor<1x4xi32>) -> tensor<1x4x6xf32>
  %xt = tosa.transpose %x {perms = array<i32: 0, 2, 1>} : (tensor<1x4x6xf32>) -> tensor<1x6x4xf32>
  %s = tosa.matmul %x, %xt, %zp, %zp : (tensor<1x4x6xf32>, tensor<1x6x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4xf32>
  %m = tosa.reduce_max %s {axis = 2 : i32} : (tensor<1x4x4xf32>) -> tensor<1x4x1xf32>
  %d = tosa.sub %s, %m : (tensor<1x4x4xf32>, tensor<1x4x1xf32>) -> tensor<1x4x4xf32>
  %e = tosa.exp %d : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %t = tosa.reduce_sum %e {axis = 2 : i32} : (tensor<1x4x4xf32>) -> tensor<1x4x1xf32>
  %r = tosa.reciprocal %t : (tensor<1x4x1xf32>) -> tensor<1x4x1xf32>
  %p = tosa.mul %e, %r, %shift : (tensor<1x4x4xf32>, tensor<1x4x1xf32>, tensor<1xi8>) -> tensor<1x4x4xf32>
  %a = tosa.matmul %p, %x, %zp, %zp : (tensor<1x4x4xf32>, tensor<1x4x6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x6xf32>
  %l = tosa.matmul %a, %w, %zp, %zp : (tensor<1x4x6xf32>, tensor<1x6x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x5xf32>
  return %l : tensor<1x4x5xf32>
}
{-#
  dialect_resources: {
    builtin: {
      emb: "0x04000000000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF",
      w: "0x04000000000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF000080BE000000000000803E0000003F0000403F000040BF000000BF"
    }
  }
#-}
