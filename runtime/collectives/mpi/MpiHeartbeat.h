//===- MpiHeartbeat.h - Heartbeats over MPI ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Several times per second, every process sends a message to all others. The message contains the
// progress of its rank, the status of a failure, and a flag for leave(). Arriving messages update
// the watchdog. The caller of these functions must hold the mutex of the MPI library.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_MPI_MPIHEARTBEAT_H
#define FSDPRT_COLLECTIVES_MPI_MPIHEARTBEAT_H

#include "collectives/Watchdog.h"
#include "collectives/mpi/MpiLibrary.h"
#include <optional>

namespace fsdprt {

class MpiHeartbeat {
public:
  MpiHeartbeat(MpiLibrary &mpi, Watchdog &watchdog, fsdprt_mpi_handle over, int tag);
  ~MpiHeartbeat();

  /// Receives messages. Sends messages to the other processes: periodically, and also when a
  /// failure has occurred or this process has called leave().
  void beat();
  /// Returns how many messages have arrived from the process of a rank.
  uint64_t heard(uint32_t rank) const { return peers[rank].heard.load(std::memory_order_relaxed); }
  /// Returns a rank whose process has sent no message for `seconds`, although it has sent one
  /// before and has not left the run. Periods in which this process does not call beat() are not
  /// counted.
  std::optional<uint32_t> silent(double seconds) const;
  /// Announces to the other processes that this process will send no more messages. When all
  /// processes have announced this, no message is in flight.
  void leave() { leaving = true; }
  bool haveAllLeft() const;
  /// Returns true if the failure has been sent to all other processes that still send messages
  /// themselves.
  bool isFailureTold() const;

private:
  struct Message {
    uint64_t beats, number;
    uint32_t command, collective, failed, last;
    char program[64], label[144];
  };
  struct Peer {
    Message in, out;
    fsdprt_mpi_handle receiving, sending;
    bool left = false, toldLast = false, toldFailure = false;
    std::atomic<uint64_t> heard{0};
    /// seconds since the last message from the process arrived
    double still = 0;
    // program[turn] and label[turn] are the current texts
    char program[2][64] = {}, label[2][144] = {};
    uint32_t turn = 0;
  };

  Message describe() const;
  void listen(uint32_t rank);
  void tell(uint32_t rank, const Message &message);
  void take(uint32_t rank);

  MpiLibrary &mpi;
  Watchdog &watchdog;
  fsdprt_mpi_handle over;
  int tag;
  std::vector<Peer> peers;
  double lastTold = 0, lastBeat = 0;
  bool leaving = false;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPIHEARTBEAT_H
