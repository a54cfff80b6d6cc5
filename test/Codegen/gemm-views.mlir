// Views and elementwise ops around a contraction need no copies. Results are compared
// with the oracle; the bits are equal for every split and for both vector widths.
// RUN: fsdp-kernel-test %s --target-cpu=%cpu --also-cpu=x86-64-v3 | FileCheck %s
// RUN: fsdp-kernel-test %s --target-cpu=amx-loops --also-cpu=%amx | FileCheck %s

#id2 = affine_map<(i,j)->(i,j)>
#row = affine_map<(i,j)->(j)>

// A linear layer with bias and an approximate GELU, which also stores the pre-activation.
// CHECK: @bias_gelu: {{.*}} ok
func.func private @bias_gelu(%x: tensor<6x7x20xf32>, %w: tensor<37x20xf32>, %b: tensor<37xf32>, %y: tensor<6x7x37xf32> {fsdp.out = 0 : i64}, %h: tensor<42x37xbf16> {fsdp.out = 1 : i64})
    -> (tensor<6x7x37xf32>, tensor<42x37xbf16>)
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %xc = tensor.collapse_shape %x [[0,1],[2]] : tensor<6x7x20xf32> into tensor<42x20xf32>
  %e = tensor.empty() : tensor<42x37xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<42x37xf32>) -> tensor<42x37xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>]
      ins(%xc, %w : tensor<42x20xf32>, tensor<37x20xf32>) outs(%i : tensor<42x37xf32>) -> tensor<42x37xf32>
  %e2 = tensor.empty() : tensor<42x37xf32>
  %e3 = tensor.empty() : tensor<42x37xbf16>
  %g:2 = linalg.generic {indexing_maps=[#id2, #row, #id2, #id2], iterator_types=["parallel","parallel"]}
      ins(%r, %b : tensor<42x37xf32>, tensor<37xf32>) outs(%e2, %e3 : tensor<42x37xf32>, tensor<42x37xbf16>) {
  ^bb0(%a: f32, %c: f32, %o: f32, %o2: bf16):
    %half = arith.constant 0.5 : f32
    %s = arith.addf %a, %c : f32
    %t = math.tanh %s : f32
    %u = arith.mulf %t, %half : f32
    %v = arith.truncf %s : f32 to bf16
    linalg.yield %u, %v : f32, bf16
  } -> (tensor<42x37xf32>, tensor<42x37xbf16>)
  %ge = tensor.expand_shape %g#0 [[0,1],[2]] output_shape [6,7,37] : tensor<42x37xf32> into tensor<6x7x37xf32>
  return %ge, %g#1 : tensor<6x7x37xf32>, tensor<42x37xbf16>
}

// Residual in place through an expanded view.
// CHECK: @residual: {{.*}} ok
func.func private @residual(%x: tensor<24x50xbf16>, %w: tensor<50x40xbf16>, %res: tensor<4x6x40xf32> {fsdp.inout = 0 : i64})
    -> tensor<4x6x40xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x40xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<24x40xf32>) -> tensor<24x40xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>]
      ins(%x, %w : tensor<24x50xbf16>, tensor<50x40xbf16>) outs(%i : tensor<24x40xf32>) -> tensor<24x40xf32>
  %x3 = tensor.expand_shape %r [[0,1],[2]] output_shape [4,6,40] : tensor<24x40xf32> into tensor<4x6x40xf32>
  %g = linalg.generic {indexing_maps=[affine_map<(a,b,c)->(a,b,c)>,affine_map<(a,b,c)->(a,b,c)>], iterator_types=["parallel","parallel","parallel"]}
      ins(%x3 : tensor<4x6x40xf32>) outs(%res : tensor<4x6x40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x6x40xf32>
  return %g : tensor<4x6x40xf32>
}

// Attention scores on [B,T,H,D] with causal mask and scale.
// CHECK: @scores: {{.*}} ok
func.func private @scores(%q: tensor<2x19x3x16xf32>, %k: tensor<2x19x3x16xf32>, %s: tensor<2x3x19x19xf32> {fsdp.out = 0 : i64})
    -> tensor<2x3x19x19xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x19x19xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x3x19x19xf32>) -> tensor<2x3x19x19xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b,h,i,j,d)->(b,i,h,d)>, affine_map<(b,h,i,j,d)->(b,j,h,d)>, affine_map<(b,h,i,j,d)->(b,h,i,j)>]
      ins(%q, %k : tensor<2x19x3x16xf32>, tensor<2x19x3x16xf32>) outs(%i : tensor<2x3x19x19xf32>) -> tensor<2x3x19x19xf32>
  %g = linalg.generic {indexing_maps=[affine_map<(a,b,c,d)->(a,b,c,d)>,affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types=["parallel","parallel","parallel","parallel"]}
      ins(%r : tensor<2x3x19x19xf32>) outs(%e : tensor<2x3x19x19xf32>) {
  ^bb0(%a: f32, %o: f32):
    %sc = arith.constant 0.25 : f32
    %ninf = arith.constant -1.0e9 : f32
    %ii = linalg.index 2 : index
    %jj = linalg.index 3 : index
    %c = arith.cmpi sle, %jj, %ii : index
    %m = arith.mulf %a, %sc : f32
    %y = arith.select %c, %m, %ninf : f32
    linalg.yield %y : f32
  } -> tensor<2x3x19x19xf32>
  return %g : tensor<2x3x19x19xf32>
}

// Context back to [B,T,H,D].
// CHECK: @context: {{.*}} ok
func.func private @context(%p: tensor<2x3x19x19xf32>, %v: tensor<2x19x3x16xf32>, %s: tensor<2x19x48xf32> {fsdp.out = 0 : i64})
    -> tensor<2x19x48xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x19x3x16xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x19x3x16xf32>) -> tensor<2x19x3x16xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b,h,i,d,j)->(b,h,i,j)>, affine_map<(b,h,i,d,j)->(b,j,h,d)>, affine_map<(b,h,i,d,j)->(b,i,h,d)>]
      ins(%p, %v : tensor<2x3x19x19xf32>, tensor<2x19x3x16xf32>) outs(%i : tensor<2x19x3x16xf32>) -> tensor<2x19x3x16xf32>
  %c = tensor.collapse_shape %r [[0],[1],[2,3]] : tensor<2x19x3x16xf32> into tensor<2x19x48xf32>
  return %c : tensor<2x19x48xf32>
}

// Projection to [B,H,T,D]: the columns have two digits.
// CHECK: @heads: {{.*}} ok
func.func private @heads(%x: tensor<2x40x30xf32>, %w: tensor<30x4x64xf32>, %s: tensor<2x4x40x64xf32> {fsdp.out = 0 : i64})
    -> tensor<2x4x40x64xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x40x64xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x4x40x64xf32>) -> tensor<2x4x40x64xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b,h,t,d,c)->(b,t,c)>, affine_map<(b,h,t,d,c)->(c,h,d)>, affine_map<(b,h,t,d,c)->(b,h,t,d)>]
      ins(%x, %w : tensor<2x40x30xf32>, tensor<30x4x64xf32>) outs(%i : tensor<2x4x40x64xf32>) -> tensor<2x4x40x64xf32>
  return %r : tensor<2x4x40x64xf32>
}

// Weight gradient over two reduction dimensions that cannot be collapsed.
// CHECK: @wgrad: {{.*}} ok
func.func private @wgrad(%x: tensor<3x17x30xf32>, %dy: tensor<3x4x17x9xf32>, %dw: tensor<30x4x9xf32> {fsdp.inout = 0 : i64})
    -> tensor<30x4x9xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(c,h,d,b,t)->(b,t,c)>, affine_map<(c,h,d,b,t)->(b,h,t,d)>, affine_map<(c,h,d,b,t)->(c,h,d)>]
      ins(%x, %dy : tensor<3x17x30xf32>, tensor<3x4x17x9xf32>) outs(%dw : tensor<30x4x9xf32>) -> tensor<30x4x9xf32>
  return %r : tensor<30x4x9xf32>
}

// A transposed result through the epilogue, cast inputs, and a mask of i1.
// CHECK: @transposed: {{.*}} ok
func.func private @transposed(%x: tensor<21x30xbf16>, %w: tensor<18x30xf32>, %mask: tensor<18x21xi1>, %y: tensor<18x21xf32> {fsdp.out = 0 : i64})
    -> tensor<18x21xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<30x21xf32>
  %xf = linalg.generic {indexing_maps=[affine_map<(i,j)->(j,i)>, #id2], iterator_types=["parallel","parallel"]}
      ins(%x : tensor<21x30xbf16>) outs(%xe : tensor<30x21xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %two = arith.constant 2.0 : f32
    %ff = arith.mulf %f, %two : f32
    linalg.yield %ff : f32
  } -> tensor<30x21xf32>
  %e = tensor.empty() : tensor<21x18xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<21x18xf32>) -> tensor<21x18xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>]
      ins(%xf, %w : tensor<30x21xf32>, tensor<18x30xf32>) outs(%i : tensor<21x18xf32>) -> tensor<21x18xf32>
  %e2 = tensor.empty() : tensor<18x21xf32>
  %g = linalg.generic {indexing_maps=[affine_map<(i,j)->(j,i)>, #id2, #id2], iterator_types=["parallel","parallel"]}
      ins(%r, %mask : tensor<21x18xf32>, tensor<18x21xi1>) outs(%e2 : tensor<18x21xf32>) {
  ^bb0(%a: f32, %c: i1, %o: f32):
    %zz = arith.constant 0.0 : f32
    %y1 = arith.select %c, %a, %zz : f32
    linalg.yield %y1 : f32
  } -> tensor<18x21xf32>
  return %g : tensor<18x21xf32>
}

// The result is stored in both orders.
// CHECK: @both: {{.*}} ok
func.func private @both(%x: tensor<21x300xf32>, %w: tensor<300x18xf32>, %y: tensor<18x21xf32> {fsdp.out = 0 : i64}, %y2: tensor<21x18xi1> {fsdp.out = 1 : i64})
    -> (tensor<18x21xf32>, tensor<21x18xi1>)
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 1.5 : f32
  %e = tensor.empty() : tensor<21x18xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<21x18xf32>) -> tensor<21x18xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>]
      ins(%x, %w : tensor<21x300xf32>, tensor<300x18xf32>) outs(%i : tensor<21x18xf32>) -> tensor<21x18xf32>
  %e2 = tensor.empty() : tensor<18x21xf32>
  %e3 = tensor.empty() : tensor<21x18xi1>
  %g:2 = linalg.generic {indexing_maps=[affine_map<(i,j)->(j,i)>, #id2, affine_map<(i,j)->(j,i)>], iterator_types=["parallel","parallel"]}
      ins(%r : tensor<21x18xf32>) outs(%e2, %e3 : tensor<18x21xf32>, tensor<21x18xi1>) {
  ^bb0(%a: f32, %o: f32, %o2: i1):
    %zz = arith.constant 0.0 : f32
    %y1 = arith.cmpf ogt, %a, %zz : f32
    linalg.yield %a, %y1 : f32, i1
  } -> (tensor<18x21xf32>, tensor<21x18xi1>)
  return %g#0, %g#1 : tensor<18x21xf32>, tensor<21x18xi1>
}

// Dot product, batched; matrix times vector.
// CHECK: @dots: {{.*}} ok
func.func private @dots(%x: tensor<21x300xf32>, %w: tensor<21x300xf32>, %y: tensor<21xf32> {fsdp.out = 0 : i64})
    -> tensor<21xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<21xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<21xf32>) -> tensor<21xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b,k)->(b,k)>, affine_map<(b,k)->(b,k)>, affine_map<(b,k)->(b)>]
      ins(%x, %w : tensor<21x300xf32>, tensor<21x300xf32>) outs(%i : tensor<21xf32>) -> tensor<21xf32>
  return %r : tensor<21xf32>
}
// CHECK: @matvec: {{.*}} ok
func.func private @matvec(%x: tensor<21x300xf32>, %w: tensor<300xf32>, %y: tensor<21xf32> {fsdp.inout = 0 : i64})
    -> tensor<21xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %r = linalg.contract indexing_maps = [affine_map<(b,k)->(b,k)>, affine_map<(b,k)->(k)>, affine_map<(b,k)->(b)>]
      ins(%x, %w : tensor<21x300xf32>, tensor<300xf32>) outs(%y : tensor<21xf32>) -> tensor<21xf32>
  return %r : tensor<21xf32>
}

// The initial value is a broadcast bias; one operand is a slice; the result is rounded to bf16; k has two blocks.
// CHECK: @sliced: {{.*}} ok
func.func private @sliced(%x: tensor<21x9000xf32>, %w: tensor<40x3000xf32>, %b: tensor<40xf32>, %y: tensor<21x40xf32> {fsdp.out = 0 : i64})
    -> tensor<21x40xf32>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %xs = tensor.extract_slice %x[0, 3000] [21, 3000] [1, 1] : tensor<21x9000xf32> to tensor<21x3000xf32>
  %e = tensor.empty() : tensor<21x40xf32>
  %i = linalg.broadcast ins(%b : tensor<40xf32>) outs(%e : tensor<21x40xf32>) dimensions = [0]
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>]
      ins(%xs, %w : tensor<21x3000xf32>, tensor<40x3000xf32>) outs(%i : tensor<21x40xf32>) -> tensor<21x40xf32>
  return %r : tensor<21x40xf32>
}

// 16-bit products of f32 inputs, rounded when packed.
// CHECK: @casted: {{.*}} ok
func.func private @casted(%x: tensor<21x301xf32>, %w: tensor<40x301xbf16>, %y: tensor<21x40xbf16> {fsdp.out = 0 : i64})
    -> tensor<21x40xbf16>
    attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %e = tensor.empty() : tensor<21x301xbf16>
  %xs = linalg.generic {indexing_maps=[#id2, #id2], iterator_types=["parallel","parallel"]}
      ins(%x : tensor<21x301xf32>) outs(%e : tensor<21x301xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %f = arith.truncf %a : f32 to bf16
    linalg.yield %f : bf16
  } -> tensor<21x301xbf16>
  %z = arith.constant 0.0 : bf16
  %ee = tensor.empty() : tensor<21x40xbf16>
  %i = linalg.fill ins(%z : bf16) outs(%ee : tensor<21x40xbf16>) -> tensor<21x40xbf16>
  %r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>]
      ins(%xs, %w : tensor<21x301xbf16>, tensor<40x301xbf16>) outs(%i : tensor<21x40xbf16>) -> tensor<21x40xbf16>
  return %r : tensor<21x40xbf16>
}

