// Contractions of views whose tiles fit tensor maps: several digits on each side, at each position.

#scores_q = affine_map<(b,h,i,j,d)->(b,i,h,d)>
#scores_k = affine_map<(b,h,i,j,d)->(b,j,h,d)>
#scores_s = affine_map<(b,h,i,j,d)->(b,h,i,j)>

// Scores of heads that are contiguous; the result's rows extend beyond a tile.
func.func private @scores(%q: tensor<2x136x3x64xbf16>, %k: tensor<2x136x3x64xbf16>, %s: tensor<2x3x136x136xbf16> {fsdp.out = 0 : i64})
    -> tensor<2x3x136x136xbf16> attributes {fsdp.kernel, fsdp.kind = "contract", fsdp.gemm_tile = "wg128x128"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x136x136xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x3x136x136xf32>) -> tensor<2x3x136x136xf32>
  %r = linalg.contract indexing_maps = [#scores_q, #scores_k, #scores_s] ins(%q, %k : tensor<2x136x3x64xbf16>, tensor<2x136x3x64xbf16>)
      outs(%i : tensor<2x3x136x136xf32>) -> tensor<2x3x136x136xf32>
  %f = tensor.empty() : tensor<2x3x136x136xbf16>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>, affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%r : tensor<2x3x136x136xf32>) outs(%f : tensor<2x3x136x136xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %scale = arith.constant 0.125 : f32
    %m = arith.mulf %a, %scale : f32
    %y = arith.truncf %m : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<2x3x136x136xbf16>
  return %g : tensor<2x3x136x136xbf16>
}

// Projection to [B,H,T,D]: rows and columns of two digits each, which no tile crosses; boxes of the result have four coordinates.
func.func private @heads(%x: tensor<2x128x72xbf16>, %w: tensor<72x3x64xbf16>, %s: tensor<2x3x128x64xbf16> {fsdp.out = 0 : i64})
    -> tensor<2x3x128x64xbf16> attributes {fsdp.kernel, fsdp.kind = "contract", fsdp.gemm_tile = "wg128x64"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x128x64xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x3x128x64xf32>) -> tensor<2x3x128x64xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b,h,t,d,c)->(b,t,c)>, affine_map<(b,h,t,d,c)->(c,h,d)>, affine_map<(b,h,t,d,c)->(b,h,t,d)>]
      ins(%x, %w : tensor<2x128x72xbf16>, tensor<72x3x64xbf16>) outs(%i : tensor<2x3x128x64xf32>) -> tensor<2x3x128x64xf32>
  %f = tensor.empty() : tensor<2x3x128x64xbf16>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>, affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%r : tensor<2x3x128x64xf32>) outs(%f : tensor<2x3x128x64xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %y = arith.truncf %a : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<2x3x128x64xbf16>
  return %g : tensor<2x3x128x64xbf16>
}

// The gradient of a projection's weight: k has two digits, with a tail in the inner one; it is added to an existing f32 value.
func.func private @wgrad(%x: tensor<3x72x136xbf16>, %dy: tensor<3x2x72x64xbf16>, %dw: tensor<136x2x64xf32> {fsdp.inout = 0 : i64})
    -> tensor<136x2x64xf32> attributes {fsdp.kernel, fsdp.kind = "contract", fsdp.gemm_tile = "wg128x64"} {
  %r = linalg.contract indexing_maps = [affine_map<(c,h,d,b,t)->(b,t,c)>, affine_map<(c,h,d,b,t)->(b,h,t,d)>, affine_map<(c,h,d,b,t)->(c,h,d)>]
      ins(%x, %dy : tensor<3x72x136xbf16>, tensor<3x2x72x64xbf16>) outs(%dw : tensor<136x2x64xf32>) -> tensor<136x2x64xf32>
  return %r : tensor<136x2x64xf32>
}

// One factor is shared by a batch, the other is a slice; the lower block of a cluster has no work.
func.func private @sliced(%x: tensor<2x120x256xf16>, %w: tensor<136x64xf16>, %s: tensor<2x120x136xf16> {fsdp.out = 0 : i64})
    -> tensor<2x120x136xf16> attributes {fsdp.kernel, fsdp.kind = "contract", fsdp.gemm_tile = "wg128x128c2"} {
  %part = tensor.extract_slice %x[0, 0, 128] [2, 120, 64] [1, 1, 1] : tensor<2x120x256xf16> to tensor<2x120x64xf16>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x120x136xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x120x136xf32>) -> tensor<2x120x136xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b,m,n,k)->(b,m,k)>, affine_map<(b,m,n,k)->(n,k)>, affine_map<(b,m,n,k)->(b,m,n)>]
      ins(%part, %w : tensor<2x120x64xf16>, tensor<136x64xf16>) outs(%i : tensor<2x120x136xf32>) -> tensor<2x120x136xf32>
  %f = tensor.empty() : tensor<2x120x136xf16>
  %g = linalg.generic {indexing_maps = [affine_map<(a,b,c)->(a,b,c)>, affine_map<(a,b,c)->(a,b,c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r : tensor<2x120x136xf32>) outs(%f : tensor<2x120x136xf16>) {
  ^bb0(%a: f32, %o: f16):
    %y = arith.truncf %a : f32 to f16
    linalg.yield %y : f16
  } -> tensor<2x120x136xf16>
  return %g : tensor<2x120x136xf16>
}
