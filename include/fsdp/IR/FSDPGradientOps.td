//===- FSDPGradientOps.td - Ops that the gradient sees -----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPGRADIENTOPS_TD
#define FSDP_IR_FSDPGRADIENTOPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_StopGradientOp : FSDP_Op<"stop_gradient", [Pure, SameOperandsAndResultType]> {
  let summary = "a value that passes no gradient to its input";
  let description = [{
    `result = input`. The gradient of `result` is not added to the gradient of `input`:
    Differentiate treats the result as a constant, like `detach` of PyTorch and
    `lax.stop_gradient` of JAX.

    Import creates this op from the markers that an exporter writes
    (docs/explanation/guide/models-and-derivatives.md). The stages before Differentiate keep the op.
    Differentiate replaces each result by its input, so that later stages need no kernel and no
    buffer for the op.

    Folding: `stop_gradient(stop_gradient(x))` becomes `stop_gradient(x)`. A `stop_gradient` of a
    splat constant, or of a tensor without floats, becomes its input. A `stop_gradient` of any
    other constant is not folded, because Import may make that constant a parameter.

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
