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

/// Attribute of a kernel that selects the order of blocks, for tuning and tests. Forward:
/// "sections:4" (4 heads together) or "pairs". Backward: "single" or "pairs", optionally with the
/// number of heads or pairs that are processed together, and the number of parts of the query
/// heads, as in "pairs:2/4".
inline constexpr StringLiteral attentionOrderAttr = "fsdp.attention_order";

/// Returns the order of the blocks of queries that is fastest in the model, or the order that the
/// kernel's attribute selects. Emits an error if the attribute's order is not possible.
FailureOr<QueryOrder> chooseSm90Order(AttentionOp op, const Sm90Config &config, const Shape &shape,
                                      const GpuTarget &target);
/// Returns the order of the blocks of keys, chosen like chooseSm90Order().
FailureOr<KeyOrder> chooseSm90KeyOrder(AttentionGradOp op, const Sm90Keys &config,
                                       const Shape &shape, const GpuTarget &target);

/// Returns the work of the kernel of dK and dV, with which the model chooses the kernel's order.
KeyWork workOfKeys(AttentionGradOp op, const Sm90Keys &config, const Shape &shape);
/// Returns the clocks of the tiles of a head, indexed by row block.
SmallVector<double> clocksOfTiles(AttentionOp op, const Sm90Config &config, const Shape &shape);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ORDERS_H
