//===- FSDPAllOps.td - Every op of the fsdp dialect --------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Includes the definitions of all ops. TableGen generates the reference page from this file. In
// C++, FSDP.h declares all ops except fsdp.stop_gradient, which StopGradient.h declares.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPALLOPS_TD
#define FSDP_IR_FSDPALLOPS_TD

include "fsdp/IR/FSDPOps.td"
include "fsdp/IR/FSDPGradientOps.td"

#endif // FSDP_IR_FSDPALLOPS_TD
