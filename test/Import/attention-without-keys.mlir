// RUN: fsdp-opt %s --fsdp-import -o /dev/null 2>&1 | FileCheck %s

// CHECK: attention-without-keys.mlir:[[# @LINE + 2]]:{{[0-9]+}}: warning: the mask of this attention keeps no key in any row: the result is zero
func.func @loss(%x: tensor<1x2x4x8xf32> {fsdp.param = "x"}, %ids: tensor<4xi64> {fsdp.batch = "tokens", fsdp.limit = 4 : i64}) -> tensor<f32> {
  %o, %lse = fsdp.attention %x, %x, %x scale 1.0 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %c4 = arith.constant 4 : index
    %d = arith.addi %i, %c4 : index
    %keep = arith.cmpi sgt, %j, %d : index
    fsdp.yield %keep : i1
  }
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> ()>],
                          iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%o : tensor<1x2x4x8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %sum = arith.addf %s, %a : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
