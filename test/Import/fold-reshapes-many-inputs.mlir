// A map of eight inputs that all have one transpose. (Regression test: so many maps were read after they were freed.)
// RUN: env MALLOC_PERTURB_=165 fsdp-opt %s --fsdp-fold-reshapes=phase=heads | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
// CHECK-LABEL: func.func @f(
// CHECK-COUNT-7: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @f(%a0: tensor<3x5xf32>, %a1: tensor<3x5xf32>, %a2: tensor<3x5xf32>, %a3: tensor<3x5xf32>, %a4: tensor<3x5xf32>, %a5: tensor<3x5xf32>, %a6: tensor<3x5xf32>, %a7: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<5x3xf32>
  %o = tensor.empty() : tensor<3x5xf32>
  %m = linalg.generic {indexing_maps = [#swap, #swap, #swap, #swap, #swap, #swap, #swap, #swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<5x3xf32>) {
  ^bb0(%x0: f32, %x1: f32, %x2: f32, %x3: f32, %x4: f32, %x5: f32, %x6: f32, %x7: f32, %out: f32):
    %s1 = arith.addf %x0, %x1 : f32
    %s2 = arith.addf %s1, %x2 : f32
    %s3 = arith.addf %s2, %x3 : f32
    %s4 = arith.addf %s3, %x4 : f32
    %s5 = arith.addf %s4, %x5 : f32
    %s6 = arith.addf %s5, %x6 : f32
    %s7 = arith.addf %s6, %x7 : f32
    linalg.yield %s7 : f32
  } -> tensor<5x3xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<5x3xf32>) outs(%o : tensor<3x5xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<3x5xf32>
  return %t : tensor<3x5xf32>
}
