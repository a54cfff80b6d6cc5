// RUN: fsdp-opt %s --fsdp-mark-batch="batch=8=tokens,9=targets,10=segments,11=input.11" --fsdp-name-batch --fsdp-infer-init 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log

// LOG-DAG: remark: inferred initial values normal(0, 0.02) for 3 parameters: table, positions, weight
// LOG-DAG: remark: inferred initial values 1 for 1 parameters: gamma
// LOG-DAG: remark: inferred initial values 0 for 3 parameters: beta, gemma, unused
// LOG: warning: integer parameter 'shift' is not trained and has no initial values: it is 0 unless fsdp-run --init gives it
// LOG-NOT: 'spare'

// CHECK-LABEL: func.func @f(
// CHECK-SAME: {fsdp.init = #fsdp.init<normal, 0.000000e+00, 2.000000e-02>, fsdp.param = "table"}
// CHECK-SAME: {fsdp.init = #fsdp.init<normal, 0.000000e+00, 2.000000e-02>, fsdp.param = "positions"}
// CHECK-SAME: {fsdp.init = #fsdp.init<constant, 1.000000e+00, 0.000000e+00>, fsdp.param = "gamma"}
// CHECK-SAME: {fsdp.init = #fsdp.init<constant, 0.000000e+00, 0.000000e+00>, fsdp.param = "beta"}
// CHECK-SAME: {fsdp.init = #fsdp.init<constant, 0.000000e+00, 0.000000e+00>, fsdp.param = "gemma"}
// CHECK-SAME: {fsdp.init = #fsdp.init<normal, 0.000000e+00, 2.000000e-02>, fsdp.param = "weight"}
// CHECK-SAME: {fsdp.init = #fsdp.init<uniform, -1.000000e+00, 1.000000e+00>, fsdp.param = "given"}
// CHECK-SAME: tensor<4xi64> {fsdp.batch = "tokens"}, %{{.*}}: tensor<4xi64> {fsdp.batch = "targets"}, %{{.*}}: tensor<4xi64> {fsdp.batch = "segments"}, %{{.*}}: tensor<2xf32> {fsdp.batch = "input.11"}
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%table: tensor<9x6xf32> {fsdp.param = "table"}, %pos: tensor<8x6xf32> {fsdp.param = "positions"}, %gamma: tensor<6xf32> {fsdp.param = "gamma"}, %beta: tensor<6xf32> {fsdp.param = "beta"}, %gemma: tensor<6xf32> {fsdp.param = "gemma"}, %w: tensor<5x6xf32> {fsdp.param = "weight"}, %given: tensor<2xf32> {fsdp.param = "given", fsdp.init = #fsdp.init<uniform, -1.0, 1.0>}, %unused: tensor<3xf32> {fsdp.param = "unused"}, %ids: tensor<4xi64>, %tgt: tensor<4xi64>, %seg: tensor<4xi64> loc("segments"), %x: tensor<2xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %t = fsdp.gather_rows %table[%ids] : tensor<9x6xf32>, tensor<4xi64> -> tensor<4x6xf32>
  %p = tensor.extract_slice %pos[0, 0] [4, 6] [1, 1] : tensor<8x6xf32> to tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #col, #col, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %p, %gamma, %beta, %gemma : tensor<4x6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %g: f32, %h: f32, %k: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.mulf %0, %g : f32
    %2 = arith.addf %1, %h : f32
    %3 = arith.addf %k, %one : f32
    %4 = arith.mulf %2, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<4x6xf32>
  %eo = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%y, %w : tensor<4x6xf32>, tensor<5x6xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %c : tensor<4x5xf32>
}

// Integers are 0, with a warning if they are read.
func.func private @integers(%shift: tensor<4xi32> {fsdp.param = "shift", fsdp.frozen}, %spare: tensor<4xi8> {fsdp.param = "spare", fsdp.frozen}) -> tensor<4xi32> {
  return %shift : tensor<4xi32>
}

// A 1xH gate is a matrix of one output, although its product has no loop over outputs; a scale whose products are only yielded,
// and a scale over a loop that is not summed, start at 1.
// LOG: remark: inferred initial values normal(0, 0.02) for 1 parameters: gate
// LOG: remark: inferred initial values 1 for 2 parameters: layer_scale, per_column
func.func private @gates(%gate: tensor<1x4xf32> {fsdp.param = "gate"}, %scale: tensor<1x4xf32> {fsdp.param = "layer_scale"},
    %column: tensor<1x4xf32> {fsdp.param = "per_column"}, %x: tensor<3x4xf32>, %sum: tensor<3xf32>, %sums: tensor<4xf32>)
    -> (tensor<3xf32>, tensor<3x4xf32>, tensor<4xf32>) {
  %w = tensor.collapse_shape %gate [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
  %g = linalg.generic {indexing_maps = [#id, #col, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<3x4xf32>, tensor<4xf32>) outs(%sum : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  %v = tensor.collapse_shape %scale [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<3x4xf32>, tensor<4xf32>) outs(%x : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<3x4xf32>
  %u = tensor.collapse_shape %column [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
  %c = linalg.generic {indexing_maps = [#id, #col, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x, %u : tensor<3x4xf32>, tensor<4xf32>) outs(%sums : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %g, %s, %c : tensor<3xf32>, tensor<3x4xf32>, tensor<4xf32>
}
