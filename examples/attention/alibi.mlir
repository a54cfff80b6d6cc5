// ALiBi: instead of a position embedding, each head lowers the score of a key by the distance to
// it, times a slope of the head: https://arxiv.org/abs/2108.12409. The slopes are a captured constant.
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

  %slopes = arith.constant dense<[0.25, 0.0625, 0.015625, 0.00390625]> : tensor<4xf32>
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 capture(%slopes : tensor<4xf32>)
      : tensor<4x4x64x16xf32>, tensor<4x4x64x16xf32>, tensor<4x4x64x16xf32> -> tensor<4x4x64x16xf32>, tensor<4x4x64xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %slope = tensor.extract %m[%h] : tensor<4xf32>
    %distance = arith.subi %j, %i : index
    %d = arith.index_cast %distance : index to i64
    %f = arith.sitofp %d : i64 to f32
    %bias = arith.mulf %slope, %f : f32
    %r = arith.addf %s, %bias : f32
    fsdp.yield %r : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    %keep = arith.cmpi sge, %i, %j : index
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
