// RUN: fsdp-opt %s --fsdp-verify-imported --split-input-file --verify-diagnostics

// Integer ops that end the process or are undefined.
#id = affine_map<(d0) -> (d0)>
func.func @loss(%w: tensor<8xf32> {fsdp.param = "w", fsdp.init = #fsdp.init<constant, 1.0, 0.0>}) -> tensor<f32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %wide = arith.constant 70 : index
    %fine = arith.divui %i, %four : index
    %least = arith.maxsi %fine, %one : index
    %alsoFine = arith.remsi %i, %least : index
    // expected-error @below {{'arith.divsi' has a divisor that may be 0; expected a constant other than 0, or arith.maxsi of it and 1}}
    %a = arith.divsi %i, %fine : index
    // expected-error @below {{'arith.remui' divides by 0}}
    %b = arith.remui %i, %zero : index
    // expected-error @below {{'arith.shli' shifts 64 bits by 70; expected less than 64}}
    %c = arith.shli %i, %wide : index
    linalg.yield %x : f32
  } -> tensor<8xf32>
  %z = arith.constant 0.0 : f32
  %t = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%t : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%y : tensor<8xf32>) outs(%f : tensor<f32>) {
  ^bb0(%x: f32, %o: f32):
    %sum = arith.addf %o, %x : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}
