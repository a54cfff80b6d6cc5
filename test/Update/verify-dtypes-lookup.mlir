// RUN: fsdp-compile %s --mesh=shard=2 --param-dtype=bf16 --compile-to=update -o - | FileCheck %s

// The ids of a checked lookup are computed from values in bf16. The check is part of the step block beside the norm; the values
// belong to the model, whose types are not checked.

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
#r = affine_map<(i) -> (i)>
// CHECK: fsdp.lookups = [{extent = 8 : i64
// CHECK-LABEL: func.func @step(
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: arith.fptosi
func.func @loss(%wte: tensor<256x8xf32> {fsdp.param = "wte"}, %near: tensor<8x8xf32> {fsdp.param = "near"},
                %ids: tensor<4xi64> {fsdp.batch = "tokens"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %rows = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: i64, %o: f32):
    %i = arith.index_cast %x : i64 to index
    %c = linalg.index 1 : index
    %u = tensor.extract %wte[%i, %c] : tensor<256x8xf32>
    %w = arith.mulf %u, %u : f32
    linalg.yield %w : f32
  } -> tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %sums = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%rows : tensor<4x8xf32>) outs(%s1 : tensor<4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.addf %o, %v : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %ei = tensor.empty() : tensor<4xi64>
  %chosen = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel"]} ins(%sums : tensor<4xf32>) outs(%ei : tensor<4xi64>) {
  ^bb0(%v: f32, %o: i64):
    %q = arith.mulf %v, %v : f32
    %r = arith.fptosi %q : f32 to i64
    linalg.yield %r : i64
  } -> tensor<4xi64>
  %picked = linalg.generic {indexing_maps = [#i, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%chosen, %rows : tensor<4xi64>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: i64, %v: f32, %o: f32):
    %i = arith.index_cast %x : i64 to index
    %c = linalg.index 1 : index
    %u = tensor.extract %near[%i, %c] : tensor<8x8xf32>
    %r = arith.mulf %u, %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %se = tensor.empty() : tensor<f32>
  %s = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [#ij, #none], iterator_types = ["reduction", "reduction"]} ins(%picked : tensor<4x8xf32>) outs(%s : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.mulf %v, %v : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
