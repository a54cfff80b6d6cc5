// A bigram table with a mask of ids, with arguments (ids, mask, labels) as exporters of encoders write them.
#ij = affine_map<(i, j) -> (i, j)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
module {
  func.func @loss(%w: tensor<256x256xf32>, %ids: tensor<2x8xi64>, %mask: tensor<2x8xi64>, %labels: tensor<2x8xi64>) -> tensor<f32> {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : i64
    %n = arith.constant 16.0 : f32
    %e = tensor.empty() : tensor<2x8x256xf32>
    %logits = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j)>, #ijk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids, %mask : tensor<2x8xi64>, tensor<2x8xi64>) outs(%e : tensor<2x8x256xf32>) {
    ^bb0(%id: i64, %m: i64, %o: f32):
      %i = arith.index_cast %id : i64 to index
      %c = linalg.index 2 : index
      %v = tensor.extract %w[%i, %c] : tensor<256x256xf32>
      %k = arith.cmpi ne, %m, %c0 : i64
      %r = arith.select %k, %v, %zero : f32
      linalg.yield %r : f32
    } -> tensor<2x8x256xf32>
    %flat = tensor.collapse_shape %logits [[0, 1], [2]] : tensor<2x8x256xf32> into tensor<16x256xf32>
    %y = tensor.collapse_shape %labels [[0, 1]] : tensor<2x8xi64> into tensor<16xi64>
    %se = tensor.empty() : tensor<16xf32>
    %s0 = linalg.fill ins(%zero : f32) outs(%se : tensor<16xf32>) -> tensor<16xf32>
    %sum = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%flat : tensor<16x256xf32>) outs(%s0 : tensor<16xf32>) {
    ^bb0(%v: f32, %o: f32):
      %x = math.exp %v : f32
      %r = arith.addf %o, %x : f32
      linalg.yield %r : f32
    } -> tensor<16xf32>
    %nll = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y, %sum : tensor<16xi64>, tensor<16xf32>) outs(%se : tensor<16xf32>) {
    ^bb0(%t: i64, %s: f32, %o: f32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %t : i64 to index
      %v = tensor.extract %flat[%i, %j] : tensor<16x256xf32>
      %l = math.log %s : f32
      %r = arith.subf %l, %v : f32
      linalg.yield %r : f32
    } -> tensor<16xf32>
    %te = tensor.empty() : tensor<f32>
    %t0 = linalg.fill ins(%zero : f32) outs(%te : tensor<f32>) -> tensor<f32>
    %total = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%nll : tensor<16xf32>) outs(%t0 : tensor<f32>) {
    ^bb0(%v: f32, %o: f32):
      %q = arith.divf %v, %n : f32
      %r = arith.addf %o, %q : f32
      linalg.yield %r : f32
    } -> tensor<f32>
    return %total : tensor<f32>
  }
}
