//===- RankObserver.h - Sees what ranks execute -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Profiles, traces, NVTX ranges, planted faults and the search for numbers that are not finite are
// observers that are attached to a group of ranks. The calls of a run, on the rank's thread:
//
//     beginRun | beforeCommand, afterCommand ... | endCommands | endRun
//                     |
//                     beforeReduction, afterStart     of a collective, within the command
//
// Between endCommands and endRun the device finishes what it was given. Nothing may allocate memory
// in a run, but for the first of a program.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_RANKOBSERVER_H
#define FSDPRT_EXECUTE_RANKOBSERVER_H

#include "execute/Instruction.h"
#include <vector>

namespace fsdprt {

class RankExecutor;

/// One rank's run of a program.
struct RankRun {
  RankExecutor *executor = nullptr;
  uint32_t rank = 0;
  const char *program = "";
  uint64_t number = 0;                                ///< of the run, from 1
  const Instruction *begin = nullptr, *end = nullptr; ///< of the program
  bool isStep = false;                                ///< of the program 'step'
};

class RankObserver {
public:
  virtual ~RankObserver() = default;
  /// Before a run of a program, on the thread that runs it.
  virtual void prepare(const std::vector<Instruction> & /*program*/) {}
  virtual void beginRun(const RankRun &) {}
  /// Around each command but loops.
  virtual void beforeCommand(const RankRun &, const Instruction &) {}
  virtual void afterCommand(const RankRun &, const Instruction &) {}
  /// Before the start of a sum of floats, whose source is at this offset of the arena.
  virtual void beforeReduction(const RankRun &, const Instruction &, uint64_t /*source*/) {}
  /// After the start of a collective, before its wait.
  virtual void afterStart(const RankRun &, const Instruction &) {}
  /// After the last command, or after an error.
  virtual void endCommands(const RankRun &) noexcept {}
  virtual void endRun(const RankRun &) {}
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKOBSERVER_H
