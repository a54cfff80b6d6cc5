//===- ProcessSupervisor.h - Supervises ranks in processes ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One process supervises all ranks. This process connects the ranks (ShmHost), receives their
// messages, and detects stale heartbeats and ranks that do not connect. The first error ends the
// run: the supervisor stores the status of this error in the control block, so that all ranks that
// wait for other ranks stop waiting. How the end of a process is detected depends on the derived
// class. Launcher runs in the process that has started the ranks (ProcessLauncher.cpp). Host runs
// in a process that only connects the ranks (LauncherRendezvous.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_PROCESSSUPERVISOR_H
#define FSDPRT_LAUNCH_PROCESSSUPERVISOR_H

#include "artifact/Artifact.h"
#include "collectives/shm/ShmHost.h"
#include "launch/LaunchOptions.h"

namespace fsdprt {

class ProcessSupervisor {
public:
  virtual ~ProcessSupervisor() = default;

protected:
  static constexpr double pollSeconds = 0.05;
  /// Seconds between the first error and the time at which the remaining ranks are killed.
  static constexpr double graceSeconds = 10;

  /// `ends` contains a descriptor for the channel of each rank, or nothing if `host` creates the
  /// channels.
  ProcessSupervisor(const LaunchOptions &options, const std::vector<int> &ends);

  /// Sends a signal to the process of a rank, unless this process has ended.
  virtual void kill(uint32_t rank, int signal) = 0;
  virtual bool hasEnded(uint32_t rank) const = 0;
  virtual int processOf(uint32_t rank) const = 0;
  /// Sends the first error to the ranks.
  virtual void tell(const Error &) {}

  /// Begins to watch the ranks. `startedRanks` is true if the ranks are children of this process.
  void begin(bool startedRanks);
  void takeFailures();
  void checkArrival();
  void checkHeartbeats();
  /// Stores `error` as the reason for which the run ends, unless the run already has a reason.
  /// Ignores errors with the status FSDPRT_ABANDONED: a rank reports this status if it has failed
  /// because another rank has failed.
  void setReason(Error error);
  bool allEnded() const;
  /// Returns true if the rank has finished or has reported a failure.
  bool hasReported(uint32_t rank);
  std::string describeProgress(uint32_t rank);
  void killStragglers();

  const LaunchOptions &options;
  std::unique_ptr<const Artifact> artifact;
  ShmHost host;
  std::unique_ptr<Watchdog> watch;
  std::optional<Error> reason;

private:
  void reportMissing(const std::string &missing, double limit);
  std::string writeFlightRecord();

  struct Heartbeat {
    uint64_t beats = 0;
    double still = 0; ///< seconds since `beats` last changed
  };
  std::vector<Heartbeat> heartbeats;
  double lastPoll = 0, lastArrival = 0, reasonSetAt = 0;
  std::string lastMissing;
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_PROCESSSUPERVISOR_H
