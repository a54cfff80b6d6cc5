//===- AttentionIdioms.h - Names for functions of attention -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_ATTENTIONIDIOMS_H
#define FSDP_ANALYSIS_ATTENTIONIDIOMS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Returns the common name of the mask, such as "causal, window of 256 or 4 sink keys". Returns an
/// empty name if mask_mod keeps all scores. Only messages contain the name.
std::string nameMask(AttentionOp op);

/// Returns the names of the operations that score_mod applies to the score, in the order in which
/// score_mod applies them, such as "softcap 30, ALiBi". Returns an empty string if score_mod does
/// not change the score.
std::string nameScore(AttentionOp op);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ATTENTIONIDIOMS_H
