// RUN: fsdp-opt %s --fsdp-verify-float-contract --split-input-file --verify-diagnostics

func.func @exact(%a: f32, %b: f32) -> f32 {
  %0 = math.fma %a, %b, %b : f32
  %1 = arith.addf %0, %a : f32
  return %1 : f32
}

// -----

// DOC-BEFORE-BEGIN fsdp-verify-float-contract
func.func @loose(%a: f32, %b: f32) -> f32 {
  // expected-error @below {{'arith.addf' op has the fast-math flags 'reassoc,contract', but kernels compute exactly the operations that are written}}
  // expected-note @below {{remove the flags, and write math.fma for a multiplication and addition with one rounding}}
  %0 = arith.addf %a, %b fastmath<reassoc,contract> : f32
  return %0 : f32
}
// DOC-BEFORE-END

// -----

func.func @loose_math(%a: f32) -> f32 {
  // expected-error @below {{has the fast-math flags 'afn'}}
  // expected-note @below {{remove the flags}}
  %0 = math.exp %a fastmath<afn> : f32
  return %0 : f32
}
