// Adds a number of the batch to the embedding of each token, and the squares of all outputs of attention to the loss, which are
// a sum over the heads and the rows.
#project = affine_map<(b, t, n, d) -> (b, t, d)>
#weight = affine_map<(b, t, n, d) -> (d, n)>
#projected = affine_map<(b, t, n, d) -> (b, t, n)>
#all = affine_map<(b, h, t, d) -> (b, h, t, d)>
#none = affine_map<(b, h, t, d) -> ()>
#token = affine_map<(b, t, d) -> (b, t, d)>
#first = affine_map<(b, t, d) -> (b, t)>
#scalar = affine_map<() -> ()>
func.func @loss(%table: tensor<11x8xf64> {fsdp.param = "table", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %wq: tensor<8x8xf64> {fsdp.param = "h.0.q", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %wv: tensor<8x8xf64> {fsdp.param = "h.0.v", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %wo: tensor<8x8xf64> {fsdp.param = "h.0.o", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %offsets: tensor<2x8xf64> {fsdp.batch = "offsets"},
                %ids: tensor<2x8xi64> {fsdp.batch = "tokens", fsdp.limit = 11 : i64},
                %targets: tensor<2x8xi64> {fsdp.batch = "targets", fsdp.limit = 11 : i64}) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<2x8x8xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %rowsOf = fsdp.gather_rows %table[%ids] : tensor<11x8xf64>, tensor<2x8xi64> -> tensor<2x8x8xf64>
  %x = linalg.generic {indexing_maps = [#token, #first, #token], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%rowsOf, %offsets : tensor<2x8x8xf64>, tensor<2x8xf64>) outs(%e : tensor<2x8x8xf64>) {
  ^bb0(%a: f64, %c: f64, %out: f64):
    %u = arith.addf %a, %c : f64
    linalg.yield %u : f64
  } -> tensor<2x8x8xf64>
  %q = linalg.contract indexing_maps = [#project, #weight, #projected]
      ins(%x, %wq : tensor<2x8x8xf64>, tensor<8x8xf64>) outs(%z : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %v = linalg.contract indexing_maps = [#project, #weight, #projected]
      ins(%x, %wv : tensor<2x8x8xf64>, tensor<8x8xf64>) outs(%z : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %heads = tensor.empty() : tensor<2x4x8x2xf64>
  %q4 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 8, 4, 2] : tensor<2x8x8xf64> into tensor<2x8x4x2xf64>
  %v4 = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, 8, 4, 2] : tensor<2x8x8xf64> into tensor<2x8x4x2xf64>
  %qh = linalg.transpose ins(%q4 : tensor<2x8x4x2xf64>) outs(%heads : tensor<2x4x8x2xf64>) permutation = [0, 2, 1, 3]
  %vh = linalg.transpose ins(%v4 : tensor<2x8x4x2xf64>) outs(%heads : tensor<2x4x8x2xf64>) permutation = [0, 2, 1, 3]
  %o, %l = fsdp.attention %qh, %qh, %vh scale 0.7 : tensor<2x4x8x2xf64>, tensor<2x4x8x2xf64>, tensor<2x4x8x2xf64> -> tensor<2x4x8x2xf64>, tensor<2x4x8xf64> mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %kept = arith.cmpi sge, %i, %j : index
    fsdp.yield %kept : i1
  }
  %es = tensor.empty() : tensor<f64>
  %zs = linalg.fill ins(%zero : f64) outs(%es : tensor<f64>) -> tensor<f64>
  %squares = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%o : tensor<2x4x8x2xf64>) outs(%zs : tensor<f64>) {
  ^bb0(%a: f64, %sum: f64):
    %s = arith.mulf %a, %a : f64
    %r = arith.addf %sum, %s : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  %rows = tensor.empty() : tensor<2x8x4x2xf64>
  %back = linalg.transpose ins(%o : tensor<2x4x8x2xf64>) outs(%rows : tensor<2x8x4x2xf64>) permutation = [0, 2, 1, 3]
  %y = tensor.collapse_shape %back [[0], [1], [2, 3]] : tensor<2x8x4x2xf64> into tensor<2x8x8xf64>
  %p = linalg.contract indexing_maps = [#project, #weight, #projected]
      ins(%y, %wo : tensor<2x8x8xf64>, tensor<8x8xf64>) outs(%z : tensor<2x8x8xf64>) -> tensor<2x8x8xf64>
  %flat = tensor.collapse_shape %p [[0, 1], [2]] : tensor<2x8x8xf64> into tensor<16x8xf64>
  %el = tensor.empty() : tensor<16x11xf64>
  %zl = linalg.fill ins(%zero : f64) outs(%el : tensor<16x11xf64>) -> tensor<16x11xf64>
  %logits = linalg.contract indexing_maps = [affine_map<(t, v, d) -> (t, d)>, affine_map<(t, v, d) -> (v, d)>, affine_map<(t, v, d) -> (t, v)>]
      ins(%flat, %table : tensor<16x8xf64>, tensor<11x8xf64>) outs(%zl : tensor<16x11xf64>) -> tensor<16x11xf64>
  %labels = tensor.collapse_shape %targets [[0, 1]] : tensor<2x8xi64> into tensor<16xi64>
  %mean, %lse = fsdp.cross_entropy %logits, %labels : tensor<16x11xf64>, tensor<16xi64> -> tensor<f64>, tensor<16xf64>
  %loss = linalg.generic {indexing_maps = [#scalar, #scalar, #scalar], iterator_types = []}
      ins(%mean, %squares : tensor<f64>, tensor<f64>) outs(%es : tensor<f64>) {
  ^bb0(%m: f64, %n: f64, %out: f64):
    %factor = arith.constant 0.01 : f64
    %scaled = arith.mulf %n, %factor : f64
    %t = arith.addf %m, %scaled : f64
    linalg.yield %t : f64
  } -> tensor<f64>
  return %loss : tensor<f64>
}
