// A sink is one score beside those of the keys, which is dropped after the softmax. It becomes one more key, with zeros in K and V.
// RUN: fsdp-opt %s --fsdp-raise-attention --canonicalize --cse 2>%t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOG < %t.log

#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#scores = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#rows = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#keys = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#head = affine_map<(b, h, i, j) -> (h)>
#key = affine_map<(b, h, i, j) -> (j)>

// The sink of a head is captured, and has a gradient.
// CHECK-LABEL: @per_head(
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<2x4x1x8xf32>
// CHECK-DAG: %[[K:.*]] = tensor.concat dim(2) %arg1, %[[ZEROS]] : (tensor<2x4x6x8xf32>, tensor<2x4x1x8xf32>) -> tensor<2x4x7x8xf32>
// CHECK-DAG: %[[V:.*]] = tensor.concat dim(2) %arg2, %[[ZEROS]]
// CHECK: fsdp.attention %arg0, %[[K]], %[[V]] scale 1.000000e+00 capture(%arg3 : tensor<4xf32>)
// CHECK-SAME: score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %[[SINKS:.*]]: tensor<4xf32>) {
// CHECK-NEXT: %c6 = arith.constant 6 : index
// CHECK-NEXT: %[[SINK:.*]] = tensor.extract %[[SINKS]][%h]
// CHECK-NEXT: %[[LAST:.*]] = arith.cmpi eq, %j, %c6 : index
// CHECK-NEXT: %[[Y:.*]] = arith.select %[[LAST]], %[[SINK]], %s : f32
// CHECK-NEXT: fsdp.yield %[[Y]] : f32
// CHECK-NOT: mask_mod
// CHECK-NOT: linalg.softmax
func.func @per_head(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %sink: tensor<4xf32> {fsdp.param = "sink"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#rows, #keys, #scores] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %ce = tensor.empty() : tensor<2x4x6x1xf32>
  %column = linalg.generic {indexing_maps = [#head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sink : tensor<4xf32>) outs(%ce : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x6x1xf32>
  %joined = tensor.concat dim(3) %s, %column : (tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) -> tensor<2x4x6x7xf32>
  %je = tensor.empty() : tensor<2x4x6x7xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x4x6x7xf32>) outs(%je : tensor<2x4x6x7xf32>) -> tensor<2x4x6x7xf32>
  %w = tensor.extract_slice %p[0, 0, 0, 0] [2, 4, 6, 6] [1, 1, 1, 1] : tensor<2x4x6x7xf32> to tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#scores, #keys, #rows] ins(%w, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// A sink that comes before the scores.
// CHECK-LABEL: @first(
// CHECK: fsdp.attention {{.*}} tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32> -> tensor<2x4x6x8xf32>
// CHECK: arith.cmpi eq, %j, %c6 : index
// CHECK-NOT: linalg.softmax
func.func @first(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %sink: tensor<4xf32> {fsdp.param = "sink"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#rows, #keys, #scores] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %ce = tensor.empty() : tensor<2x4x6x1xf32>
  %column = linalg.generic {indexing_maps = [#head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sink : tensor<4xf32>) outs(%ce : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x6x1xf32>
  %joined = tensor.concat dim(3) %column, %s : (tensor<2x4x6x1xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x7xf32>
  %je = tensor.empty() : tensor<2x4x6x7xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x4x6x7xf32>) outs(%je : tensor<2x4x6x7xf32>) -> tensor<2x4x6x7xf32>
  %w = tensor.extract_slice %p[0, 0, 0, 1] [2, 4, 6, 6] [1, 1, 1, 1] : tensor<2x4x6x7xf32> to tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#scores, #keys, #rows] ins(%w, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// Row 0 has no key below the diagonal, but every row has the sink, so a mask with a finite number
// provably leaves a key. A tensor with an element per key is read at the key before the sink.
// CHECK-LABEL: @masked(
// CHECK: fsdp.attention
// CHECK-SAME: score_mod(
// CHECK: %[[J:.*]] = arith.minui %j, %c5 : index
// CHECK: tensor.extract %{{.*}}[%[[J]]] : tensor<6xf32>
// CHECK: arith.cmpi eq, %j, %c6 : index
// CHECK: mask_mod(
// CHECK-DAG: %[[KEEP:.*]] = arith.cmpi slt, %j, %i : index
// CHECK-DAG: %[[LAST:.*]] = arith.cmpi eq, %j, %c6 : index
// CHECK: %[[BOTH:.*]] = arith.ori %[[LAST]], %[[KEEP]] : i1
// CHECK-NEXT: fsdp.yield %[[BOTH]] : i1
// CHECK-NOT: linalg.softmax
func.func @masked(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %sink: tensor<4xf32> {fsdp.param = "sink"}, %bias: tensor<6xf32> {fsdp.param = "bias"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#rows, #keys, #scores] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %me = tensor.empty() : tensor<2x4x6x6xf32>
  %masked = linalg.generic {indexing_maps = [#id, #key, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %bias : tensor<2x4x6x6xf32>, tensor<6xf32>) outs(%me : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %low = arith.constant -1.0e9 : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %before = arith.cmpi slt, %j, %i : index
    %biased = arith.addf %a, %b : f32
    %y = arith.select %before, %biased, %low : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %ce = tensor.empty() : tensor<2x4x6x1xf32>
  %column = linalg.generic {indexing_maps = [#head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sink : tensor<4xf32>) outs(%ce : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x6x1xf32>
  %joined = tensor.concat dim(3) %masked, %column : (tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) -> tensor<2x4x6x7xf32>
  %je = tensor.empty() : tensor<2x4x6x7xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x4x6x7xf32>) outs(%je : tensor<2x4x6x7xf32>) -> tensor<2x4x6x7xf32>
  %w = tensor.extract_slice %p[0, 0, 0, 0] [2, 4, 6, 6] [1, 1, 1, 1] : tensor<2x4x6x7xf32> to tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#scores, #keys, #rows] ins(%w, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// LOG: remark: softmax between two products not raised to attention: its input joins the scores with other columns, which is supported for one column that the product with V does not read (a sink)
// LOG: note: prevented by this 'tensor.concat'
// CHECK-LABEL: @two_sinks(
// CHECK: linalg.softmax
func.func @two_sinks(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %sink: tensor<4xf32> {fsdp.param = "sink"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#rows, #keys, #scores] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %ce = tensor.empty() : tensor<2x4x6x2xf32>
  %column = linalg.generic {indexing_maps = [#head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sink : tensor<4xf32>) outs(%ce : tensor<2x4x6x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x6x2xf32>
  %joined = tensor.concat dim(3) %s, %column : (tensor<2x4x6x6xf32>, tensor<2x4x6x2xf32>) -> tensor<2x4x6x8xf32>
  %je = tensor.empty() : tensor<2x4x6x8xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x4x6x8xf32>) outs(%je : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %w = tensor.extract_slice %p[0, 0, 0, 0] [2, 4, 6, 6] [1, 1, 1, 1] : tensor<2x4x6x8xf32> to tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#scores, #keys, #rows] ins(%w, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// LOG: remark: softmax between two products not raised to attention: the weights are changed between softmax and product
// CHECK-LABEL: @changed(
// CHECK: linalg.softmax
func.func @changed(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %sink: tensor<4xf32> {fsdp.param = "sink"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#rows, #keys, #scores] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %ce = tensor.empty() : tensor<2x4x6x1xf32>
  %column = linalg.generic {indexing_maps = [#head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sink : tensor<4xf32>) outs(%ce : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x6x1xf32>
  %joined = tensor.concat dim(3) %s, %column : (tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) -> tensor<2x4x6x7xf32>
  %je = tensor.empty() : tensor<2x4x6x7xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x4x6x7xf32>) outs(%je : tensor<2x4x6x7xf32>) -> tensor<2x4x6x7xf32>
  %changed = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<2x4x6x7xf32>) outs(%je : tensor<2x4x6x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.mulf %a, %a : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x7xf32>
  %w = tensor.extract_slice %changed[0, 0, 0, 0] [2, 4, 6, 6] [1, 1, 1, 1] : tensor<2x4x6x7xf32> to tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#scores, #keys, #rows] ins(%w, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// LOG: remark: softmax between two products not raised to attention: beside a sink, this function of the scores may have no derivative at 0
// CHECK-LABEL: @square_root(
// CHECK: linalg.softmax
func.func @square_root(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %sink: tensor<4xf32> {fsdp.param = "sink"}) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %s = linalg.contract indexing_maps = [#rows, #keys, #scores] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %me = tensor.empty() : tensor<2x4x6x6xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x4x6x6xf32>) outs(%me : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = math.sqrt %a : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %ce = tensor.empty() : tensor<2x4x6x1xf32>
  %column = linalg.generic {indexing_maps = [#head, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sink : tensor<4xf32>) outs(%ce : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x6x1xf32>
  %joined = tensor.concat dim(3) %masked, %column : (tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) -> tensor<2x4x6x7xf32>
  %je = tensor.empty() : tensor<2x4x6x7xf32>
  %p = linalg.softmax dimension(3) ins(%joined : tensor<2x4x6x7xf32>) outs(%je : tensor<2x4x6x7xf32>) -> tensor<2x4x6x7xf32>
  %w = tensor.extract_slice %p[0, 0, 0, 0] [2, 4, 6, 6] [1, 1, 1, 1] : tensor<2x4x6x7xf32> to tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#scores, #keys, #rows] ins(%w, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}
