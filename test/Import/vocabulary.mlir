// Other ops that exporters emit, in one function: the value of every op is preserved.
// RUN: fsdp-opt %s --fsdp-import="params=0-2 batch=3=x,4=tokens" 2>/dev/null | FileCheck %s
// RUN: %python %S/Inputs/same-values.py %s params=0-2 batch=3=x,4=tokens

// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor.generate
// CHECK-NOT: tensor.reshape
// CHECK-NOT: tensor.dim
// CHECK-NOT: linalg.{{map|dot|matvec|vecmat|transpose|broadcast|reduce|elementwise}}
// CHECK-NOT: tensor<?
// CHECK: return
#id2 = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%w: tensor<4x6xf32>, %b: tensor<6xf32>, %s: tensor<1xf32>, %x: tensor<4x6xf32>, %pos: tensor<4xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.000000e-01 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x6xf32>

  // gelu with erf, one body
  %gelu = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.constant 0.707106769 : f32
    %m = arith.mulf %a, %r : f32
    %f = math.erf %m : f32
    %p = arith.addf %f, %one : f32
    %h = arith.mulf %p, %half : f32
    %g = arith.mulf %a, %h : f32
    linalg.yield %g : f32
  } -> tensor<4x6xf32>

  // insert_slice, pad, extract_slice, concat, cast to a dynamic type and back
  %head = tensor.extract_slice %gelu[0, 0] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  %odd = tensor.extract_slice %x[0, 1] [4, 3] [1, 2] : tensor<4x6xf32> to tensor<4x3xf32>
  %joined = tensor.concat dim(1) %odd, %head : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  %inserted = tensor.insert_slice %head into %joined[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x6xf32>
  %padded = tensor.pad %inserted low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %half : f32
  } : tensor<4x6xf32> to tensor<4x8xf32>
  %loose = tensor.cast %padded : tensor<4x8xf32> to tensor<?x8xf32>
  %tight = tensor.cast %loose : tensor<?x8xf32> to tensor<4x8xf32>
  %middle = tensor.extract_slice %tight[0, 1] [4, 6] [1, 1] : tensor<4x8xf32> to tensor<4x6xf32>

  // generate, reshape, dim, splat, from_elements
  %rows = tensor.dim %middle, %c0 : tensor<4x6xf32>
  %counted = tensor.generate {
  ^bb0(%i: index, %j: index):
    %sum = arith.addi %i, %j : index
    %n = arith.addi %sum, %rows : index
    %int = arith.index_cast %n : index to i32
    %f = arith.sitofp %int : i32 to f32
    tensor.yield %f : f32
  } : tensor<4x6xf32>
  %to = arith.constant dense<[6, 4]> : tensor<2xindex>
  %turned = tensor.reshape %counted(%to) : (tensor<4x6xf32>, tensor<2xindex>) -> tensor<6x4xf32>
  %back = linalg.transpose ins(%turned : tensor<6x4xf32>) outs(%e : tensor<4x6xf32>) permutation = [1, 0]
  %halves = tensor.splat %half : tensor<4x6xf32>

  // named ops, elementwise on tensors, captured scalars
  %scale = tensor.extract %s[%c0] : tensor<1xf32>
  %mix = linalg.generic {indexing_maps = [#id2, #id2, #id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%middle, %back, %halves : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
    %a = arith.mulf %q, %r : f32
    %c = arith.addf %p, %a fastmath<fast> : f32
    %d = arith.mulf %c, %scale : f32
    linalg.yield %d : f32
  } -> tensor<4x6xf32>
  %abs = math.absf %mix : tensor<4x6xf32>
  %l1 = math.log1p %abs : tensor<4x6xf32>
  %sin = math.sin %l1 : tensor<4x6xf32>
  %em = math.expm1 %sin : tensor<4x6xf32>
  %mn = arith.minimumf %em, %halves : tensor<4x6xf32>
  %all = arith.addf %mn, %mix : tensor<4x6xf32>
  %lin = linalg.elementwise kind=#linalg.elementwise_kind<mul> ins(%all, %w : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>

  // matvec, vecmat, dot
  %e4 = tensor.empty() : tensor<4xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %mv = linalg.matvec ins(%lin, %b : tensor<4x6xf32>, tensor<6xf32>) outs(%z4 : tensor<4xf32>) -> tensor<4xf32>
  %e6 = tensor.empty() : tensor<6xf32>
  %z6 = linalg.fill ins(%zero : f32) outs(%e6 : tensor<6xf32>) -> tensor<6xf32>
  %vm = linalg.vecmat ins(%mv, %w : tensor<4xf32>, tensor<4x6xf32>) outs(%z6 : tensor<6xf32>) -> tensor<6xf32>
  %e0 = tensor.empty() : tensor<f32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %dot = linalg.dot ins(%vm, %b : tensor<6xf32>, tensor<6xf32>) outs(%z0 : tensor<f32>) -> tensor<f32>

  // a lookup in the last dimension that is not a loss: becomes a masked sum
  %picked = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%pos : tensor<4xi64>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %k : i64 to index
    %v = tensor.extract %lin[%i, %j] : tensor<4x6xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // an index with an offset, as in OPT
  %rowsAt = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, #id2], iterator_types = ["parallel", "parallel"]} ins(%pos : tensor<4xi64>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%k: i64, %o: f32):
    %t = arith.constant 2 : i64
    %kk = arith.addi %k, %t : i64
    %i = arith.index_cast %kk : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%i, %j] : tensor<4x6xf32>
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  %sum1 = linalg.reduce { arith.addf } ins(%picked : tensor<4xf32>) outs(%z0 : tensor<f32>) dimensions = [0]
  %sum2 = linalg.reduce { arith.addf } ins(%rowsAt : tensor<4x6xf32>) outs(%z0 : tensor<f32>) dimensions = [0, 1]
  %p1 = arith.addf %dot, %sum1 : tensor<f32>
  %loss = arith.addf %p1, %sum2 : tensor<f32>
  return %loss : tensor<f32>
}
