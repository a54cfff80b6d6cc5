// Passes keep nothing from one module to the next: names of parameters, tables of constants, ranges of ids.
// RUN: env MALLOC_PERTURB_=165 fsdp-opt %s --mlir-disable-threading --pass-pipeline='builtin.module(builtin.module(fsdp-read-stop-markers,fsdp-bind-buffers,fsdp-lift-parameters,fsdp-read-dropout-markers,func.func(fsdp-refuse-unwritten,fsdp-drop-asserts,fsdp-bound-ids)))' | FileCheck %s

// CHECK-COUNT-2: func.func @loss(%{{.*}}: tensor<3x3xf32> {fsdp.param = "w"}
module {
  module {
    func.func private @fsdp.dropout.0(tensor<2x3xf32>) -> tensor<2x3xf32> attributes {fsdp.dropout = 0.5 : f64}
    func.func @loss(%w: tensor<3x3xf32> {fsdp.param = "w"}, %x: tensor<2x3xf32> {fsdp.batch = "x"}) -> (tensor<2x3xf32>, tensor<3x3xi1>) {
      %m = arith.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
      %d = call @fsdp.dropout.0(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %d, %m : tensor<2x3xf32>, tensor<3x3xi1>
    }
  }
  module {
    func.func private @fsdp.dropout.0(tensor<2x3xf32>) -> tensor<2x3xf32> attributes {fsdp.dropout = 0.5 : f64}
    func.func @loss(%w: tensor<3x3xf32> {fsdp.param = "w"}, %x: tensor<2x3xf32> {fsdp.batch = "x"}) -> (tensor<2x3xf32>, tensor<3x3xi1>) {
      %m = arith.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
      %d = call @fsdp.dropout.0(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %d, %m : tensor<2x3xf32>, tensor<3x3xi1>
    }
  }
}
