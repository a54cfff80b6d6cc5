//===- Sm90Orders.h - Orders of attention blocks with wgmma -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ORDERS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ORDERS_H

#include "Sm80Backward.h"
#include "Sm90Attention.h"
#include "fsdp/Analysis/Gpu/AttentionOrder.h"

namespace mlir::fsdp::attention {

/// Attribute of a kernel that selects its order, for tuning and tests: "sections:4" (heads) or
/// "pairs" forward; "single" or "pairs" backward, perhaps with heads or pairs together and parts of
/// the query heads: "pairs:2/4".
inline constexpr StringLiteral attentionOrderAttr = "fsdp.attention_order";

/// Returns the order of the blocks of queries that ends first on the chip, or the one that the
/// kernel's attribute selects. Emits an error if that is not possible.
FailureOr<QueryOrder> chooseSm90Order(AttentionOp op, const Sm90Config &config, const Shape &shape,
                                      const GpuTarget &target);
/// Returns the same for the blocks of keys.
FailureOr<KeyOrder> chooseSm90KeyOrder(AttentionGradOp op, const Sm90Keys &config,
                                       const Shape &shape, const GpuTarget &target);

/// Return the costs of the launches of the forward pass, and of dK and dV.
GpuCost costOfForward(AttentionOp op, const Sm90Config &config, const Shape &shape,
                      const QueryOrder &order, const GpuTarget &target);
GpuCost costOfKeys(AttentionGradOp op, const Sm90Keys &config, const Shape &shape,
                   const KeyOrder &order, const GpuTarget &target);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ORDERS_H
