// RUN: fsdp-opt %s --fsdp-form-units -verify-diagnostics -split-input-file

// expected-error@+1 {{expected one public function (the loss), found none; run the Import stage first}}
module {
  func.func private @main() { return }
}

// -----

// expected-note@+1 {{'@forward' is here}}
func.func @forward() { return }
// expected-error@+1 {{expected one public function (the loss), found '@forward' and '@predict'}}
func.func @predict() { return }

// -----

// expected-error@+1 {{expected one public function (the loss), found none; run the Import stage first}}
module {
  func.func private @loss(tensor<4xf32> {fsdp.param = "w"}) -> tensor<f32>
}

// -----

// expected-error@+1 {{expected @loss to have a body of one block, found 2 blocks}}
func.func @loss() {
  cf.br ^bb1
^bb1:
  return
}

// -----

// expected-error@+1 {{expected at least one argument with 'fsdp.param': there is nothing to train}}
func.func @loss(%x: tensor<f32> {fsdp.batch = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{parameter 'w': expected a tensor of static shape and of floats, or of integers of 1, 8, 16, 32 or 64 bits, found 'tensor<?xf32>'}}
func.func @loss(%w: tensor<?xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}

// -----

// expected-error@+1 {{parameter 'q': expected a tensor of static shape and of floats, or of integers of 1, 8, 16, 32 or 64 bits, found 'tensor<4xi4>'}}
func.func @loss(%q: tensor<4xi4> {fsdp.param = "q", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}

// -----

// Integers are frozen.
// expected-error@+1 {{no parameter can be trained: all parameters (1) are frozen or integers; remove parameters from --freeze or from the sidecar's list, or remove the attribute 'fsdp.frozen'}}
func.func @loss(%q: tensor<4xi8> {fsdp.param = "q", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}

// -----

// expected-error@+1 {{parameter 'w': expected initial values in 'fsdp.init', as in #fsdp.init<normal, 0.0, 0.02>}}
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w"}) {
  return
}

// -----

// expected-error@+1 {{parameter 'w': expected at most 2^48 elements, found 'tensor<4000000000x4000000000xf32>'}}
func.func @loss(%w: tensor<4000000000x4000000000xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}

// -----

// Two parameters are each below the limit, but their sum is not.
// expected-error@+1 {{unit 'h.0': expected at most 2^48 elements, found}}
func.func @loss(%a: tensor<16777216x16777216xf32> {fsdp.param = "h.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
                %b: tensor<1xf32> {fsdp.param = "h.0.b", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}

// -----

func.func @loss(
    // expected-note@+1 {{the first one is here}}
    %a: tensor<4xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    // expected-error@+1 {{expected one argument per parameter, found a second one for "w"; tied parameters are one argument used twice}}
    %b: tensor<4xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}

// -----

// expected-error@+1 {{expected a module that is not sharded yet}}
module {
  // expected-note@+1 {{found this declaration}}
  fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
  func.func @loss() { return }
}

// -----

// expected-error@+1 {{parameter 'w': expected the name of a unit in 'fsdp.unit', found 3 : i64}}
func.func @loss(%w: tensor<4xf32> {fsdp.param = "w", fsdp.unit = 3, fsdp.init = #fsdp.init<constant, 0.0, 0.0>}) {
  return
}
