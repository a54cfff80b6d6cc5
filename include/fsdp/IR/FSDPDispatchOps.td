//===- FSDPDispatchOps.td - Regions that become kernels ----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPDISPATCHOPS_TD
#define FSDP_IR_FSDPDISPATCHOPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_DispatchOp : FSDP_Op<"dispatch", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "a region that becomes one kernel";
  let description = [{
    The block arguments are the operands, in order, and `fsdp.yield` gives the results. `inplace[i]
    = j` means that result i overwrites operand j, whose value must not be read afterwards. The
    value -1 means that result i has a separate buffer. The region computes on tensors and reads no
    value from outside except the operands.

    Constraints:

    - (C1) Block arguments have the types of the operands.
    - (C2) Yielded values have the types of the results.
    - (C3) `inplace` has one entry per result: -1, or the index of an operand of the result's
      type. No index occurs twice.
    - (C4) All types are static ranked tensors.

    ```mlir
    %y = fsdp.dispatch (%a, %b) inplace [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%x: tensor<8xf32>, %z: tensor<8xf32>):
      ...
      fsdp.yield %sum : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$inplace);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `inplace` $inplace attr-dict `:` functional-type($inputs, $outputs) $body
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def FSDP_YieldOp : FSDP_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "return the results of a dispatch, or of a region of attention";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

#endif // FSDP_IR_FSDPDISPATCHOPS_TD
