//===- FSDPProgramOps.td - The step as data ----------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPPROGRAMOPS_TD
#define FSDP_IR_FSDPPROGRAMOPS_TD

include "fsdp/IR/FSDPBase.td"

#endif // FSDP_IR_FSDPPROGRAMOPS_TD
