// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-check-marks

func.func @good(%a: tensor<4xf32> {fsdp.param = "a", fsdp.init = #fsdp.init<normal, 0.0, 0.02>, fsdp.frozen},
                %b: tensor<4xf32> {fsdp.param, fsdp.unit = "rest"}, %c: tensor<4xi8> {fsdp.batch = "c", fsdp.limit = 128 : i64},
                %d: tensor<4xf32> {fsdp.param = "d", fsdp.init = #fsdp.init<uniform, -1.0, 1.0>}) {
  return
}

// -----

// expected-error @+1 {{argument 0 has the unknown attribute 'fsdp.bogus'; expected fsdp.param, fsdp.batch, fsdp.init, fsdp.frozen, fsdp.unit, fsdp.limit or fsdp.key}}
func.func @bad(%a: tensor<4xf32> {fsdp.bogus},
  // expected-error @+1 {{argument 1 expected 'fsdp.param' to be a name, such as "h.0.weight", found ""}}
  %b: tensor<4xf32> {fsdp.param = ""},
  // expected-error @+1 {{argument 2 expected 'fsdp.batch' to be a name, such as "h.0.weight", found 3 : i64}}
  %c: tensor<4xf32> {fsdp.batch = 3},
  // expected-error @+1 {{argument 3 expected 'fsdp.init' to be such as #fsdp.init<normal, 0.0, 0.02> or #fsdp.init<constant, 1.0, 0.0>, found "zeros"}}
  %d: tensor<4xf32> {fsdp.param = "d", fsdp.init = "zeros"},
  // expected-error @+1 {{argument 4 expected 'fsdp.init' to have a standard deviation of at least 0}}
  %e: tensor<4xf32> {fsdp.param = "e", fsdp.init = #fsdp.init<normal, 0.0, -1.0>},
  // expected-error @+1 {{argument 5 expected 'fsdp.init' to have finite numbers}}
  %f: tensor<4xf32> {fsdp.param = "f", fsdp.init = #fsdp.init<normal, 0x7FF8000000000000, 1.0>},
  // expected-error @+1 {{argument 6 expected 'fsdp.limit' to be an integer of at least 1, found "x"}}
  %g: tensor<4xi64> {fsdp.batch = "g", fsdp.limit = "x"},
  // expected-error @+1 {{argument 7 expected 'fsdp.limit' to be an integer of at least 1 and at most 128, the greatest limit of ids of i8, found 300 : i64}}
  %h: tensor<4xi8> {fsdp.batch = "h", fsdp.limit = 300 : i64},
  // expected-error @+1 {{argument 8 expected either 'fsdp.param' or 'fsdp.batch', found both}}
  %i: tensor<4xf32> {fsdp.batch = "i", fsdp.param = "i"},
  // expected-error @+1 {{argument 9 expected 'fsdp.frozen' to have no value, found true}}
  %j: tensor<4xf32> {fsdp.param = "j", fsdp.frozen = true},
  // expected-error @+1 {{argument 10 expected 'fsdp.init' to have a lower bound that is at most the upper one}}
  %k: tensor<4xf32> {fsdp.param = "k", fsdp.init = #fsdp.init<uniform, 1.0, 0.0>},
  // expected-error @+1 {{argument 11 is a parameter, but 'fsdp.limit' is for batch arguments: parameters are not checked before each step}}
  %l: tensor<4xi64> {fsdp.param = "l", fsdp.limit = 4 : i64},
  %m: tensor<i64> {fsdp.key = "seed"},
  // expected-error @+1 {{argument 13 expected 'fsdp.key' to be "seed", "step" or "sample", found "epoch"}}
  %n: tensor<i64> {fsdp.key = "epoch"},
  // expected-error @+1 {{argument 14 expected tensor<i64>, as 'fsdp.key' is one number, found 'tensor<4xi32>'}}
  %o: tensor<4xi32> {fsdp.key = "step"},
  // expected-error @+1 {{argument 15 expected 'fsdp.key' alone, found 'fsdp.batch' beside it}}
  %p: tensor<i64> {fsdp.batch = "p", fsdp.key = "sample"}) {
  return
}
