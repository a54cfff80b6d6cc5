// A table of vectors, scaled by a buffer that is a resource in the file.
func.func @loss(%w: tensor<8x4xf32>, %ids: tensor<2x4xi64>) -> tensor<f32> {
  %scale = arith.constant dense_resource<scale_buffer> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%ids : tensor<2x4xi64>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %c = linalg.index 2 : index
    %v = tensor.extract %w[%i, %c] : tensor<8x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x4x4xf32>
  %se = tensor.empty() : tensor<f32>
  %s0 = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (c)>, affine_map<(a, b, c) -> ()>], iterator_types = ["reduction", "reduction", "reduction"]}
    ins(%rows, %scale : tensor<2x4x4xf32>, tensor<4xf32>) outs(%s0 : tensor<f32>) {
  ^bb0(%v: f32, %f: f32, %o: f32):
    %m = arith.mulf %v, %f : f32
    %q = arith.mulf %m, %m : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %loss : tensor<f32>
}
{-#
  dialect_resources: { builtin: { scale_buffer: "0x040000000000803F000000400000404000008040" } }
#-}
