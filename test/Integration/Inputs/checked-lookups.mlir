// Three lookups at indices computed from tokens. Token a reads row a of %wte, row a * 1000000007 + 1 of %far, and row 3 - a of
// %near. Tokens 0 to 3 keep the last lookup in range; token 0 keeps all of them in range.
#ij = affine_map<(i, j) -> (i, j)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
#ijk_ij = affine_map<(i, j, k) -> (i, j)>
#none = affine_map<(i, j, k) -> ()>
func.func @loss(%wte: tensor<256x8xf32> {fsdp.param = "wte"}, %near: tensor<8x8xf32> {fsdp.param = "near"},
                %far: tensor<8x8xf32> {fsdp.param = "far"}, %ids: tensor<2x4xi64> {fsdp.batch = "tokens"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %ie = tensor.empty() : tensor<2x4xi64>
  %e = tensor.empty() : tensor<2x4x8xf32>
  %se = tensor.empty() : tensor<f32>
  %a = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<2x4xi64>) outs(%ie : tensor<2x4xi64>) {
  ^bb0(%id: i64, %o: i64):
    %step = arith.constant 1000000007 : i64
    %one = arith.constant 1 : i64
    %m = arith.muli %id, %step : i64
    %r = arith.addi %m, %one : i64
    linalg.yield %r : i64
  } -> tensor<2x4xi64>
  %b = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<2x4xi64>) outs(%ie : tensor<2x4xi64>) {
  ^bb0(%id: i64, %o: i64):
    %three = arith.constant 3 : i64
    %r = arith.subi %three, %id : i64
    linalg.yield %r : i64
  } -> tensor<2x4xi64>
  %rows = linalg.generic {indexing_maps = [#ijk_ij, #ijk_ij, #ijk_ij, #ijk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids, %a, %b : tensor<2x4xi64>, tensor<2x4xi64>, tensor<2x4xi64>) outs(%e : tensor<2x4x8xf32>) {
  ^bb0(%x: i64, %y: i64, %z: i64, %o: f32):
    %i = arith.index_cast %x : i64 to index
    %j = arith.index_cast %y : i64 to index
    %k = arith.index_cast %z : i64 to index
    %c = linalg.index 2 : index
    %u = tensor.extract %wte[%i, %c] : tensor<256x8xf32>
    %v = tensor.extract %far[%j, %c] : tensor<8x8xf32>
    %w = tensor.extract %near[%k, %c] : tensor<8x8xf32>
    %uv = arith.addf %u, %v : f32
    %r = arith.addf %uv, %w : f32
    linalg.yield %r : f32
  } -> tensor<2x4x8xf32>
  %s = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [#ijk, #none], iterator_types = ["reduction", "reduction", "reduction"]} ins(%rows : tensor<2x4x8xf32>) outs(%s : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.mulf %v, %v : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  // A gradient of all rows of %near, to which the gradient of the lookup is added.
  %decay = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%near : tensor<8x8xf32>) outs(%loss : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.mulf %v, %v : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %decay : tensor<f32>
}
