//===- FSDPOps.td - All ops of the fsdp dialect ------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPOPS_TD
#define FSDP_IR_FSDPOPS_TD

include "fsdp/IR/FSDPShardingOps.td"
include "fsdp/IR/FSDPTensorOps.td"
include "fsdp/IR/FSDPDispatchOps.td"
include "fsdp/IR/FSDPAttentionOps.td"
include "fsdp/IR/FSDPProgramOps.td"

#endif // FSDP_IR_FSDPOPS_TD
