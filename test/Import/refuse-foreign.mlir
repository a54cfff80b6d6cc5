// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --fsdp-refuse-foreign

func.func @torch(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'torch.aten.relu' is not supported; lower it with 'torch-backend-to-linalg-on-tensors-backend-pipeline'}}
  %0 = "torch.aten.relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error @+1 {{'stablehlo.add' is not supported; write the loss with other operations of jax.numpy}}
  %1 = "stablehlo.add"(%0, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // expected-error @+1 {{'tm_tensor.scan' is not supported; write positions as arange instead of cumsum}}
  %2 = "tm_tensor.scan"(%1) : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error @+1 {{'tm_tensor.attention' is not supported; let scaled_dot_product_attention decompose}}
  %3 = "tm_tensor.attention"(%2) : (tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// -----

// DOC-BEFORE-BEGIN fsdp-refuse-foreign
// expected-error @+1 {{argument 0 of '@dynamic' expected a tensor of static shape, found 'tensor<?x4xi64>'; export with fixed batch and sequence lengths}}
func.func @dynamic(%x: tensor<?x4xi64>) {
  return
}
// DOC-BEFORE-END

// -----

func.func @loop(%x: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {
  // expected-error @+1 {{'scf.while' is not supported; unroll the loop; a step has static shape and no data-dependent control flow}}
  %r = scf.while (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {
    %c = tensor.extract %n[] : tensor<i1>
    scf.condition(%c) %a : tensor<2xf32>
  } do {
  ^bb0(%a: tensor<2xf32>):
    scf.yield %a : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// -----

func.func @complex(%x: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  // expected-error @+1 {{'tensor.empty' works on complex numbers; write the model on real numbers; rotary embeddings as pairs with sin and cos}}
  %c = tensor.empty() : tensor<2xcomplex<f32>>
  return %e : tensor<2xf32>
}

// -----

// expected-error @+1 {{'@branches' has control flow; unroll the loop}}
func.func @branches(%x: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {
  cf.br ^bb1
^bb1:
  return %x : tensor<2xf32>
}

// -----

// Products that overflow: 2^62 times 4 to 0, (2^60 + 1) times 16 to 16.
// expected-error @+1 {{argument 0 of '@vast' expected at most 2^48 elements, found 'tensor<4x4611686018427387904xf32>'}}
func.func @vast(%x: tensor<4x4611686018427387904xf32>) -> tensor<4x4611686018427387904xf32> {
  return %x : tensor<4x4611686018427387904xf32>
}

// -----

// expected-error @+1 {{argument 0 of '@vast' expected at most 2^48 elements, found 'tensor<16x1152921504606846977xf32>'}}
func.func @vast(%x: tensor<16x1152921504606846977xf32>) -> tensor<16x1152921504606846977xf32> {
  return %x : tensor<16x1152921504606846977xf32>
}

// -----

func.func @vast_inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tensor.empty' expected results of at most 2^48 elements, found 'tensor<16777216x16777217xf32>'}}
  %e = tensor.empty() : tensor<16777216x16777217xf32>
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument 0 of '@empty' has no elements, yet is used: 'tensor<0x4xf32>'}}
func.func @empty(%x: tensor<0x4xf32>, %unused: tensor<0xf32>) -> tensor<0x4xf32> {
  return %x : tensor<0x4xf32>
}

// -----

func.func @resource() -> tensor<4xf32> {
  // expected-error @+1 {{the resource 'short' expected 16 bytes for 'tensor<4xf32>', found 4}}
  %0 = arith.constant dense_resource<short> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
{-#
  dialect_resources: {
    builtin: {
      short: "0x040000000000803F"
    }
  }
#-}

// -----

// rand and dropout in the form of torch-mlir: a seed that each step changes.
ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @torch_random() -> tensor<i64> {
  // expected-error @+1 {{'ml_program.global_load' (state that persists between steps) is not supported; export the model without dropout, or draw with 'fsdp.random', whose numbers depend on seed, step and sample alone, or write dropout as a call of '@fsdp.dropout.N' (docs/explanation/guide/questions.md)}}
  %seed = ml_program.global_load @global_seed : tensor<i64>
  // expected-error @+1 {{'ml_program.global_store' (state that persists between steps) is not supported; export the model without dropout}}
  ml_program.global_store @global_seed = %seed : tensor<i64>
  return %seed : tensor<i64>
}

// -----

func.func @others(%x: tensor<2x4xf32>, %key: tensor<2xui64>) -> tensor<2x4xf32> {
  %min = arith.constant 0.0 : f64
  %seed = arith.constant 7 : i32
  // expected-error @+1 {{'torch.aten.native_dropout' is not supported; export the model without dropout, or draw with 'fsdp.random'}}
  %0:2 = "torch.aten.native_dropout"(%x) : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi1>)
  // expected-error @+1 {{'torch_c.get_next_seed' is not supported; export the model without dropout}}
  %1 = "torch_c.get_next_seed"() : () -> i64
  // expected-error @+1 {{'stablehlo.rng' is not supported; export the model without dropout, or draw with 'fsdp.random'}}
  %2 = "stablehlo.rng"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // expected-error @+1 {{'stablehlo.rng_bit_generator' is not supported; export the model without dropout}}
  %3:2 = "stablehlo.rng_bit_generator"(%key) : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x4xui32>)
  // One seed gives the same numbers in every step.
  // expected-error @+1 {{'linalg.fill_rng_2d' is not supported; export the model without dropout, or draw with 'fsdp.random'}}
  %4 = linalg.fill_rng_2d ins(%min, %min, %seed : f64, f64, i32) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}
