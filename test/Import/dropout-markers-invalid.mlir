// RUN: fsdp-opt %s --fsdp-read-dropout-markers --split-input-file --verify-diagnostics

// expected-error @+2 {{expected 'fsdp.dropout' of '@fsdp.dropout.0' to be a probability in [0, 1), found 1.000000e+00 : f64}}
// expected-note @+1 {{declare it as 'func.func private @fsdp.dropout.0(tensor<..>) -> tensor<..> attributes {fsdp.dropout = 0.1 : f64}'}}
func.func private @fsdp.dropout.0(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 1.0 : f64}
// expected-error @+2 {{expected 'fsdp.dropout' of '@fsdp.dropout.1' to be a probability in [0, 1), found nan}}
// expected-note @+1 {{declare it as 'func.func private @fsdp.dropout.1(tensor<..>) -> tensor<..> attributes {fsdp.dropout = 0.1 : f64}'}}
func.func private @fsdp.dropout.1(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 0x7FF8000000000000 : f64}
// expected-error @+2 {{to be a probability in [0, 1), found "often"}}
// expected-note @+1 {{declare it}}
func.func private @fsdp.dropout.2(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = "often"}
// expected-error @+2 {{dropout marker '@fsdp.dropout_3' has no attribute 'fsdp.dropout' (a probability)}}
// expected-note @+1 {{declare it}}
func.func private @fsdp.dropout_3(tensor<2x4xf32>) -> tensor<2x4xf32>
// expected-error @+2 {{dropout marker '@held' must be a declaration, found a body}}
// expected-note @+1 {{declare it as 'func.func private @held(tensor<..>)}}
func.func private @held(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 0.1 : f64} {
  return %x : tensor<2x4xf32>
}

// -----

func.func private @fsdp.dropout.0(tensor<2x4xi32>) -> tensor<2x4xi32> attributes {fsdp.dropout = 0.1 : f64}
func.func private @fsdp.dropout.1(tensor<2x4xf32>) -> tensor<2x5xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func private @fsdp.dropout.2(tensor<3x4xf32>) -> tensor<3x4xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func private @fsdp.dropout.3(tensor<f32>) -> tensor<f32> attributes {fsdp.dropout = 0.1 : f64}
func.func @loss(%x: tensor<2x4xf32> {fsdp.batch = "x"}, %i: tensor<2x4xi32> {fsdp.batch = "i"}, %y: tensor<3x4xf32> {fsdp.param = "y"}, %s: tensor<f32>) {
  // expected-error @+1 {{a dropout marker takes a static tensor of f16, bf16, f32 or f64, found 'tensor<2x4xi32>'}}
  %0 = call @fsdp.dropout.0(%i) : (tensor<2x4xi32>) -> tensor<2x4xi32>
  // expected-error @+1 {{a dropout marker takes one ranked tensor and returns a tensor of its type, found 'tensor<2x4xf32>' -> 'tensor<2x5xf32>'}}
  %1 = call @fsdp.dropout.1(%x) : (tensor<2x4xf32>) -> tensor<2x5xf32>
  // expected-error @+2 {{dropout expected a tensor whose first dimension is 2, the number of samples, or a multiple of it, found 'tensor<3x4xf32>'}}
  // expected-note @+1 {{the random numbers of a sample depend on its index in the batch; apply dropout to a tensor of all samples whose dimension 0 is the batch}}
  %2 = call @fsdp.dropout.2(%y) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-error @+2 {{dropout expected a tensor whose first dimension is 2}}
  // expected-note @+1 {{apply dropout}}
  %3 = call @fsdp.dropout.3(%s) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// The error names where the samples of a batch input lie.
func.func private @fsdp.dropout.0(tensor<4x2x3xf32>) -> tensor<4x2x3xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func private @fsdp.dropout.1(tensor<8x3xf32>) -> tensor<8x3xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func private @fsdp.dropout.2(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func @loss(%x: tensor<2x4x3xf32> {fsdp.batch = "x"}, %w: tensor<4x4xf32> {fsdp.param = "w"}) {
  %e = tensor.empty() : tensor<4x2x3xf32>
  %t = linalg.transpose ins(%x : tensor<2x4x3xf32>) outs(%e : tensor<4x2x3xf32>) permutation = [1, 0, 2]
  // expected-error @+2 {{dropout expected the 2 samples of the batch in dimension 0 of 'tensor<4x2x3xf32>', found them in dimension 1}}
  // expected-note @+1 {{the random numbers would depend on the number of ranks: transpose the tensor before dropout, so that its first dimension is the batch}}
  %0 = call @fsdp.dropout.0(%t) : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %flat = tensor.collapse_shape %t [[0, 1], [2]] : tensor<4x2x3xf32> into tensor<8x3xf32>
  // expected-error @+2 {{dropout expected the 2 samples of the batch in dimension 0 of 'tensor<8x3xf32>', found them as the inner part of dimension 0, after another dimension of size 4}}
  // expected-note @+1 {{transpose the tensor}}
  %1 = call @fsdp.dropout.1(%flat) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  // expected-error @+2 {{dropout expected the 2 samples of the batch in dimension 0 of 'tensor<4x4xf32>', found a tensor without them}}
  // expected-note @+1 {{this tensor is equal on all ranks, but each rank would drop different elements of it: apply dropout after adding it to a tensor of the samples}}
  %2 = call @fsdp.dropout.2(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

// Samples that cannot be followed: elements of one tensor taken in the order of another.
func.func private @fsdp.dropout.0(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func @loss(%x: tensor<2x4xf32> {fsdp.batch = "x"}, %order: tensor<2xi64> {fsdp.batch = "order"}) {
  %e = tensor.empty() : tensor<2x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%order : tensor<2xi64>) outs(%e : tensor<2x4xf32>) {
  ^bb0(%n: i64, %o: f32):
    %i = arith.index_cast %n : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<2x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x4xf32>
  // expected-warning @+1 {{cannot tell in which dimension of 'tensor<2x4xf32>' the samples lie; dropout takes them to be in dimension 0, so that its random numbers may depend on the number of ranks}}
  %1 = call @fsdp.dropout.0(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func private @fsdp.dropout.0(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 0.1 : f64}
// expected-error @+4 {{dropout needs the number of samples, the first dimension of the batch inputs: found inputs whose first dimensions differ}}
// expected-note @+3 {{argument 0 is 'tensor<2x4xf32>'}}
// expected-note @+2 {{argument 1 is 'tensor<4xf32>'}}
// expected-note @+1 {{the first dimension of an input named 'tokens' would be used: name one with --batch=INDEX=tokens}}
func.func @loss(%x: tensor<2x4xf32> {fsdp.batch = "x"}, %y: tensor<4xf32> {fsdp.batch = "y"}) -> tensor<2x4xf32> {
  %0 = call @fsdp.dropout.0(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func private @fsdp.dropout.0(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 0.1 : f64}
// expected-error @+1 {{dropout needs the number of samples, the first dimension of the batch inputs: found no input}}
func.func @loss(%x: tensor<2x4xf32> {fsdp.param = "x"}) -> tensor<2x4xf32> {
  %0 = call @fsdp.dropout.0(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func private @fsdp.dropout.0(tensor<2x4xf32>) -> tensor<2x4xf32> attributes {fsdp.dropout = 0.1 : f64}
func.func private @helper(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{a dropout marker must be called by '@loss' itself, found it in '@helper'}}
  %0 = call @fsdp.dropout.0(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func @loss(%x: tensor<2x4xf32> {fsdp.batch = "x"}) -> tensor<2x4xf32> {
  return %x : tensor<2x4xf32>
}

// -----

func.func private @fsdp.dropout.0(tensor<0x4xf32>) -> tensor<0x4xf32> attributes {fsdp.dropout = 0.1 : f64}
// expected-error @+2 {{dropout needs the number of samples, the first dimension of the batch inputs: expected at least 1 sample, found 0 in 'tensor<0x4xf32>'}}
// expected-note @+1 {{argument 0 is 'tensor<0x4xf32>'}}
func.func @loss(%x: tensor<0x4xf32> {fsdp.batch = "x"}) -> tensor<0x4xf32> {
  %0 = call @fsdp.dropout.0(%x) : (tensor<0x4xf32>) -> tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}
