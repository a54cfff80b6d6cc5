// RUN: fsdp-opt %s --fsdp-weigh-loss --split-input-file --verify-diagnostics

#in = affine_map<(i) -> (i)>
#out = affine_map<(i) -> ()>
func.func @mean_square(%x: tensor<4xf32> {fsdp.batch = "x"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  // expected-error@+2 {{grad-divide=tokens: expected the loss to be 'fsdp.cross_entropy' times a constant, found 'linalg.generic'}}
  // expected-note@+1 {{do one of the following: (1) use --grad-divide=average; (2) in the model, divide the sum of losses by the number of targets that are not ignored; (3) attach the loss with --attach-loss=cross_entropy --ignore-index=N}}
  %l = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A factor from the batch would be part of the mean.

#none = affine_map<() -> ()>
func.func @factor(%x: tensor<4x5xf32> {fsdp.batch = "x"}, %w: tensor<f32> {fsdp.batch = "w"},
                  %t: tensor<4xi64> {fsdp.batch = "targets"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %l, %lse = fsdp.cross_entropy %x, %t ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %e = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [#none, #none, #none], iterator_types = []} ins(%l, %w : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %p: f32, %o: f32):
    // expected-error@+2 {{found 'arith.mulf'}}
    // expected-note@+1 {{do one of the following: (1) use --grad-divide=average}}
    %0 = arith.mulf %a, %p : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#none = affine_map<() -> ()>
func.func @two(%x: tensor<4x5xf32> {fsdp.batch = "x"}, %s: tensor<4xi64> {fsdp.batch = "other"},
               %t: tensor<4xi64> {fsdp.batch = "targets"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  // expected-note@+1 {{the other op is here; use --grad-divide=average, or give both ops the same targets and the same 'ignore' value}}
  %l, %lse = fsdp.cross_entropy %x, %t ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  // expected-error@+1 {{found two 'fsdp.cross_entropy' ops with different targets or different 'ignore' values}}
  %m, %lse1 = fsdp.cross_entropy %x, %s ignore -100 : tensor<4x5xf32>, tensor<4xi64> -> tensor<f32>, tensor<4xf32>
  %e = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [#none, #none, #none], iterator_types = []} ins(%l, %m : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %p: f32, %o: f32):
    %0 = arith.addf %a, %p : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// The loss does not depend on the batch.

// expected-error@+2 {{grad-divide=tokens: expected the loss to be 'fsdp.cross_entropy' times a constant, found a loss without cross-entropy}}
// expected-note@+1 {{do one of the following: (1) use --grad-divide=average}}
func.func @constant(%w: tensor<f32> {fsdp.param = "w"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{expected the first result to be the loss, a float tensor of rank 0, found 'tensor<4xf32>'}}
func.func @vector(%x: tensor<4xf32> {fsdp.batch = "x"}) -> tensor<4xf32> attributes {fsdp.program = "step"} {
  return %x : tensor<4xf32>
}

// -----

// The ranks of the axis context add the results of an op of the model, which the error names.

fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>] context 2
#in = affine_map<(i) -> (i)>
#out = affine_map<(i) -> ()>
func.func @sum_over_ranks(%x: tensor<4xf32> {fsdp.batch = "x"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  // expected-error@+2 {{expected the loss to be 'fsdp.cross_entropy' times a constant, found 'linalg.generic'}}
  // expected-note@+1 {{do one of the following: (1) use --grad-divide=average}}
  %l = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %s = fsdp.all_reduce %l @mesh ["context"] sum : tensor<f32>
  return %s : tensor<f32>
}
