// RUN: fsdp-opt %s --fsdp-verify-differentiated -verify-diagnostics -split-input-file

// DOC-BEFORE-BEGIN fsdp-verify-differentiated
fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard true [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
// expected-error@+1 {{expected result 1 to be the gradient of @u, made by 'fsdp.reduce_scatter @u avg'}}
func.func @reference(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> tensor<f32> attributes {fsdp.program = "reference", fsdp.mesh = @solo} {
  return %l : tensor<f32>
}
// DOC-BEFORE-END

// -----

fsdp.mesh @solo [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard true [#fsdp.param<"w", tensor<4xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
// expected-error@+1 {{expected result 1 to be the gradient of @u, made by 'fsdp.reduce_scatter @u avg'}}
func.func @reference(%s: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>, %g: tensor<4xf32>) -> (tensor<f32>, tensor<64xf32> {fsdp.unit = @u}) attributes {fsdp.program = "reference", fsdp.mesh = @solo} {
  %r = fsdp.reduce_scatter @u sum params [0] (%g) : (tensor<4xf32>) -> tensor<64xf32>
  return %l, %r : tensor<f32>, tensor<64xf32>
}

// -----

// expected-error@+1 {{expected the first result to be the loss, a float tensor of rank 0, found 'tensor<4xf32>'}}
func.func @plain(%x: tensor<4xf32> {fsdp.param = "x"}) -> (tensor<4xf32>, tensor<4xf32> {fsdp.gradient = 0 : i64}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @zero_added(%x: tensor<4xf32> {fsdp.param = "x"}, %l: tensor<f32>) -> (tensor<f32>, tensor<4xf32> {fsdp.gradient = 0 : i64}) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  // expected-note@+1 {{it is filled here}}
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{adds a tensor of zeros; expected the other operand alone}}
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %f : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %l, %y : tensor<f32>, tensor<4xf32>
}
