//===- TrainingOptions.h - Options of a training run ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsdp-run sets these options from its command line. Other programs may set them directly.
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
  std::string gemm;           ///< GEMM backend that the artifact must use on GPUs; empty for any
  bool restrictCalls = false; ///< true to restrict system calls (core/SystemCalls.h)
  bool cudaGraph = false;
  double linkBandwidth = 0;     ///< simulated bandwidth of links in bytes per second, or 0
  std::string offloadDirectory; ///< folder of offloaded states; empty for $TMPDIR or /tmp
  std::string mpiReduce = "ordered";

  std::string data, text;
  TokenType tokenType = TokenType::automatic;
  /// A file of samples for an input of the model.
  struct InputSource {
    std::string name, path;
  };
  std::vector<InputSource> inputs;
  std::vector<std::string> synthetic; ///< inputs of --synthetic with random values
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
  /// Allowed number of consecutive non-finite steps. The default is 0, or 49 with a dynamic loss
  /// scale. UINT64_MAX means no limit.
  std::optional<uint64_t> nonfiniteSteps;

  std::string init, exportTo;
  std::string save, resume;
  bool waitForSaves = false; ///< true if each save ends before the next step
  /// `saveEvery`: steps between saves, or 0 for only one save at the end. `keep`: number of saves
  /// to keep, or 0 for all.
  uint64_t saveEvery = 0, keep = 0;
  std::string metrics, tensorboard, trace, profileFile;
  uint32_t traceSteps = 4;
  bool profile = false;
  bool check = false; ///< true to compare results with the unsharded program
  /// Kinds of the kernels that run, or empty for all. If not empty, results are meaningless, and
  /// the caller must have set SessionHooks::onlyKinds to the same kinds.
  std::string onlyKinds;
  std::set<std::string> given; ///< options of the user, which override values of a save
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGOPTIONS_H
