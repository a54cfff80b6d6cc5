//===- Options.h - What fsdp-run is asked to do -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Filled in from the command line.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONS_H
#define FSDP_RUN_OPTIONS_H

#include "io/TokenFile.h"
#include "launch/Environment.h"
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fsdprt {

enum class Fault { none, skipShardElement, dropGradient, allocate };

struct Options {
  std::string artifact;
  uint64_t ranks = 0;
  uint32_t threadsPerRank = 0;
  std::string device = "cpu", backend = "local";
  std::string gemm; // who has to compute matrix products of GPUs; empty: whoever does
  std::string data, text;
  /// A file of samples for an input of the model.
  struct InputSource {
    std::string name, path;
  };
  std::vector<InputSource> inputs;
  std::vector<std::string> synthetic; ///< inputs that are random beside real data
  /// Returns true if any file has data to train on.
  bool hasData() const { return !data.empty() || !text.empty() || !inputs.empty(); }
  TokenType tokenType = TokenType::automatic;
  bool cudaGraph = false;
  bool overfit = false;
  uint64_t steps = 100;
  std::optional<double> lr, minimumLr;
  uint64_t warmupSteps = 0, decaySteps = 0;
  std::optional<uint64_t> seed;
  /// Steps in a row that may be not finite; without: 0, or 50 where a loss scale adapts. The most:
  /// any number.
  std::optional<uint64_t> nonfiniteSteps;
  std::string init, exportTo, metrics, tensorboard, trace, profileFile;
  uint32_t traceSteps = 4;
  double linkBandwidth = 0;
  std::string offloadDirectory; // empty: TMPDIR, or /tmp
  std::string save, resume;
  uint64_t saveEvery = 0, keep = 0; // 0: at the end only; all
  bool otherData = false;
  bool check = false, dump = false, assertNoAllocations = false, profile = false;
  std::string onlyKinds, simulate;
  std::vector<std::string> peers; // RANK=FILE, on the null device
  bool isNull() const { return device == "null"; }
  /// Whether programs run.
  bool runs() const { return !dump && simulate.empty() && !isNull(); }
  double validationFraction = 0.1, extraIds = 0;
  uint64_t validateEvery = 0;
  std::optional<uint64_t> validationBatches;
  double timeoutSeconds = 60, heartbeatSeconds = 2;
  /// Ranks are processes that this one starts; or it is one of them.
  bool processes = false;
  std::optional<uint32_t> launchedRank;
  int launchedChannel = -1;
  std::optional<LaunchPlace> place; ///< what a launcher says of this process, one of several
  bool backendGiven = false, processesGiven = false, heartbeatGiven = false;
  std::string control = "local"; ///< the backend, or what brings ranks together beside NCCL
  /// Ranks that another launcher started meet at the place, and are processes of one machine.
  bool needsRendezvous = false;
  std::string mpiReduce = "ordered";
  double rendezvousSeconds = 60;
  std::string launchedResume;
  std::string rankFault, flightRecord;
  bool restart = false;
  uint64_t mostRestarts = 3;
  /// The process that prints, and writes what there is one of.
  bool isRoot() const { return launchedRank.value_or(0) == 0; }
  Fault fault = Fault::none;
  std::string problem;         ///< why they were refused
  std::set<std::string> given; // of the options a save has values for, those that the user gave
};

/// Returns true to go on; else the process ends with `exitCode`.
bool parseOptions(int argc, char **argv, Options &options, int &exitCode);

/// Where the flight record goes.
std::string flightRecordPath(const Options &options);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONS_H
