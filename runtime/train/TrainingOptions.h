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
  double linkBandwidth = 0; ///< limit of the rate of collectives in bytes per second; 0 for none
  std::string offloadDirectory; ///< folder of offloaded states; empty for $TMPDIR or /tmp
  std::string mpiReduce = "ordered";

  std::string data, text;
  TokenType tokenType = TokenType::automatic;
  /// A file of samples for an input of the model.
  struct InputSource {
    std::string name, path;
  };
  std::vector<InputSource> inputs;
  std::vector<std::string> synthetic; ///< inputs that have random values although others have data
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
  /// Allowed number of consecutive non-finite steps. Default: 0, or 49 with a dynamic loss scale.
  /// UINT64_MAX allows any number.
  std::optional<uint64_t> nonfiniteSteps;

  std::string init, exportTo;
  std::string save, resume;
  bool waitForSaves = false; ///< true if each save ends before the next step
  /// Number of steps between saves (0: save only at the end), and of saves to keep (0: all).
  uint64_t saveEvery = 0, keep = 0;
  std::string metrics, tensorboard, trace, profileFile;
  uint32_t traceSteps = 4;
  bool profile = false;
  bool check = false; ///< true to run the unsharded program, too, and compare results
  /// Kinds of the kernels that run, or empty for all. If set, results are meaningless, and the
  /// caller must have set SessionHooks that skip the other kernels.
  std::string onlyKinds;
  std::set<std::string> given; ///< options that the user has set, which replace values of a save
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGOPTIONS_H
