// RUN: fsdp-opt %s --fsdp-read-stop-markers --split-input-file --verify-diagnostics

// A transformation dropped a marker, because the exporter had counted two markers.
// expected-error @below {{expected 2 stop-gradient markers, as 'fsdp.num_stop_gradients' says, found 1}}
// expected-note @below {{a transformation between the exporter and this compiler has dropped or copied markers; export without it}}
module attributes {fsdp.num_stop_gradients = 2 : i64} {
  func.func private @fsdp.stop_gradient(tensor<4xf32>) -> tensor<4xf32>
  func.func @loss(%w: tensor<4xf32>) -> tensor<4xf32> {
    %a = call @fsdp.stop_gradient(%w) : (tensor<4xf32>) -> tensor<4xf32>
    return %a : tensor<4xf32>
  }
}

// -----

// expected-error @below {{expected 'fsdp.num_stop_gradients' to be an integer of at least 0, found "two"}}
module attributes {fsdp.num_stop_gradients = "two"} {
}

// -----

// The number on a function counts only the markers of that function.
func.func private @fsdp.stop_gradient(tensor<4xf32>) -> tensor<4xf32>
func.func @other(%w: tensor<4xf32>) -> tensor<4xf32> {
  %a = call @fsdp.stop_gradient(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
// expected-error @below {{expected 1 stop-gradient marker, as 'fsdp.num_stop_gradients' says, found 0}}
// expected-note @below {{has dropped or copied markers}}
func.func @loss(%w: tensor<4xf32>) -> tensor<4xf32> attributes {fsdp.num_stop_gradients = 1 : i64} {
  return %w : tensor<4xf32>
}

// -----

// expected-error @below {{stop-gradient marker '@fsdp.stop_gradient' must be a declaration, found a body}}
// expected-note @below {{declare it as 'func.func private @fsdp.stop_gradient(tensor<..>) -> tensor<..>'}}
func.func private @fsdp.stop_gradient(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// A fusion merged the identity with its producer.
func.func @loss(%w: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{expected 'fsdp.stop_gradient' on a 'linalg.generic' that yields its one input, found it on a 'linalg.generic' that yields something else}}
  // expected-note @below {{a transformation has moved or merged the marker}}
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%w : tensor<4xf32>) outs(%e : tensor<4xf32>) attrs = {fsdp.stop_gradient} {
  ^bb0(%i: f32, %o: f32):
    %s = arith.mulf %i, %i : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

func.func @loss(%w: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected 'fsdp.stop_gradient' on a 'linalg.generic' that yields its one input, found it on 'arith.negf'}}
  // expected-note @below {{export a call of '@fsdp.stop_gradient', which transformations keep}}
  %d = arith.negf %w {fsdp.stop_gradient} : tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

func.func private @fsdp.stop_gradient(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @loss(%w: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{a stop-gradient marker takes one ranked tensor and returns a tensor of its type, found 'tensor<4xf32>', 'tensor<4xf32>' -> 'tensor<4xf32>'}}
  %a = call @fsdp.stop_gradient(%w, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
