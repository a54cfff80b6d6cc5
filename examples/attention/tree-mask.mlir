// A tree: the positions are the nodes of a binary tree, parents before children, and each sees itself
// and its ancestors, as when several continuations of one text are scored at once. A walk through the tree
// enters node n at step enter[n] and leaves its subtree behind step leave[n]: j is an ancestor of i where
// the walk enters i between the two.
func.func @loss(%wte: tensor<256x64xf32> {fsdp.param = "wte.weight"},
                %wq: tensor<64x64xf32> {fsdp.param = "h.0.q.weight"}, %wk: tensor<64x64xf32> {fsdp.param = "h.0.k.weight"},
                %wv: tensor<64x64xf32> {fsdp.param = "h.0.v.weight"}, %wo: tensor<64x64xf32> {fsdp.param = "h.0.o.weight"},
                %head: tensor<64x256xf32> {fsdp.param = "lm_head.weight"},
                %tokens: tensor<4x64xi64> {fsdp.batch = "tokens", fsdp.limit = 256 : i64},
                %targets: tensor<4x64xi64> {fsdp.batch = "targets", fsdp.limit = 256 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  %embedded = fsdp.gather_rows %wte[%tokens] : tensor<256x64xf32>, tensor<4x64xi64> -> tensor<4x64x64xf32>
  %x = tensor.collapse_shape %embedded [[0, 1], [2]] : tensor<4x64x64xf32> into tensor<256x64xf32>

  // Queries, keys and values: [batch, heads, sequence, 16].
  %q0 = linalg.matmul ins(%x, %wq : tensor<256x64xf32>, tensor<64x64xf32>) outs(%z : tensor<256x64xf32>) -> tensor<256x64xf32>
  %k0 = linalg.matmul ins(%x, %wk : tensor<256x64xf32>, tensor<64x64xf32>) outs(%z : tensor<256x64xf32>) -> tensor<256x64xf32>
  %v0 = linalg.matmul ins(%x, %wv : tensor<256x64xf32>, tensor<64x64xf32>) outs(%z : tensor<256x64xf32>) -> tensor<256x64xf32>
  %q1 = tensor.expand_shape %q0 [[0, 1], [2, 3]] output_shape [4, 64, 4, 16] : tensor<256x64xf32> into tensor<4x64x4x16xf32>
  %k1 = tensor.expand_shape %k0 [[0, 1], [2, 3]] output_shape [4, 64, 4, 16] : tensor<256x64xf32> into tensor<4x64x4x16xf32>
  %v1 = tensor.expand_shape %v0 [[0, 1], [2, 3]] output_shape [4, 64, 4, 16] : tensor<256x64xf32> into tensor<4x64x4x16xf32>
  %heads = tensor.empty() : tensor<4x4x64x16xf32>
  %q = linalg.transpose ins(%q1 : tensor<4x64x4x16xf32>) outs(%heads : tensor<4x4x64x16xf32>) permutation = [0, 2, 1, 3]
  %k = linalg.transpose ins(%k1 : tensor<4x64x4x16xf32>) outs(%heads : tensor<4x4x64x16xf32>) permutation = [0, 2, 1, 3]
  %v = linalg.transpose ins(%v1 : tensor<4x64x4x16xf32>) outs(%heads : tensor<4x4x64x16xf32>) permutation = [0, 2, 1, 3]

  %enter = arith.constant dense<[
      0, 1, 33, 2, 18, 34, 49, 3, 11, 19, 26, 35, 42, 50, 57, 4, 8, 12, 15, 20, 23, 27, 30, 36, 39, 43, 46, 51,
      54, 58, 61, 5, 7, 9, 10, 13, 14, 16, 17, 21, 22, 24, 25, 28, 29, 31, 32, 37, 38, 40, 41, 44, 45, 47, 48, 52,
      53, 55, 56, 59, 60, 62, 63, 6]> : tensor<64xi64>
  %leave = arith.constant dense<[
      63, 32, 63, 17, 32, 48, 63, 10, 17, 25, 32, 41, 48, 56, 63, 7, 10, 14, 17, 22, 25, 29, 32, 38, 41, 45, 48,
      53, 56, 60, 63, 6, 7, 9, 10, 13, 14, 16, 17, 21, 22, 24, 25, 28, 29, 31, 32, 37, 38, 40, 41, 44, 45, 47, 48,
      52, 53, 55, 56, 59, 60, 62, 63, 6]> : tensor<64xi64>
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 capture(%enter, %leave : tensor<64xi64>, tensor<64xi64>)
      : tensor<4x4x64x16xf32>, tensor<4x4x64x16xf32>, tensor<4x4x64x16xf32> -> tensor<4x4x64x16xf32>, tensor<4x4x64xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index, %in: tensor<64xi64>, %out: tensor<64xi64>) {
    %here = tensor.extract %in[%i] : tensor<64xi64>
    %first = tensor.extract %in[%j] : tensor<64xi64>
    %last = tensor.extract %out[%j] : tensor<64xi64>
    %after = arith.cmpi sge, %here, %first : i64
    %before = arith.cmpi sle, %here, %last : i64
    %keep = arith.andi %after, %before : i1
    fsdp.yield %keep : i1
  }

  %rows = tensor.empty() : tensor<4x64x4x16xf32>
  %o1 = linalg.transpose ins(%o : tensor<4x4x64x16xf32>) outs(%rows : tensor<4x64x4x16xf32>) permutation = [0, 2, 1, 3]
  %o2 = tensor.collapse_shape %o1 [[0, 1], [2, 3]] : tensor<4x64x4x16xf32> into tensor<256x64xf32>
  %y = linalg.matmul ins(%o2, %wo : tensor<256x64xf32>, tensor<64x64xf32>) outs(%x : tensor<256x64xf32>) -> tensor<256x64xf32>
  %le = tensor.empty() : tensor<256x256xf32>
  %lz = linalg.fill ins(%zero : f32) outs(%le : tensor<256x256xf32>) -> tensor<256x256xf32>
  %logits = linalg.matmul ins(%y, %head : tensor<256x64xf32>, tensor<64x256xf32>) outs(%lz : tensor<256x256xf32>) -> tensor<256x256xf32>
  %t = tensor.collapse_shape %targets [[0, 1]] : tensor<4x64xi64> into tensor<256xi64>
  %loss, %l = fsdp.cross_entropy %logits, %t : tensor<256x256xf32>, tensor<256xi64> -> tensor<f32>, tensor<256xf32>
  return %loss : tensor<f32>
}
