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

/// The name of a kernel's attribute that selects the order of blocks, for tuning and tests.
/// In the forward pass, its value is "sections:4" (4 heads together) or "pairs". In the backward
/// pass, its value is "single" or "pairs". Two numbers may follow, as in "pairs:2/4": how many
/// heads or pairs are processed together, and into how many parts the query heads are divided.
inline constexpr StringLiteral attentionOrderAttr = "fsdp.attention_order";

/// Returns the order of the blocks of queries. If the kernel has the attribute, the attribute
/// selects the order. Otherwise, the function selects the order that is fastest according to the
/// model. Emits an error if the order that the attribute selects is not possible.
FailureOr<QueryOrder> chooseSm90Order(AttentionOp op, const Sm90Config &config, const Shape &shape,
                                      const GpuTarget &target);
/// Selects and returns the order of the blocks of keys in the same way.
FailureOr<KeyOrder> chooseSm90KeyOrder(AttentionGradOp op, const Sm90Keys &config,
                                       const Shape &shape, const GpuTarget &target);

/// Returns the order of the blocks of keys that is fastest according to the model.
KeyOrder chooseFastestOrder(AttentionGradOp op, const Sm90Keys &config, const Shape &shape,
                            const GpuTarget &target);

/// Return the costs of the launches of the forward pass, and of dK and dV.
GpuCost costOfForward(AttentionOp op, const Sm90Config &config, const Shape &shape,
                      const QueryOrder &order, const GpuTarget &target);
GpuCost costOfKeys(AttentionGradOp op, const Sm90Keys &config, const Shape &shape,
                   const KeyOrder &order, const GpuTarget &target);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ORDERS_H
