//===- OutputPaths.h - Checks of output paths -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_OUTPUTPATHS_H
#define FSDPRT_TRAIN_OUTPUTPATHS_H

#include "io/OutputLock.h"
#include "train/TrainingOptions.h"

namespace fsdprt {

/// Throws Error if an output of --export, --trace, --profile-file, --metrics, --flight-record or
/// --tensorboard cannot be written. Also throws Error if an output file is also an input file or
/// another output file, or if another process has claimed the output file. While the returned locks
/// exist, other processes cannot claim these files. `cluster` is the input file of --simulate, or
/// empty.
[[nodiscard]] std::vector<OutputLock> checkOutputs(const TrainingOptions &options,
                                                   const std::string &cluster = "");

} // namespace fsdprt

#endif // FSDPRT_TRAIN_OUTPUTPATHS_H
