//===- CommandTimer.h - Times of commands -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the times of commands for the profile and the trace of the program 'step'. On an
// asynchronous device, the host only enqueues commands, so the clock of the host cannot measure how
// long they take. The timeline of the device therefore records time stamps on streams, before and
// after each command and each transfer. The trace reads the stamps after the run.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_COMMANDTIMER_H
#define FSDPRT_EXECUTE_COMMANDTIMER_H

#include "device/Device.h"
#include "execute/Profile.h"
#include "execute/RankObserver.h"
#include "execute/Trace.h"

namespace fsdprt {

class RankGroup;

class CommandTimer : public RankObserver {
public:
  /// `instructions` are the instructions of the program 'step' in `group`. The trace keeps the last
  /// `traceRuns` runs. If `traceRuns` is 0, no trace is recorded.
  CommandTimer(RankGroup &group, const std::vector<Instruction> &instructions, bool profile,
               uint32_t traceRuns);

  /// getProfile() returns null if `profile` was false. getTrace() returns null if `traceRuns` was
  /// 0.
  Profile *getProfile() const { return profile.get(); }
  Trace *getTrace() const { return trace.get(); }

  void beginRun(const RankRun &run) override;
  void beforeCommand(const RankRun &run, const Instruction &instruction) override;
  void afterCommand(const RankRun &run, const Instruction &instruction) override;
  void endRun(const RankRun &run) override;

private:
  struct alignas(64) State {
    /// Recorder of time stamps; null if the device is synchronous.
    std::unique_ptr<DeviceTimeline> timeline;
    uint64_t start = 0;  ///< host time before the current command, in ns
    uint32_t before = 0; ///< index of the stamp before the current command
    bool active = false; ///< true if the current run is measured
  };
  State &stateOf(const RankRun &run) { return states[run.rank - firstRank]; }
  void endStamped(const RankRun &run, State &state, const Instruction &instruction);

  RankGroup &group;
  uint32_t firstRank;
  std::vector<State> states; ///< one state per rank of this process
  std::unique_ptr<Profile> profile;
  std::unique_ptr<Trace> trace;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_COMMANDTIMER_H
