// RUN: fsdp-opt %s --fsdp-add-backward -verify-diagnostics -split-input-file

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @product(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  // expected-error@+1 {{no gradient for result 0 of this reduction: expected `out + terms`, `out - terms`, a maximum, or a minimum of the 'outs' argument `out` and terms that do not read it; write a product as exp of a sum of logarithms}}
  %r = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%one : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-note@+1 {{'arith.mulf' is applied to the 'outs' argument}}
    %0 = arith.mulf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @overwritten(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  // expected-error@+1 {{no gradient for result 0 of this reduction: every iteration overwrites it; expected it to combine with the 'outs' argument}}
  %r = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
// A body that applies both max and min is neither a sum nor an extreme.
func.func @clamped_sum(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  // expected-error@+1 {{no gradient for result 0 of this reduction}}
  %r = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%one : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-note@+1 {{the last op of result 0 is 'arith.minimumf'; the body mixes maximum and minimum}}
    %0 = arith.maximumf %o, %a : f32
    %1 = arith.minimumf %0, %a : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// A sum is scaled in each iteration.
func.func @f(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %zero = arith.constant dense<0.0> : tensor<f32>
  // expected-error @below {{no gradient for result 0 of this reduction: expected `out + terms`}}
  %loss = linalg.reduce ins(%x : tensor<4xf32>) outs(%zero : tensor<f32>) dimensions = [0]
    (%in: f32, %out: f32) {
      %half = arith.constant 0.5 : f32
      // expected-note @below {{the last op of result 0 is 'arith.addf'; 'arith.mulf' is applied to the 'outs' argument}}
      %scaled = arith.mulf %half, %out : f32
      %s = arith.addf %in, %scaled : f32
      linalg.yield %s : f32
    }
  return %loss : tensor<f32>
}

// -----

// The partial result is added to itself.
func.func @f(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %zero = arith.constant dense<0.0> : tensor<f32>
  // expected-error @below {{no gradient for result 0 of this reduction: expected `out + terms`}}
  %loss = linalg.reduce ins(%x : tensor<4xf32>) outs(%zero : tensor<f32>) dimensions = [0]
    (%in: f32, %out: f32) {
      // expected-note @below {{the last op of result 0 is 'arith.addf'; both operands of 'arith.addf' depend on the 'outs' argument}}
      %twice = arith.addf %out, %out : f32
      %s = arith.addf %in, %twice : f32
      linalg.yield %s : f32
    }
  return %loss : tensor<f32>
}

// -----

#none = affine_map<() -> ()>
func.func @exponent(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %c = arith.constant 2.0 : f32
  %r = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-error@+1 {{no gradient for the exponent of 'math.powf': that gradient exists only for a positive base; if the base x is positive, write exp(e * log(x)) for the exponent e}}
    %0 = math.powf %c, %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#none = affine_map<() -> ()>
func.func @bits(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %sign = arith.constant 0x80000000 : i32
  %r = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.bitcast %a : f32 to i32
    %1 = arith.xori %0, %sign : i32
    // expected-error@+1 {{no gradient for 'arith.bitcast' of bits that come from a float; write it with ops on floats (arith.negf, math.absf, math.copysign), or add 'fsdp.frozen' to the parameters on which it depends}}
    %2 = arith.bitcast %1 : i32 to f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#none = affine_map<() -> ()>
func.func @no_rule(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %c = arith.constant 2.0 : f32
  %r = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-error@+1 {{no derivative rule for 'arith.remf'; rewrite it with ops of the model contract (docs/explanation/pipeline.md), or add 'fsdp.frozen' to the parameters on which it depends}}
    %0 = arith.remf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#none = affine_map<() -> ()>
func.func @branch_in_body(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %c = arith.constant 2.0 : f32
  %r = linalg.generic {indexing_maps = [#none, #none], iterator_types = []} ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.cmpf ogt, %a, %c : f32
    // expected-error@+1 {{no gradient through 'scf.if' inside the body of a structured op; write it with arith.select}}
    %0 = scf.if %p -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %c : f32
    }
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// -----

func.func @loop(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{no gradient for 'scf.for': control flow is not differentiated; unroll the loop or write the choice with arith.select}}
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<f32> {
    scf.yield %a : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

func.func @tensor_arith(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> {
  // expected-error@+1 {{no gradient for 'math.exp' on tensors; run --convert-elementwise-to-linalg before --fsdp-add-backward}}
  %r = math.exp %x : tensor<f32>
  return %r : tensor<f32>
}

// -----

func.func @computed_slice(%x: tensor<4xf32> {fsdp.param = "x"}, %i: index) -> tensor<f32> {
  // expected-error@+1 {{no gradient for 'tensor.extract_slice' at computed offsets; use constant offsets, or gather with a linalg.generic that reads tensor.extract}}
  %r = tensor.extract_slice %x[%i] [1] [1] : tensor<4xf32> to tensor<f32>
  return %r : tensor<f32>
}

// -----

func.func @padding_value(%x: tensor<4xf32> {fsdp.param = "x"}, %p: tensor<f32> {fsdp.param = "p"}) -> tensor<f32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  // expected-note@+1 {{the padding depends on a parameter here}}
  %v = tensor.extract %p[] : tensor<f32>
  // expected-error@+1 {{no gradient for the padding value of 'tensor.pad'; pad with a constant, or insert the source into a tensor.splat of the padding value}}
  %y = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<4xf32> to tensor<6xf32>
  %r = linalg.dot ins(%y, %y : tensor<6xf32>, tensor<6xf32>) outs(%z : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// expected-error@+1 {{expected the first result to be the loss, a float tensor of rank 0, found 'tensor<4xf32>'}}
func.func @no_loss(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{expected the first result to be the loss, a float tensor of rank 0, found no result}}
func.func @no_result(%x: tensor<4xf32> {fsdp.param = "x"}) {
  return
}

// -----

// expected-error@+1 {{expected static shapes, found 'tensor<?xf32>' as argument 1}}
func.func @dynamic(%x: tensor<f32> {fsdp.param = "x"}, %y: tensor<?xf32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
// expected-note@+1 {{it is defined here; rename it}}
func.func private @eval()
// expected-error@+1 {{expected no other symbol '@eval', which is reserved for a program}}
func.func @loss(%x: tensor<f32> {fsdp.param = "x"}) -> tensor<f32> attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  return %x : tensor<f32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
// expected-error@+1 {{expected @u, the 'fsdp.unit' of argument 0, to name an 'fsdp.unit' op, found no symbol @u}}
func.func @reference(%x: tensor<64xf32> {fsdp.unit = @u}, %l: tensor<f32>) -> tensor<f32> attributes {fsdp.program = "reference", fsdp.mesh = @mesh} {
  return %l : tensor<f32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard true [#fsdp.param<"w", tensor<f32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
func.func @reference(%x: tensor<64xf32>) -> tensor<f32> attributes {fsdp.program = "reference", fsdp.mesh = @mesh} {
  // expected-error@+1 {{expected the shard to be a function argument that has 'fsdp.unit = @u', because the gradient of the shard is returned for that argument; found an argument without it}}
  %w = fsdp.unshard %x @u site 0 : tensor<64xf32> -> tensor<f32>
  return %w : tensor<f32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard true [#fsdp.param<"w", tensor<f32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
fsdp.unit @v shards 1 x 64 : f32 reshard true [#fsdp.param<"v", tensor<f32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
func.func @reference(%x: tensor<64xf32> {fsdp.unit = @v}) -> tensor<f32> attributes {fsdp.program = "reference", fsdp.mesh = @mesh} {
  // expected-error@+1 {{found an argument with 'fsdp.unit = @v'}}
  %w = fsdp.unshard %x @u site 0 : tensor<64xf32> -> tensor<f32>
  return %w : tensor<f32>
}

// -----

fsdp.mesh @mesh [#fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : f32 reshard true [#fsdp.param<"w", tensor<f32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.02>>]
func.func @reference(%x: tensor<64xf32> {fsdp.unit = @u}) -> tensor<f32> attributes {fsdp.program = "reference", fsdp.mesh = @mesh} {
  %e = tensor.empty() : tensor<64xf32>
  // expected-error@+1 {{found a result of a 'tensor.empty'}}
  %w = fsdp.unshard %e @u site 0 : tensor<64xf32> -> tensor<f32>
  return %w : tensor<f32>
}

// -----

// The log-sum-exp of attention serves the gradient only: a loss cannot be computed from it.
func.func @f(%q: tensor<1x1x2x4xf32> {fsdp.param = "q"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  // expected-error @below {{no gradient for result 1 of 'fsdp.attention' (the log-sum-exp): expected the loss to depend on result 0 only}}
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %loss = linalg.reduce ins(%lse : tensor<1x1x2xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1, 2]
    (%in: f32, %out: f32) {
      %s = arith.addf %in, %out : f32
      linalg.yield %s : f32
    }
  return %loss : tensor<f32>
}

// -----

// Each step negates the partial result, so the reduction is not a sum of terms.
func.func @f(%x: tensor<4xf32> {fsdp.param = "x"}) -> tensor<f32> attributes {fsdp.program = "step"} {
  %zero = arith.constant dense<0.0> : tensor<f32>
  // expected-error @below {{a minimum of the 'outs' argument `out` and terms that do not read it}}
  %loss = linalg.reduce ins(%x : tensor<4xf32>) outs(%zero : tensor<f32>) dimensions = [0]
    (%in: f32, %out: f32) {
      // expected-note @below {{'arith.subf' negates the 'outs' argument}}
      %s = arith.subf %in, %out : f32
      linalg.yield %s : f32
    }
  return %loss : tensor<f32>
}
