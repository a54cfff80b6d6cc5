//===- AttentionIdioms.h - Names for functions of attention -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_ATTENTIONIDIOMS_H
#define FSDP_ANALYSIS_ATTENTIONIDIOMS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// What mask_mod keeps, in the words of the field: "causal, window of 256 or 4 sink keys". For
/// people: kernels take bounds (AttentionTiles.h). Empty: everything.
std::string nameMask(AttentionOp op);

/// What score_mod does, from the score outwards: "softcap 30, ALiBi". Empty: nothing.
std::string nameScore(AttentionOp op);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ATTENTIONIDIOMS_H
