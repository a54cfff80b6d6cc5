//===- RankObserver.h - Observer of ranks' commands -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Profiles, traces, NVTX ranges, planted faults and the search for non-finite numbers are observers
// of a group of ranks. During a run, the thread of a rank calls these functions in this order:
//
//     beginRun | beforeCommand, afterCommand ... | endCommands | endRun
//                     |
//                     beforeReduction, afterStart     during the command of a collective
//
// Between endCommands and endRun, the rank waits for its device. Observers must not allocate memory
// in a run, except in the first run of a program.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_RANKOBSERVER_H
#define FSDPRT_EXECUTE_RANKOBSERVER_H

#include "execute/Instruction.h"
#include <vector>

namespace fsdprt {

class RankExecutor;

struct RankRun {
  RankExecutor *executor = nullptr;
  uint32_t rank = 0;
  const char *program = "";
  uint64_t number = 0;                                ///< number of the run; the first is 1
  const Instruction *begin = nullptr, *end = nullptr; ///< instructions of the program
  bool isStep = false;                                ///< true if the program is 'step'
};

class RankObserver {
public:
  virtual ~RankObserver() = default;
  /// Called before each run of a program, on the thread that called RankGroup::run().
  virtual void prepare(const std::vector<Instruction> & /*program*/) {}
  virtual void beginRun(const RankRun &) {}
  /// Called before and after each command except loops.
  virtual void beforeCommand(const RankRun &, const Instruction &) {}
  virtual void afterCommand(const RankRun &, const Instruction &) {}
  /// Called before a reduction of floating-point values starts. The rank's operand begins at offset
  /// `source` of the rank's arena.
  virtual void beforeReduction(const RankRun &, const Instruction &, uint64_t /*source*/) {}

  /// Called after a collective has started and before the rank waits for it.
  virtual void afterStart(const RankRun &, const Instruction &) {}
  /// Called after the last command, and also after a command that has failed.
  virtual void endCommands(const RankRun &) noexcept {}
  virtual void endRun(const RankRun &) {}
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKOBSERVER_H
