//===- Options.h - Command line of fsdp-run ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONS_H
#define FSDP_RUN_OPTIONS_H

#include "train/TrainingOptions.h"

namespace fsdprt {

struct Options : TrainingOptions {
  bool dump = false;
  std::string simulate;           ///< path of a cluster file; empty if no simulation is requested
  std::vector<std::string> peers; ///< texts RANK=FILE, one for each rank that runs another artifact
  bool isNull() const { return device == "null"; }
  bool assertNoAllocations = false;
  enum class Fault { none, skipShardElement, dropGradient, allocate };
  Fault fault = Fault::none;
  std::string rankFault; ///< argument of RankFault::parse()
  /// The error message that was printed if the command line is invalid, and otherwise an empty
  /// text.
  std::string problem;
};

/// Parses the command line. Returns false and sets `exitCode` if the process must end, for example
/// after --help.
bool parseOptions(int argc, char **argv, Options &options, int &exitCode);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONS_H
