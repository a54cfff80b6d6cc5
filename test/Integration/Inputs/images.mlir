// A classifier of images with arguments (weights, images, labels) as an exporter writes them, without attributes.
func.func @loss(%w: tensor<4x3xf32>, %images: tensor<2x4xf32>, %labels: tensor<2xi64>) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %p = linalg.matmul ins(%images, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  %ve = tensor.empty() : tensor<2xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%labels : tensor<2xi64>) outs(%ve : tensor<2xf32>) {
  ^bb0(%t: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %t : i64 to index
    %x = tensor.extract %p[%i, %j] : tensor<2x3xf32>
    %one = arith.constant 1.0 : f32
    %d = arith.subf %x, %one : f32
    %q = arith.mulf %d, %d : f32
    linalg.yield %q : f32
  } -> tensor<2xf32>
  %se = tensor.empty() : tensor<f32>
  %s0 = linalg.fill ins(%z : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
    ins(%v : tensor<2xf32>) outs(%s0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %half = arith.constant 0.5 : f32
    %h = arith.mulf %a, %half : f32
    %r = arith.addf %o, %h : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
