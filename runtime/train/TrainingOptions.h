//===- TrainingOptions.h - Options of a training run ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsdp-run sets these options from its command line. Other programs that use the trainer set them
// directly.
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
  /// GEMM backend that the artifact must use on GPUs; empty if the artifact may use any
  std::string gemm;
  /// true if system calls of the process are restricted (core/SystemCalls.h)
  bool restrictCalls = false;
  bool cudaGraph = false;
  std::string ncclWindows, ncclCtaPolicy; ///< as in fsdprt_session_options, or empty
  uint32_t ncclMaxCtas = 0;               ///< likewise
  double linkBandwidth = 0; ///< link bandwidth to simulate, in bytes per second; 0: no limit
  /// folder for files of offloaded states; empty to use $TMPDIR or /tmp
  std::string offloadDirectory;
  std::string mpiReduce = "ordered";

  std::string data, text;
  TokenType tokenType = TokenType::automatic;
  /// A file that contains samples for one input of the model.
  struct InputSource {
    std::string name, path;
  };
  std::vector<InputSource> inputs;
  std::vector<std::string> synthetic; ///< inputs that --synthetic names; their values are random
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
  /// How many consecutive steps may be non-finite before the run ends. By default this number is 0,
  /// or 49 if the loss scale is dynamic. UINT64_MAX means that there is no limit.
  std::optional<uint64_t> nonfiniteSteps;

  std::string init, exportTo;
  std::string save, resume;
  bool waitForSaves = false; ///< true if the next step begins only after a save has been written
  /// `saveEvery` is the number of steps from one save to the next, or 0 if there is only one save
  /// at the end. `keep` is the number of saves that are kept, or 0 if all saves are kept.
  uint64_t saveEvery = 0, keep = 0;
  std::string metrics, tensorboard, trace, profileFile;
  uint32_t traceSteps = 4;
  bool profile = false;
  bool check = false; ///< true to compare the results with the results of the unsharded program
  /// Names the kinds of kernels that run. If this text is empty, all kernels run. If it is not
  /// empty, the results are meaningless, and the caller must have set SessionHooks::onlyKinds to
  /// the same kinds.
  std::string onlyKinds;
  std::set<std::string> given; ///< options that the user has given; they override values of a save
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGOPTIONS_H
