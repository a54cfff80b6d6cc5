// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --fsdp-verify-imported

// DOC-BEFORE-BEGIN fsdp-verify-imported
// expected-error @+1 {{expected the loss as tensor<f32>, found 'tensor<4x9xf32>'; for logits of shape [.., vocabulary] give --attach-loss=cross_entropy}}
func.func @logits(%x: tensor<4x9xf32> {fsdp.batch = "x"}) -> tensor<4x9xf32> {
  return %x : tensor<4x9xf32>
}
// DOC-BEFORE-END

// -----

// expected-error @+1 {{expected one result, the loss; found 2; return the loss alone from the exported function}}
func.func @two(%x: tensor<f32> {fsdp.batch = "x"}) -> (tensor<f32>, tensor<f32>) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-error @below {{argument 0 expected either 'fsdp.param' or 'fsdp.batch'}}
// expected-error @below {{parameter 'w' expected 'fsdp.init'}}
// expected-error @below {{two arguments are called 'w'}}
// expected-note @below {{the first argument of this name is here}}
func.func @arguments(%a: tensor<f32>, %b: tensor<f32> {fsdp.param = "w"}, %c: tensor<f32> {fsdp.batch = "w"}) -> tensor<f32> {
  return %a : tensor<f32>
}

// -----

func.func @ops(%x: tensor<4xf32> {fsdp.batch = "x"}, %i: tensor<4x1xi64> {fsdp.batch = "i"}) -> tensor<f32> {
  %e0 = tensor.empty() : tensor<f32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = linalg.index 0 : index
    // expected-error @+1 {{'tensor.extract' is not supported inside a structured op}}
    %1 = tensor.extract %x[%0] : tensor<4xf32>
    // expected-error @+1 {{carries fast-math flags, expected none: the order of operations is part of the model}}
    %2 = arith.addf %1, %a fastmath<reassoc> : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  // expected-error @+1 {{'tensor.gather' is not supported; write the lookup as an index of the first dimension (an embedding)}}
  %g = tensor.gather %x[%i] gather_dims([0]) : (tensor<4xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  // expected-error @+1 {{'linalg.exp' was not normalised}}
  %m = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'foreign.op' is not supported}}
  %f = "foreign.op"() : () -> tensor<f32>
  return %e0 : tensor<f32>
}

// -----

func.func @first(%x: tensor<f32> {fsdp.batch = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}
// expected-error @+1 {{function '@second' has no body; define it in the module, or remove the calls}}
func.func private @second()

// -----

func.func @extra(%w: tensor<4x3xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
                 %i: tensor<2xi64> {fsdp.batch = "i", fsdp.limit = 4 : i64, fsdp.extra_ids = array<i64: 1000>},
                 %j: tensor<2xi64> {fsdp.batch = "j"}) -> tensor<f32> {
  // expected-error @+1 {{'fsdp.gather_rows' looks up the extra id 1000 of argument 1, which is not one of the rows of the table}}
  %x = fsdp.gather_rows %w[%i] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  // expected-error @+1 {{'fsdp.gather_rows' has ids that may be outside the rows of the table; expected them in [0, 4)}}
  %y = fsdp.gather_rows %w[%j] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  %e = tensor.empty() : tensor<f32>
  return %e : tensor<f32>
}

// -----

func.func @integers(
    // expected-error @+1 {{parameter 'a' of 'i8' expected 'fsdp.frozen': integers are not trained}}
    %a: tensor<4xi8> {fsdp.param = "a", fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    // expected-error @+1 {{parameter 'b' of 'i8' expected one integer that it can hold in 'fsdp.init', as in #fsdp.init<constant, 1.0, 0.0>, found #fsdp.init<constant, 1.280000e+02, 0.000000e+00>}}
    %b: tensor<4xi8> {fsdp.param = "b", fsdp.frozen, fsdp.init = #fsdp.init<constant, 128.0, 0.0>},
    // expected-error @+1 {{parameter 'c' of 'i32' expected one integer}}
    %c: tensor<4xi32> {fsdp.param = "c", fsdp.frozen, fsdp.init = #fsdp.init<constant, 0.5, 0.0>},
    // expected-error @+1 {{parameter 'd' of 'i64' expected one integer}}
    %d: tensor<4xi64> {fsdp.param = "d", fsdp.frozen, fsdp.init = #fsdp.init<normal, 0.0, 0.02>},
    // expected-error @+1 {{parameter 'e' of 'i1' expected one integer}}
    %e: tensor<4xi1> {fsdp.param = "e", fsdp.frozen, fsdp.init = #fsdp.init<constant, -1.0, 0.0>},
    // expected-error @+1 {{parameter 'f' expected a tensor of f64, f32, f16 or bf16, or of integers of 1, 8, 16, 32 or 64 bits, found 'tensor<4xi4>'}}
    %f: tensor<4xi4> {fsdp.param = "f", fsdp.frozen, fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    %g: tensor<4xi1> {fsdp.param = "g", fsdp.frozen, fsdp.init = #fsdp.init<constant, 1.0, 0.0>}) -> tensor<f32> {
  %0 = arith.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{batch input 'x' expected elements of f64, f32, f16 or bf16, or integers of 1, 8, 16, 32 or 64 bits, found 'tensor<4xf80>'}}
func.func @long(%w: tensor<4xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>}, %x: tensor<4xf80> {fsdp.batch = "x"}) -> tensor<f32> {
  %0 = arith.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @wide(%w: tensor<4xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>}, %x: tensor<4xi64> {fsdp.batch = "x"}) -> tensor<f32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: i64, %o: f32):
    // expected-error @+1 {{'arith.extsi' has a result of type 'i128'; expected f64, f32, f16, bf16 or an integer of at most 64 bits}}
    %b = arith.extsi %a : i64 to i128
    %c = arith.sitofp %b : i128 to f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %0 = arith.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}

// -----

module attributes {fsdp.values = {a = dense<1.0> : tensor<4xf32>, b = dense<1> : tensor<4xi32>}} {
func.func @values(
    // expected-error @+1 {{parameter "a" expected values of its type, 'tensor<4xi32>', found 'tensor<4xf32>'}}
    %a: tensor<4xi32> {fsdp.param = "a", fsdp.frozen, fsdp.init = #fsdp.init<constant, 1.0, 0.0>},
    // expected-error @+1 {{parameter "b" expected float values of its shape, 'tensor<4xf32>', found 'tensor<4xi32>'}}
    %b: tensor<4xf32> {fsdp.param = "b", fsdp.init = #fsdp.init<constant, 1.0, 0.0>}) -> tensor<f32> {
  %0 = arith.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}
}
