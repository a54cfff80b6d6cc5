//===- CommandTimer.h - Times of commands -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Fills the profile and the trace of the program 'step'. On an asynchronous device, the host's time
// for a command covers only the enqueuing. So the device's timeline has a stamp before and after
// each command, and two more stamps for a transfer, on the transfer's stream. The stamps are read
// after the run.
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
  /// Times the group's program with these instructions. The trace keeps the last `traceRuns` runs;
  /// 0 means no trace.
  CommandTimer(RankGroup &group, const std::vector<Instruction> &instructions, bool profile,
               uint32_t traceRuns);

  /// Return null if the profile or trace was not requested.
  Profile *getProfile() const { return profile.get(); }
  Trace *getTrace() const { return trace.get(); }

  void beginRun(const RankRun &run) override;
  void beforeCommand(const RankRun &run, const Instruction &instruction) override;
  void afterCommand(const RankRun &run, const Instruction &instruction) override;
  void endRun(const RankRun &run) override;

private:
  struct alignas(64) State {
    std::unique_ptr<DeviceTimeline> timeline; // of an asynchronous device
    uint64_t start = 0;                       // start of the current command, in nanoseconds
    uint32_t before = 0;                      // stamp before the current command
    bool active = false;                      // the current run executes the timed program
  };
  State &stateOf(const RankRun &run) { return states[run.rank - firstRank]; }
  void endStamped(const RankRun &run, State &state, const Instruction &instruction);

  RankGroup &group;
  uint32_t firstRank;
  std::vector<State> states; // by rank
  std::unique_ptr<Profile> profile;
  std::unique_ptr<Trace> trace;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_COMMANDTIMER_H
