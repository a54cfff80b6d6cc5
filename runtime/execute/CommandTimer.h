//===- CommandTimer.h - When commands ran -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Fills the profile and the trace of the program 'step'. The host is done with a command of an
// asynchronous device when it is enqueued, which says nothing of the time it takes. There each
// command has a stamp before and after it on the device's timeline, and a transfer has two on its
// own; when they were passed is asked when the run has ended.
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
  /// Of the group's program whose instructions these are. `traceRuns`: the last runs that the trace
  /// keeps; 0: no trace.
  CommandTimer(RankGroup &group, const std::vector<Instruction> &instructions, bool profile,
               uint32_t traceRuns);

  /// Null where it was not asked for.
  Profile *getProfile() const { return profile.get(); }
  Trace *getTrace() const { return trace.get(); }

  void beginRun(const RankRun &run) override;
  void beforeCommand(const RankRun &run, const Instruction &instruction) override;
  void afterCommand(const RankRun &run, const Instruction &instruction) override;
  void endRun(const RankRun &run) override;

private:
  struct alignas(64) State {
    std::unique_ptr<DeviceTimeline> timeline; // of an asynchronous device
    uint64_t start = 0;                       // of the current command, of the host's clock
    uint32_t before = 0;                      // likewise, the stamp
    bool active = false;                      // in a run of the program
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
