//===- RunAgreement.h - What all ranks of a run have to be asked alike -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks of several processes compare options and the content of their inputs before they take
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RUNAGREEMENT_H
#define FSDPRT_TRAIN_RUNAGREEMENT_H

#include "train/TrainingOptions.h"

namespace fsdprt {

/// A file whose content has to be the same on all ranks.
struct Content {
  std::string name;       ///< "--text"
  std::string comparison; ///< of the content: size and hash
  std::string path;       ///< for messages: it may differ between ranks
};

/// Returns the text that processes compare, as fsdprt_session_options has it: see core/Agreement.h.
std::string agreementOf(const TrainingOptions &options, double lr, uint64_t samples,
                        uint64_t stepsBefore, const std::vector<Content> &contents);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RUNAGREEMENT_H
