// The parameter and the product become bf16; the sums inside the product remain f32.
// RUN: fsdp-opt %s '--fsdp-apply-precision=param-dtype=bf16' --canonicalize --cse | FileCheck %s

// CHECK: tensor<8xbf16> {fsdp.init = {{.*}}, fsdp.master_dtype = f32, fsdp.param = "w"}
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.addf %{{.*}} : f32

// DOC-BEFORE-BEGIN fsdp-apply-precision
func.func @loss(%w: tensor<8xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
                %x: tensor<8xf32> {fsdp.batch = "x"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%w, %x : tensor<8xf32>, tensor<8xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
// DOC-BEFORE-END
