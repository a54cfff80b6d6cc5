// A row of 99 bf16 has 198 bytes; padded to 104 elements, it has 208 bytes, a multiple of 16.
// RUN: fsdp-opt %s --fsdp-align-rows | FileCheck %s

// CHECK: fsdp.dispatch(%{{.*}}) inplace [-1] {kind = "map"} : (tensor<8x99xf32>) -> tensor<8x104xbf16>
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [8, 99] [1, 1]
// CHECK: linalg.contract

// DOC-BEFORE-BEGIN fsdp-align-rows
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<8x99xf32>, %w: tensor<99x64xbf16>) -> tensor<8x64xf32> {
  %z = fsdp.dispatch (%x) inplace [-1] {kind = "map"} : (tensor<8x99xf32>) -> tensor<8x99xbf16> {
  ^bb0(%a: tensor<8x99xf32>):
    %e = tensor.empty() : tensor<8x99xbf16>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<8x99xf32>) outs(%e : tensor<8x99xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %t = arith.truncf %in : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<8x99xbf16>
    fsdp.yield %v : tensor<8x99xbf16>
  }
  %y = fsdp.dispatch (%z, %w) inplace [-1] {kind = "contract"} : (tensor<8x99xbf16>, tensor<99x64xbf16>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x99xbf16>, %b: tensor<99x64xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                          affine_map<(m, n, k) -> (m, n)>]
        ins(%a, %b : tensor<8x99xbf16>, tensor<99x64xbf16>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
    fsdp.yield %c : tensor<8x64xf32>
  }
  return %y : tensor<8x64xf32>
}
// DOC-BEFORE-END
