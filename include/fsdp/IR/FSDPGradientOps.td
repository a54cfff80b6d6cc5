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

def FSDP_ReduceCotangentOp : FSDP_Op<"reduce_cotangent", [Pure, SameOperandsAndResultType,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a value that is equal on all ranks of an axis, for ops that are split over the axis";
  let description = [{
    `result = input`. All ranks of a group along `axes` have the same input. The ops that read the
    result are split over the axes, so the cotangent of the result on one rank is only a part of the
    cotangent. The cotangent of the input is the sum of these parts:

    ```
      forward     y = x
      backward    x̄ += all_reduce(ȳ) over axes, sum
    ```

    Its counterpart is the `fsdp.all_reduce` of a partial sum. That op adds in the forward, and its
    adjoint is the identity, because every rank has the whole cotangent of the sum.

    The pass `fsdp-partition-tensors` inserts both ops. Differentiate replaces each
    `fsdp.reduce_cotangent` by its input, so that later stages need no kernel and no buffer for it.

    The pass also marks parameters of which a rank has only a slice. The argument of such a
    parameter, and its unit, have the attribute `fsdp.tensor_split`. Its value on an argument is
    `array<i64: D, B0, B1, ..>`: dimension D of the whole parameter consists of blocks of B0, B1, ..
    elements, and a rank has 1/T of each block, for T ranks on the axis `tensor`. The value on a
    unit is a dictionary of such arrays, by the names of its parameters.

    Constraints: (C1) `mesh` names an `fsdp.mesh`; (C2) each element of `axes` names an axis of the
    mesh, and no axis occurs twice; (C3) the result has the type of the input.

    ```mlir
    %y = fsdp.reduce_cotangent %x @mesh ["tensor"] : tensor<32x64xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "$input $mesh $axes attr-dict `:` type($input)";
}

def FSDP_ShareCotangentOp : FSDP_Op<"share_cotangent", [Pure, SameOperandsAndResultType,
                                    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a value whose cotangent the ranks of an axis compute in parts, for ops that all ranks run";
  let description = [{
    `result = input`. The n ranks of a group along `axes` have the same input, and the cotangent of
    the input is a sum over these ranks, as that of a parameter over the axis `context`. All ranks
    have the same cotangent of the result, so each of them contributes one part of n:

    ```
      forward     y = x
      backward    x̄ += ȳ · 1/n
    ```

    Constraints: as of `fsdp.reduce_cotangent`.

    ```mlir
    %y = fsdp.share_cotangent %x @mesh ["context"] : tensor<64x2xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "$input $mesh $axes attr-dict `:` type($input)";
}

#endif // FSDP_IR_FSDPGRADIENTOPS_TD
