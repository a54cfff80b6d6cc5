//===- OutputPaths.h - Where results may go ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Asked before the training whose results they take.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_OUTPUTPATHS_H
#define FSDPRT_TRAIN_OUTPUTPATHS_H

#include "io/OutputLock.h"
#include "train/TrainingOptions.h"

namespace fsdprt {

/// Throws Error when --export, --trace, --metrics or --tensorboard cannot be written, or would
/// destroy an input or each other, or are those of another process. The files are this process's as
/// long as the claims live.
/// `cluster`: another input, of --simulate, or empty.
[[nodiscard]] std::vector<OutputLock> checkOutputs(const TrainingOptions &options,
                                                   const std::string &cluster = "");

} // namespace fsdprt

#endif // FSDPRT_TRAIN_OUTPUTPATHS_H
