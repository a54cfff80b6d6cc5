// RUN: fsdp-opt %s --fsdp-verify-dtypes -verify-diagnostics -split-input-file
// RUN: not fsdp-opt %s -split-input-file --fsdp-verify-dtypes=reduce-dtype=int8 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: reduce-dtype: expected f32, f64, bf16 or f16, found 'int8'
// RUN: fsdp-opt %S/Inputs/narrow-state.mlir --fsdp-verify-dtypes=optimizer-state-dtype=bf16 -o /dev/null
// RUN: not fsdp-opt %S/Inputs/narrow-state.mlir --fsdp-verify-dtypes 2>&1 | FileCheck %s --check-prefix=STATE
// STATE: error: optimizer state 'momentum' of unit 'u': expected 'f32' or wider, found 'bf16'
// STATE-NOT: error
// RUN: sed 's/momentum/master/' %S/Inputs/narrow-state.mlir | not fsdp-opt - --fsdp-verify-dtypes=optimizer-state-dtype=bf16 2>&1 | FileCheck %s --check-prefix=MASTER
// MASTER: error: optimizer state 'master' of unit 'u': expected 'f32' or wider, found 'bf16'

// The program has one forbidden narrowing of each kind. Each is reported at its op.

#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [2]>]
// expected-note@+1 {{for unit 'u'}}
fsdp.unit @u shards 2 x 64 : bf16 reshard true [#fsdp.param<"w", tensor<128xbf16>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
func.func @step(%p: tensor<64xbf16> {fsdp.unit = @u, fsdp.state = "parameter"}, %master: tensor<64xf32> {fsdp.unit = @u, fsdp.state = "master"},
                %block: tensor<16xf32> {fsdp.block}, %g: tensor<128xf32>, %l: tensor<f32>)
    -> (tensor<64xbf16> {fsdp.updates = 0 : i64}, tensor<64xf32> {fsdp.updates = 1 : i64}, tensor<16xf32> {fsdp.updates = 2 : i64})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %zero = arith.constant 0.0 : f32
  %e16 = tensor.empty() : tensor<128xbf16>
  %g16 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%g : tensor<128xf32>) outs(%e16 : tensor<128xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<128xbf16>
  // expected-error@+1 {{gradient reduction over ranks: expected 'f32' or wider, found 'bf16' in 'fsdp.reduce_scatter' of '@step'}}
  %own = fsdp.reduce_scatter @u avg params [0] (%g16) : (tensor<128xbf16>) -> tensor<64xf32>
  %e32 = tensor.empty() : tensor<64xf32>
  // expected-error@+1 {{gradient rounded: expected 'f32' or wider, found 'bf16' in 'linalg.generic' of '@step'}}
  %shard = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%own : tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.truncf %in : f32 to bf16
    %1 = arith.extf %0 : bf16 to f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %s0 = tensor.empty() : tensor<bf16>
  %zero16 = arith.constant 0.0 : bf16
  %s1 = linalg.fill ins(%zero16 : bf16) outs(%s0 : tensor<bf16>) -> tensor<bf16>
  // expected-error@+2 {{norm arithmetic: expected 'f32' or wider, found 'bf16'}}
  // expected-error@+1 {{norm accumulation: expected 'f32' or wider, found 'bf16'}}
  %sum = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%shard : tensor<64xf32>) outs(%s1 : tensor<bf16>) {
  ^bb0(%in: f32, %out: bf16):
    %sq = arith.mulf %in, %in : f32
    %w = arith.extf %out : bf16 to f32
    %0 = arith.addf %w, %sq : f32
    %1 = arith.truncf %0 : f32 to bf16
    linalg.yield %1 : bf16
  } -> tensor<bf16>
  // expected-error@+1 {{norm reduction over ranks: expected 'f32' or wider, found 'bf16'}}
  %all = fsdp.all_reduce %sum @mesh ["shard"] sum : tensor<bf16>
  %next = linalg.generic {indexing_maps = [#none, #none, #id], iterator_types = ["parallel"]} ins(%l, %all : tensor<f32>, tensor<bf16>) outs(%block : tensor<16xf32>) {
  ^bb0(%in: f32, %n: bf16, %out: f32):
    %0 = arith.extf %n : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  // The rounding of the master to the new parameter is allowed, the bf16 subtraction is not.
  // expected-error@+1 {{optimizer arithmetic: expected 'f32' or wider, found 'bf16'}}
  %new:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%shard : tensor<64xf32>) outs(%p, %master : tensor<64xbf16>, tensor<64xf32>) {
  ^bb0(%in: f32, %old: bf16, %m: f32):
    %a = arith.truncf %in : f32 to bf16
    %b = arith.subf %old, %a : bf16
    %c = arith.extf %b : bf16 to f32
    %d = arith.truncf %m : f32 to bf16
    linalg.yield %d, %c : bf16, f32
  } -> (tensor<64xbf16>, tensor<64xf32>)
  return %new#0, %new#1, %next : tensor<64xbf16>, tensor<64xf32>, tensor<16xf32>
}

// -----

// Narrow parameters without masters, narrow moments, and sums over micro-batches in bf16.
#id = affine_map<(d0) -> (d0)>
fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [1]>]
fsdp.unit @u shards 1 x 64 : bf16 reshard true [#fsdp.param<"w", tensor<64xbf16>, 0, trainable = true, decay = false, init = <constant, 0.0, 0.0>>]
// expected-warning@+1 {{unit 'u': parameters are updated in 'bf16' without f32 masters: steps smaller than their last digit are lost, and weight decay with them; keep masters (--param-storage=master or both)}}
func.func @step(%p: tensor<64xbf16> {fsdp.unit = @u, fsdp.state = "parameter"},
                // expected-error@+1 {{optimizer state 'first_moment' of unit 'u': expected 'f32' or wider, found 'bf16'}}
                %m: tensor<64xbf16> {fsdp.unit = @u, fsdp.state = "first_moment"}, %g: tensor<64xbf16>)
    -> (tensor<64xbf16> {fsdp.updates = 0 : i64}, tensor<64xbf16> {fsdp.updates = 1 : i64})
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{accumulation over micro-batches: expected 'f32' or wider, found 'bf16'}}
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %g) -> (tensor<64xbf16>) {
    scf.yield %s : tensor<64xbf16>
  }
  %new:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%sum : tensor<64xbf16>) outs(%p, %m : tensor<64xbf16>, tensor<64xbf16>) {
  ^bb0(%in: bf16, %old: bf16, %mo: bf16):
    linalg.yield %in, %in : bf16, bf16
  } -> (tensor<64xbf16>, tensor<64xbf16>)
  return %new#0, %new#1 : tensor<64xbf16>, tensor<64xbf16>
}
