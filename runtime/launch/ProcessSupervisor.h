//===- ProcessSupervisor.h - Watches over ranks that are processes *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One process watches over all ranks: it brings them together (ShmHost), and looks for messages,
// heartbeats that stand still and ranks that do not arrive. The first thing that is wrong is the
// reason: it sets the board's failure flag, which ends the other ranks' waits. How a process is
// found to have ended, and who is told, is for those that derive from it: the one that started the
// ranks (ProcessLauncher.cpp), and the one that only met them (LauncherRendezvous.cpp).
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
  static constexpr double graceSeconds = 10; ///< for ranks to end by themselves

  /// `ends` as ShmHost takes them; empty: it makes channels.
  ProcessSupervisor(const LaunchOptions &options, const std::vector<int> &ends);

  /// Of a rank whose process has not ended.
  virtual void kill(uint32_t rank, int signal) = 0;
  virtual bool hasEnded(uint32_t rank) const = 0;
  virtual int processOf(uint32_t rank) const = 0;
  virtual void tell(const Error &) {}

  void begin();
  void takeFailures();
  void checkArrival();
  void checkHeartbeats();
  /// The first reason counts; ranks that only end because of another have none.
  void setReason(Error error);
  bool allEnded() const;
  /// Its own words, or that it had finished.
  bool hasReported(uint32_t rank);
  std::string describeProgress(uint32_t rank);
  /// Those that do not end by themselves.
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
