// The mean of log-sum-exp minus the target's logit becomes one fsdp.cross_entropy.
// RUN: fsdp-opt %s --convert-elementwise-to-linalg --fsdp-normalise-ops --fsdp-fold-copies --canonicalize --cse --fsdp-raise-cross-entropy --canonicalize --cse | FileCheck %s

// CHECK: fsdp.cross_entropy %{{.*}}, %{{.*}} : tensor<6x5xf32>, tensor<6xi64>
// CHECK-NEXT: return

// DOC-BEFORE-BEGIN fsdp-raise-cross-entropy
func.func @loss(%x: tensor<6x5xf32>, %t: tensor<6xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %er = tensor.empty() : tensor<6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %low = linalg.fill ins(%inf : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<6x5xf32>) outs(%low : tensor<6xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%e : tensor<6x5xf32>) dimensions = [1]
  %s = arith.subf %x, %mb : tensor<6x5xf32>
  %ex = math.exp %s : tensor<6x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%ex : tensor<6x5xf32>) outs(%z : tensor<6xf32>) dimensions = [1]
  %l = math.log %sum : tensor<6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
      ins(%t : tensor<6xi64>) outs(%er : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %k : i64 to index
    %v = tensor.extract %s[%i, %j] : tensor<6x5xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %nll = arith.subf %l, %p : tensor<6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %total = linalg.reduce { arith.addf } ins(%nll : tensor<6xf32>) outs(%z0 : tensor<f32>) dimensions = [0]
  %n = arith.constant dense<6.0> : tensor<f32>
  %loss = arith.divf %total, %n : tensor<f32>
  return %loss : tensor<f32>
}
// DOC-BEFORE-END
