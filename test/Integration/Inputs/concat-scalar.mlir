// A parameter of rank 0, and two parameters that are joined and padded, so that their gradients are slices of one tensor.
func.func @loss(%k: tensor<4xf32> {fsdp.param = "k", fsdp.init = #fsdp.init<constant, 0.5, 0.0>},
                %j: tensor<3xf32> {fsdp.param = "j", fsdp.init = #fsdp.init<constant, -0.25, 0.0>},
                %a: tensor<f32> {fsdp.param = "a", fsdp.init = #fsdp.init<constant, 2.0, 0.0>}) -> tensor<f32> {
  %one = arith.constant 1.0 : f32
  %c = tensor.concat dim(0) %k, %j : (tensor<4xf32>, tensor<3xf32>) -> tensor<7xf32>
  %p = tensor.pad %c low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<7xf32> to tensor<10xf32>
  %s = arith.constant dense<0.0> : tensor<f32>
  %d = linalg.dot ins(%p, %p : tensor<10xf32>, tensor<10xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  %e = tensor.empty() : tensor<f32>
  %l = linalg.mul ins(%d, %a : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %l : tensor<f32>
}
