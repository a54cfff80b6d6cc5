// Passes keep nothing from one module to the next: names of parameters, tables of constants, ranges of ids.
// RUN: env MALLOC_PERTURB_=165 fsdp-opt %s --mlir-disable-threading --pass-pipeline='builtin.module(builtin.module(fsdp-bind-buffers,fsdp-lift-parameters,func.func(fsdp-drop-asserts,fsdp-bound-ids)))' | FileCheck %s

// CHECK-COUNT-2: func.func @loss(%{{.*}}: tensor<3x3xf32> {fsdp.param = "w"}
module {
  module {
    func.func @loss(%w: tensor<3x3xf32> {fsdp.param = "w"}, %i: tensor<2xi64> {fsdp.batch = "i", fsdp.limit = 3 : i64}) -> (tensor<3x3xf32>, tensor<3x3xi1>) {
      %m = arith.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
      return %w, %m : tensor<3x3xf32>, tensor<3x3xi1>
    }
  }
  module {
    func.func @loss(%w: tensor<3x3xf32> {fsdp.param = "w"}, %i: tensor<2xi64> {fsdp.batch = "i", fsdp.limit = 3 : i64}) -> (tensor<3x3xf32>, tensor<3x3xi1>) {
      %m = arith.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
      return %w, %m : tensor<3x3xf32>, tensor<3x3xi1>
    }
  }
}
