//===- FSDPGradientOps.td - Ops that the gradient sees -----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPGRADIENTOPS_TD
#define FSDP_IR_FSDPGRADIENTOPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_StopGradientOp : FSDP_Op<"stop_gradient", [Pure, SameOperandsAndResultType]> {
  let summary = "a value that the gradient does not pass";
  let description = [{
    `result = input`. The gradient of `result` is not added to the gradient of `input`: for
    Differentiate the result is a constant (`detach` of PyTorch, `lax.stop_gradient` of JAX).

    Import makes this op of the markers that an exporter writes
    (docs/explanation/guide/models-and-derivatives.md).
    Every stage until Differentiate keeps it. Differentiate replaces each result by its input, so no
    later stage sees the op, and no kernel and no buffer is made for it.

    Folding: a stop of a stop is the first stop; a stop of a splat constant, or of a tensor that is not
    of floats, is its input. A stop of another constant stays: Import may make that constant a parameter.

    Constraint: (C1) the result has the type of the input.

    ```mlir
    %held = fsdp.stop_gradient %x : tensor<4x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasFolder = 1;
}

#endif // FSDP_IR_FSDPGRADIENTOPS_TD
