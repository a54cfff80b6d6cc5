// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// stop_gradient (C1)
func.func @f(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @below {{requires the same type for all operands and results}}
  %a = "fsdp.stop_gradient"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return %a : tensor<5xf32>
}

// -----

func.func @f(%x: f32) -> f32 {
  // expected-error @below {{operand #0 must be ranked tensor of any type values, but got 'f32'}}
  %a = "fsdp.stop_gradient"(%x) : (f32) -> f32
  return %a : f32
}
