// Multiplies neighbouring rows of attention by different factors, so that stripes of rows would not be slices of the pairs.
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#pair = affine_map<(d0, d1, d2) -> (d1, d2)>
func.func @loss(%w: tensor<37x8xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<normal, 0.0, 0.4>},
                %f: tensor<2x8xf32> {fsdp.param = "f", fsdp.init = #fsdp.init<normal, 1.0, 0.4>},
                %ids: tensor<1x256xi64> {fsdp.batch = "tokens", fsdp.limit = 37 : i64},
                %targets: tensor<1x256xi64> {fsdp.batch = "targets", fsdp.limit = 37 : i64}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %x = fsdp.gather_rows %w[%ids] : tensor<37x8xf32>, tensor<1x256xi64> -> tensor<1x256x8xf32>
  %q = tensor.expand_shape %x [[0, 1], [2], [3]] output_shape [1, 1, 256, 8] : tensor<1x256x8xf32> into tensor<1x1x256x8xf32>
  %o, %l = fsdp.attention %q, %q, %q scale 0.3 : tensor<1x1x256x8xf32>, tensor<1x1x256x8xf32>, tensor<1x1x256x8xf32> -> tensor<1x1x256x8xf32>, tensor<1x1x256xf32> mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %kept = arith.cmpi sge, %i, %j : index
    fsdp.yield %kept : i1
  }
  %y = tensor.collapse_shape %o [[0, 1, 2], [3]] : tensor<1x1x256x8xf32> into tensor<256x8xf32>
  %pairs = tensor.expand_shape %y [[0, 1], [2]] output_shape [128, 2, 8] : tensor<256x8xf32> into tensor<128x2x8xf32>
  %e = tensor.empty() : tensor<128x2x8xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #pair, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%pairs, %f : tensor<128x2x8xf32>, tensor<2x8xf32>) outs(%e : tensor<128x2x8xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<128x2x8xf32>
  %r = tensor.collapse_shape %scaled [[0, 1], [2]] : tensor<128x2x8xf32> into tensor<256x8xf32>
  %i = tensor.empty() : tensor<256x37xf32>
  %z = linalg.fill ins(%zero : f32) outs(%i : tensor<256x37xf32>) -> tensor<256x37xf32>
  %logits = linalg.contract indexing_maps = [affine_map<(t, v, d) -> (t, d)>, affine_map<(t, v, d) -> (v, d)>, affine_map<(t, v, d) -> (t, v)>]
      ins(%r, %w : tensor<256x8xf32>, tensor<37x8xf32>) outs(%z : tensor<256x37xf32>) -> tensor<256x37xf32>
  %flat = tensor.collapse_shape %targets [[0, 1]] : tensor<1x256xi64> into tensor<256xi64>
  %loss, %lse = fsdp.cross_entropy %logits, %flat : tensor<256x37xf32>, tensor<256xi64> -> tensor<f32>, tensor<256xf32>
  return %loss : tensor<f32>
}
