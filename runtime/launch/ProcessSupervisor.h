//===- ProcessSupervisor.h - Supervises ranks in processes ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One process supervises all ranks: it connects them (ShmHost), receives their messages, and
// detects processes with a stale heartbeat and ranks that do not connect. The first error is the
// reason for the end of the run. It sets the failure flag in the control block, which ends the
// other ranks' waits. Two derived classes detect ended processes and tell ranks the reason: one in
// the process that started the ranks (ProcessLauncher.cpp), and one in the process that only
// connected them (LauncherRendezvous.cpp).
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
  static constexpr double graceSeconds = 10; ///< time for ranks to end by themselves after an error

  /// `ends` is explained at ShmHost. If it is empty, the host creates the channels.
  ProcessSupervisor(const LaunchOptions &options, const std::vector<int> &ends);

  /// Sends a signal to a rank's process, unless it has ended.
  virtual void kill(uint32_t rank, int signal) = 0;
  virtual bool hasEnded(uint32_t rank) const = 0;
  virtual int processOf(uint32_t rank) const = 0;
  /// Tells the ranks the reason for the end of the run.
  virtual void tell(const Error &) {}

  /// Begins to watch. `startedRanks` is true if the ranks are children and end with this process.
  void begin(bool startedRanks);
  void takeFailures();
  void checkArrival();
  void checkHeartbeats();
  /// Sets the reason, unless it is set or `error` only follows from another rank's error.
  void setReason(Error error);
  bool allEnded() const;
  /// Returns true if the rank has reported a failure or left in an orderly way.
  bool hasReported(uint32_t rank);
  std::string describeProgress(uint32_t rank);
  /// Kills ranks that do not end within graceSeconds.
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
    double still = 0; ///< seconds
  };
  std::vector<Heartbeat> heartbeats;
  double lastPoll = 0, lastArrival = 0, reasonSetAt = 0;
  std::string lastMissing;
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_PROCESSSUPERVISOR_H
