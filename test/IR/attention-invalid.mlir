// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// attention (C1)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf64>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{expected Q, K and V to have the same element type, found 'f32' (Q), 'f64' (K) and 'f32' (V)}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf64>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C1: 2^60 + 1 rows times 16, whose product overflows to 16)
func.func @f(%q: tensor<1x2x1152921504606846977x8xf32>) {
  // expected-error @below {{expected Q, K, V and O of at most 2^48 elements, found 'tensor<1x2x1152921504606846977x8xf32>'}}
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x1152921504606846977x8xf32>, tensor<1x2x1152921504606846977x8xf32>, tensor<1x2x1152921504606846977x8xf32> -> tensor<1x2x1152921504606846977x8xf32>, tensor<1x2x1152921504606846977xf32>
  return
}

// -----

// attention (C1: batch 0, and more rows than an index can count)
func.func @f(%q: tensor<0x2x1152921504606846977x8xf32>) {
  // expected-error @below {{expected Q, K, V and O of at most 2^48 elements}}
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<0x2x1152921504606846977x8xf32>, tensor<0x2x1152921504606846977x8xf32>, tensor<0x2x1152921504606846977x8xf32> -> tensor<0x2x1152921504606846977x8xf32>, tensor<0x2x1152921504606846977xf32>
  return
}

// -----

// attention (C2)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x6x8xf32>) {
  // expected-error @below {{expected K and V to be equal in all dimensions but the last, found 'tensor<1x2x5x8xf32>' (K) and 'tensor<1x2x6x8xf32>' (V)}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x6x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C2): another batch size
func.func @f(%q: tensor<2x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{expected Q and K to have the same batch size, found 2 (Q) and 1 (K)}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<2x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
  return
}

// -----

// attention (C3)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x16xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{expected Q and K to have the same head dimension, found 8 (Q) and 16 (K)}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x16xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C4)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x3x5x8xf32>, %v: tensor<1x3x5x8xf32>) {
  // expected-error @below {{expected the number of KV heads to divide the number of query heads, found 3 KV heads and 4 query heads}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x3x5x8xf32>, tensor<1x3x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C5)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{expected O and LSE to have the types}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf64>
  return
}

// -----

// attention (C6)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{expected a finite scale, found inf}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0x7FF0000000000000
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C7)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %c: tensor<?xf32>) {
  // expected-error @below {{expected captured tensors to be of static shape with elements of f16, bf16, f32, f64 or integers of at most 64 bits}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 capture(%c : tensor<?xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C8)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{expected the arguments of 'mask_mod' to have the types}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      mask_mod(%b: index, %h: index, %i: index) {
    %t = arith.constant true
    fsdp.yield %t : i1
  }
  return
}

// -----

// attention (C9: a wrong type)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %t = arith.constant true
    // expected-error @below {{'fsdp.yield' op expected 'score_mod' to end with an 'fsdp.yield' of one value of type 'f32', found 1 value of type 'i1'}}
    fsdp.yield %t : i1
  }
  return
}

// -----

// attention (C9: two values)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    // expected-error @below {{expected 'score_mod' to end with an 'fsdp.yield' of one value of type 'f32', found 2 values of types 'f32', 'f32'}}
    fsdp.yield %s, %s : f32, f32
  }
  return
}

// -----

// attention (C9: none)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    // expected-error @below {{expected 'score_mod' to end with an 'fsdp.yield' of one value of type 'f32', found no operand}}
    fsdp.yield
  }
  return
}

// -----

// attention (C9: no terminator)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    // expected-error @below {{'arith.addf' op expected 'score_mod' to end with an 'fsdp.yield' of one value of type 'f32', found 'arith.addf'}}
    %t = arith.addf %s, %s : f32
  }
  return
}

// -----

// attention (C9: another terminator)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    // expected-error @below {{'linalg.yield' op expected 'score_mod' to end with an 'fsdp.yield' of one value of type 'f32', found 'linalg.yield'}}
    linalg.yield %s : f32
  }
  return
}

// -----

// attention (C9: an empty region)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{'fsdp.attention' op expected 'score_mod' to end with an 'fsdp.yield' of one value of type 'f32', found an empty block}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
  }
  return
}

// -----

// attention (C10: an effect)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %c: tensor<4xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 capture(%c : tensor<4xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    // expected-error @below {{is not allowed in 'score_mod': expected pure scalar ops}}
    %x = memref.alloc() : memref<4xf32>
    fsdp.yield %s : f32
  }
  return
}

// -----

// attention (C10: a tensor)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %c: tensor<4xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 capture(%c : tensor<4xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    // expected-error @below {{is not allowed in 'score_mod': expected pure scalar ops of arith and math, fsdp.random_element, and tensor.extract of captured tensors; found an operand or result of type 'tensor<4xf32>'}}
    %x = arith.addf %m, %m : tensor<4xf32>
    fsdp.yield %s : f32
  }
  return
}

// -----

// attention (C10: a table that is not captured)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    %m = arith.constant 1.0 : f32
    // expected-error @below {{is not allowed in 'score_mod'}}
    %x = tensor.empty() : tensor<4xf32>
    fsdp.yield %s : f32
  }
  return
}

// -----

// attention (C10: a float type that kernels do not support)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    // expected-error @below {{in 'score_mod' expected operands and results of f16, bf16, f32, f64, index or integers of at most 64 bits, found 'f8E4M3FN'}}
    %x = arith.truncf %s : f32 to f8E4M3FN
    %y = arith.extf %x : f8E4M3FN to f32
    fsdp.yield %y : f32
  }
  return
}

// -----

// attention (C10: an integer type that kernels do not support)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      mask_mod(%b: index, %h: index, %i: index, %j: index) {
    // expected-error @below {{in 'mask_mod' expected operands and results of f16, bf16, f32, f64, index or integers of at most 64 bits, found 'i128'}}
    %x = arith.index_cast %i : index to i128
    %t = arith.cmpi sgt, %x, %x : i128
    fsdp.yield %t : i1
  }
  return
}

// -----

// attention (C7: a float type that kernels do not support)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %c: tensor<4xf8E5M2>) {
  // expected-error @below {{or integers of at most 64 bits; found 'tensor<4xf8E5M2>'}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 capture(%c : tensor<4xf8E5M2>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention (C7: an integer type that kernels do not support)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %c: tensor<4xi128>) {
  // expected-error @below {{or integers of at most 64 bits; found 'tensor<4xi128>'}}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5 capture(%c : tensor<4xi128>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
  return
}

// -----

// attention: two regions of one name
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  %o, %lse = fsdp.attention %q, %k, %v scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x4x3xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    fsdp.yield %s : f32
  } mask_mod(%b: index, %h: index, %i: index, %j: index) {
    %t = arith.constant true
    fsdp.yield %t : i1
  }
      // expected-error @below {{has a second region 'score_mod'; expected at most one; merge the two}}
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    fsdp.yield %s : f32
  }
  return
}

// -----

// attention_grad (C11)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x9xf32>) {
  // expected-error @below {{expected dO to have the type of O}}
  %d:3 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x9xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
  return
}

// -----

// attention_grad (C12)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>) {
  // expected-error @below {{expected both 'score_mod' and 'score_grad', or neither of them, found 'score_mod' only}}
  %d:3 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    fsdp.yield %s : f32
  }
  return
}

// -----

// attention_grad (C12)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>) {
  // expected-error @below {{expected the arguments of 'score_grad' to have the types}}
  %d:3 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index) {
    fsdp.yield %s : f32
  } score_grad(%dc: f32, %b: index, %h: index, %i: index, %j: index) {
    fsdp.yield %dc : f32
  }
  return
}

// -----

// attention_grad (C13)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>) {
  // expected-error @below {{expected dQ to have the shape of Q, 'tensor<1x4x3x8xf32>', found 'tensor<1x4x4x8xf32>'}}
  %d:3 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
  return
}

// -----

// attention_grad (C14)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{expected 1 result after the gradients of Q, K and V (one per captured float tensor), found 0}}
  %d:3 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5 capture(%c : tensor<4xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>
  return
}

// -----

// attention_grad (C14)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{expected the gradient of captured tensor 0 to have the shape of this tensor, 'tensor<4xf32>', found 'tensor<5xf32>'}}
  %d:4 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5 capture(%c : tensor<4xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> gradients(tensor<5xf32>)
  return
}

// -----

// contribute (C1)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>, %c: tensor<4xf32>) {
  %d:4 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5 capture(%c : tensor<4xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> gradients(tensor<4xf32>)
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    // expected-error @below {{is allowed only in 'score_grad', found in 'score_mod'}}
    fsdp.contribute %s to %m[%h] : f32, tensor<4xf32>
    fsdp.yield %s : f32
  } score_grad(%dc: f32, %s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    fsdp.yield %dc : f32
  }
  return
}

// -----

// contribute (C2)
func.func @f(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %o: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x8xf32>, %c: tensor<4xf32>) {
  %d:4 = fsdp.attention_grad %q, %k, %v, %o, %l, %g scale 0.5 capture(%c : tensor<4xf32>)
      : tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32> -> tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32> gradients(tensor<4xf32>)
      score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    fsdp.yield %s : f32
  } score_grad(%dc: f32, %s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<4xf32>) {
    // expected-error @below {{expected 1 index, one per dimension of 'tensor<4xf32>', found 2}}
    fsdp.contribute %dc to %m[%h, %h] : f32, tensor<4xf32>
    fsdp.yield %dc : f32
  }
  return
}

// -----

func.func @weights_read_floats(%q: tensor<1x2x3x4xf32>, %t: tensor<3xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5 capture(%t : tensor<3xf32>)
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index, %x: tensor<3xf32>) {
    // expected-error @below {{reads a float tensor in 'weight_mod'; expected an integer tensor, because 'weight_mod' has no gradient}}
    // expected-note @below {{for a learned factor per key, multiply V by the factor; for one per head and row, multiply O; for any other factor, use two matrix products and a softmax}}
    %f = tensor.extract %x[%j] : tensor<3xf32>
    fsdp.yield %f : f32
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @weights_are_not_of_the_score(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %f = arith.constant true
    // expected-error @below {{expected 'weight_mod' to end with an 'fsdp.yield' of one value of type 'f32', found 1 value of type 'i1'}}
    fsdp.yield %f : i1
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @uniform_flags(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %s = arith.constant 5 : i64
    // expected-error @below {{expected a float result for distribution 'uniform', found 'i1'}}
    %f = fsdp.random_element uniform seed %s step %s sample %s element %j site 3 : i1
    %y = arith.constant 1.0 : f32
    fsdp.yield %y : f32
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

// (C15)
func.func @short_ring(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  // expected-error @below {{expected 'ring' with at least 2 ranks, found 1}}
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5 ring 1
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @stripes_without_ring(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  // expected-error @below {{expected 'ring' with at least 2 ranks, found 'striped' without 'ring'}}
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5 striped
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @far_site(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %s = arith.constant 5 : i64
    // expected-error @below {{expected a site from 0 to 2^32 - 1, found 4294967296}}
    %f = fsdp.random_element uniform seed %s step %s sample %s element %j site 4294967296 : f32
    %y = arith.constant 1.0 : f32
    fsdp.yield %y : f32
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @no_keep(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %s = arith.constant 5 : i64
    // expected-error @below {{expected 'keep' after 'bernoulli', found none}}
    %f = fsdp.random_element bernoulli seed %s step %s sample %s element %j site 3 : f32
    %y = arith.constant 1.0 : f32
    fsdp.yield %y : f32
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @uniform_keep(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %s = arith.constant 5 : i64
    // expected-error @below {{expected no 'keep' after 'uniform', found 'keep' 5}}
    %f = fsdp.random_element uniform keep 0.5 seed %s step %s sample %s element %j site 3 : f32
    %y = arith.constant 1.0 : f32
    fsdp.yield %y : f32
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @keep_range(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %o, %lse = fsdp.attention %q, %q, %q scale 0.5
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
      weight_mod(%b: index, %h: index, %i: index, %j: index) {
    %s = arith.constant 5 : i64
    // expected-error @below {{expected 'keep' to be a probability, from 0 to 1, found 1.5}}
    %f = fsdp.random_element bernoulli keep 1.5 seed %s step %s sample %s element %j site 3 : f32
    %y = arith.constant 1.0 : f32
    fsdp.yield %y : f32
  }
  return %o : tensor<1x2x3x4xf32>
}

// -----

func.func @element_outside(%s: i64, %j: index) -> f32 {
  // expected-error @below {{expects parent op to be one of 'fsdp.attention, fsdp.attention_grad'}}
  %f = fsdp.random_element uniform seed %s step %s sample %s element %j site 3 : f32
  return %f : f32
}
