//===- TrainingOptions.h - What a training run is asked to do ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Filled in by the command line of fsdp-run, or by another program that trains.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAININGOPTIONS_H
#define FSDPRT_TRAIN_TRAININGOPTIONS_H

#include "io/TokenFile.h"
#include "launch/LaunchOptions.h"
#include <set>
#include <vector>

namespace fsdprt {

struct TrainingOptions : LaunchOptions {
  uint32_t threadsPerRank = 0;
  std::string gemm; ///< who has to compute matrix products of GPUs; empty: any
  bool cudaGraph = false;
  double linkBandwidth = 0;     ///< bytes per second that collectives are slowed down to; 0: not
  std::string offloadDirectory; ///< empty: TMPDIR, or /tmp
  std::string mpiReduce = "ordered";

  std::string data, text;
  TokenType tokenType = TokenType::automatic;
  /// A file of samples for an input of the model.
  struct InputSource {
    std::string name, path;
  };
  std::vector<InputSource> inputs;
  std::vector<std::string> synthetic; ///< inputs that are random beside real data
  /// Returns true if any file has data to train on.
  bool hasData() const { return !data.empty() || !text.empty() || !inputs.empty(); }
  bool overfit = false, otherData = false;
  double extraIds = 0;
  double validationFraction = 0.1;
  uint64_t validateEvery = 0;
  std::optional<uint64_t> validationBatches;

  uint64_t steps = 100;
  std::optional<double> lr, minimumLr;
  uint64_t warmupSteps = 0, decaySteps = 0;
  std::optional<uint64_t> seed;
  /// Steps in a row that may be not finite; without: 0, or 49 where a loss scale adapts. The most:
  /// any number.
  std::optional<uint64_t> nonfiniteSteps;

  std::string init, exportTo;
  std::string save, resume;
  uint64_t saveEvery = 0, keep = 0; ///< 0: at the end only; all
  std::string metrics, tensorboard, trace, profileFile;
  uint32_t traceSteps = 4;
  bool profile = false;
  bool check = false; ///< the unsharded program runs beside the ranks
  /// The kinds of kernels that alone are run, as a caller has arranged: results mean nothing.
  std::string onlyKinds;
  std::set<std::string> given; ///< of the options a save has values for, those that the user gave
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGOPTIONS_H
