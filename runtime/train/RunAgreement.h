//===- RunAgreement.h - Options that must be equal on all ranks -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines a text that contains the options of a run and hashes of its input files. Ranks in
// different processes compare their texts before they allocate memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RUNAGREEMENT_H
#define FSDPRT_TRAIN_RUNAGREEMENT_H

#include "train/TrainingOptions.h"

namespace fsdprt {

/// A file whose content must be equal on all ranks.
struct Content {
  std::string name;       ///< name of the option, such as "--text"
  std::string comparison; ///< size and hash of the content
  std::string path;       ///< path of the file, for messages; it may differ between ranks
};

/// Returns the text of this rank for fsdprt_session_options::agreement (core/Agreement.h).
std::string agreementOf(const TrainingOptions &options, double lr, uint64_t samples,
                        uint64_t stepsBefore, const std::vector<Content> &contents);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RUNAGREEMENT_H
