//===- FSDPAllOps.td - Every op of the fsdp dialect --------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collects all ops for the reference page. In C++, FSDP.h and StopGradient.h declare the ops
// separately.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPALLOPS_TD
#define FSDP_IR_FSDPALLOPS_TD

include "fsdp/IR/FSDPOps.td"
include "fsdp/IR/FSDPGradientOps.td"

#endif // FSDP_IR_FSDPALLOPS_TD
