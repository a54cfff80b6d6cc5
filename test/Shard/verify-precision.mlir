// A product or attention whose f32 operand is a rounded value, extended again, is refused, through transpositions as well.
// `fsdp.keep_f32` allows it. Modules that --param-dtype did not narrow are not checked.
// RUN: fsdp-opt %s -split-input-file -verify-diagnostics --fsdp-verify-precision

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
module attributes {fsdp.kept_wide = {}} {
  func.func @loss(%x: tensor<4x6xbf16>, %w: tensor<6x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %e = tensor.empty() : tensor<4x6xf32>
    // expected-note @+1 {{the rounded values are extended here}}
    %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xbf16>) outs(%e : tensor<4x6xf32>) {
    ^bb0(%a: bf16, %o: f32):
      %r = arith.extf %a : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<4x6xf32>
    %e2 = tensor.empty() : tensor<6x4xf32>
    %turned = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%wide : tensor<4x6xf32>) outs(%e2 : tensor<6x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<6x4xf32>
    // expected-error @+1 {{after Shard: expected operands of 'bf16' for this product, found f32 that was rounded to 'bf16' before; name it in --keep-f32 if this is intended}}
    %p = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
        ins(%turned, %w : tensor<6x4xf32>, tensor<6x8xf32>) outs(%y : tensor<4x8xf32>) -> tensor<4x8xf32>
    %q = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>] {fsdp.keep_f32}
        ins(%turned, %w : tensor<6x4xf32>, tensor<6x8xf32>) outs(%y : tensor<4x8xf32>) -> tensor<4x8xf32>
    return %p, %q : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// DOC-BEFORE-BEGIN fsdp-verify-precision
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
module attributes {fsdp.kept_wide = {}} {
  func.func @loss(%x: tensor<1x2x4x8xbf16>, %k: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
    %e = tensor.empty() : tensor<1x2x4x8xf32>
    // expected-note @+1 {{the rounded values are extended here}}
    %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x2x4x8xbf16>) outs(%e : tensor<1x2x4x8xf32>) {
    ^bb0(%a: bf16, %o: f32):
      %r = arith.extf %a : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<1x2x4x8xf32>
    // expected-error @+1 {{expected operands of 'bf16' for this attention, found f32 that was rounded to 'bf16' before}}
    %o, %lse = fsdp.attention %wide, %k, %k scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
    return %o : tensor<1x2x4x8xf32>
  }
}
// DOC-BEFORE-END

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @exported(%x: tensor<4x6xbf16>, %w: tensor<6x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xbf16>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %r = arith.extf %a : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %p = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%wide, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%y : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}
