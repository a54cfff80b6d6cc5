// Losses in the forms of exporters and hand-written models; each becomes one op.
// RUN: fsdp-opt %s --convert-elementwise-to-linalg --fsdp-normalise-ops --fsdp-fold-copies --canonicalize --cse \
// RUN:   --fsdp-raise-cross-entropy --canonicalize --cse | FileCheck %s
// Fused bodies are matched as well.
// RUN: fsdp-opt %s --convert-elementwise-to-linalg --fsdp-normalise-ops --fsdp-fold-copies --canonicalize --cse \
// RUN:   --fsdp-fuse-elementwise --canonicalize --fsdp-raise-cross-entropy --canonicalize --cse | FileCheck %s

#id = affine_map<(n, v) -> (n, v)>
#row = affine_map<(n, v) -> (n)>
#one = affine_map<(n) -> (n)>
#none = affine_map<(n) -> ()>

// logsumexp - x[t], as optax.softmax_cross_entropy_with_integer_labels: both shifted.
// CHECK-LABEL: func.func @difference(
// CHECK-SAME: %[[X:.*]]: tensor<6x5xf32>, %[[T:.*]]: tensor<6xi64>
// CHECK: %[[L:.*]], %{{.*}} = fsdp.cross_entropy %[[X]], %[[T]] : tensor<6x5xf32>
// CHECK-NEXT: return %[[L]]
func.func @difference(%x: tensor<6x5xf32>, %t: tensor<6xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %er = tensor.empty() : tensor<6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<6x5xf32>) outs(%lo : tensor<6xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%e : tensor<6x5xf32>) dimensions = [1]
  %s = arith.subf %x, %mb : tensor<6x5xf32>
  %ex = math.exp %s : tensor<6x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%ex : tensor<6x5xf32>) outs(%z : tensor<6xf32>) dimensions = [1]
  %l = math.log %sum : tensor<6xf32>
  %p = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%t : tensor<6xi64>) outs(%er : tensor<6xf32>) {
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

// -sum(one_hot * log_softmax), a sum, not a mean: becomes the mean times the number of rows.
// A one-hot accepts any number; the loss needs a limit.
// CHECK-LABEL: func.func @one_hot(
// CHECK-SAME: tensor<{{.*}}xi64> {fsdp.limit = {{[0-9]+}} : i64}
// CHECK: %[[L:.*]], %{{.*}} = fsdp.cross_entropy
// CHECK: linalg.generic {{.*}} ins(%[[L]] : tensor<f32>)
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: return
func.func @one_hot(%x: tensor<6x5xf32>, %t: tensor<6xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %er = tensor.empty() : tensor<6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<6x5xf32>) outs(%lo : tensor<6xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%e : tensor<6x5xf32>) dimensions = [1]
  %s = arith.subf %x, %mb : tensor<6x5xf32>
  %ex = math.exp %s : tensor<6x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%ex : tensor<6x5xf32>) outs(%z : tensor<6xf32>) dimensions = [1]
  %l = math.log %sum : tensor<6xf32>
  %lb = linalg.broadcast ins(%l : tensor<6xf32>) outs(%e : tensor<6x5xf32>) dimensions = [1]
  %logp = arith.subf %s, %lb : tensor<6x5xf32>
  %hot = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<6xi64>) outs(%e : tensor<6x5xf32>) {
  ^bb0(%k: i64, %o: f32):
    %v = linalg.index 1 : index
    %vi = arith.index_cast %v : index to i64
    %c = arith.cmpi eq, %k, %vi : i64
    %f = arith.uitofp %c : i1 to f32
    linalg.yield %f : f32
  } -> tensor<6x5xf32>
  %w = arith.mulf %hot, %logp : tensor<6x5xf32>
  %rows = linalg.reduce { arith.addf } ins(%w : tensor<6x5xf32>) outs(%z : tensor<6xf32>) dimensions = [1]
  %nll = arith.negf %rows : tensor<6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %total = linalg.reduce { arith.addf } ins(%nll : tensor<6xf32>) outs(%z0 : tensor<f32>) dimensions = [0]
  return %total : tensor<f32>
}

// torch's decomposition: safe_target = where(t != ignore, t, 0), gather, where, sum / count.
// CHECK-LABEL: func.func @safe_target(
// CHECK: %[[L:.*]], %{{.*}} = fsdp.cross_entropy %{{.*}}, %{{.*}} ignore -100 :
// CHECK-NEXT: return %[[L]]
func.func @safe_target(%x: tensor<6x5xf32>, %t: tensor<6xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %ign = arith.constant -100 : i64
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<6x5xf32>
  %er = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi64>
  %e0 = tensor.empty() : tensor<f32>
  %lo = linalg.fill ins(%inf : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<6x5xf32>) outs(%lo : tensor<6xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%e : tensor<6x5xf32>) dimensions = [1]
  %s = arith.subf %x, %mb : tensor<6x5xf32>
  %ex = math.exp %s : tensor<6x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%ex : tensor<6x5xf32>) outs(%z : tensor<6xf32>) dimensions = [1]
  %l = math.log %sum : tensor<6xf32>
  %lb = linalg.broadcast ins(%l : tensor<6xf32>) outs(%e : tensor<6x5xf32>) dimensions = [1]
  %logp = arith.subf %s, %lb : tensor<6x5xf32>
  %safe = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%t : tensor<6xi64>) outs(%ei : tensor<6xi64>) {
  ^bb0(%k: i64, %o: i64):
    %c = arith.cmpi ne, %k, %ign : i64
    %v = arith.select %c, %k, %c0 : i64
    linalg.yield %v : i64
  } -> tensor<6xi64>
  %p = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%safe : tensor<6xi64>) outs(%er : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %k : i64 to index
    %v = tensor.extract %logp[%i, %j] : tensor<6x5xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %n = arith.negf %p : tensor<6xf32>
  %nll = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%t, %n : tensor<6xi64>, tensor<6xf32>) outs(%er : tensor<6xf32>) {
  ^bb0(%k: i64, %a: f32, %o: f32):
    %c = arith.cmpi ne, %k, %ign : i64
    %v = arith.select %c, %a, %zero : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %total = linalg.reduce { arith.addf } ins(%nll : tensor<6xf32>) outs(%z0 : tensor<f32>) dimensions = [0]
  %count = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%t : tensor<6xi64>) outs(%z0 : tensor<f32>) {
  ^bb0(%k: i64, %o: f32):
    %c = arith.cmpi ne, %k, %ign : i64
    %f = arith.uitofp %c : i1 to f32
    %a = arith.addf %o, %f : f32
    linalg.yield %a : f32
  } -> tensor<f32>
  %loss = arith.divf %total, %count : tensor<f32>
  return %loss : tensor<f32>
}

// Not a log-softmax, because the sum is over another tensor.
// CHECK-LABEL: func.func @other_sum(
// CHECK-NOT: cross_entropy
func.func @other_sum(%x: tensor<6x5xf32>, %y: tensor<6x5xf32>, %t: tensor<6xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %er = tensor.empty() : tensor<6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<6xf32>) -> tensor<6xf32>
  %ex = math.exp %y : tensor<6x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%ex : tensor<6x5xf32>) outs(%z : tensor<6xf32>) dimensions = [1]
  %l = math.log %sum : tensor<6xf32>
  %p = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%t : tensor<6xi64>) outs(%er : tensor<6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%i, %j] : tensor<6x5xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %nll = arith.subf %l, %p : tensor<6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %total = linalg.reduce { arith.addf } ins(%nll : tensor<6xf32>) outs(%z0 : tensor<f32>) dimensions = [0]
  return %total : tensor<f32>
}
