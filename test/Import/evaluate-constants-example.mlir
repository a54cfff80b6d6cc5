// The indices of three lookups, which depend on no input, become a constant with a known range.
// RUN: fsdp-opt %s --fsdp-evaluate-constants --canonicalize | FileCheck %s

// CHECK: arith.constant dense<[0, 2, 3]> : tensor<3xi64>
// CHECK-NOT: math.log

// DOC-BEFORE-BEGIN fsdp-evaluate-constants
func.func @f(%bias: tensor<4xf32>) -> tensor<3xf32> {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<3xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %d = arith.addi %i, %c1 : index
    %n = arith.index_cast %d : index to i64
    %x = arith.sitofp %n : i64 to f32
    %l = math.log %x : f32
    %m = arith.mulf %l, %c3 : f32
    %b = arith.fptosi %m : f32 to i64
    %at = arith.index_cast %b : i64 to index
    %v = tensor.extract %bias[%at] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
// DOC-BEFORE-END
