//===- MpiHeartbeat.h - Signs of life over MPI ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every process tells all others, some times per second, what its rank's RankProgress says, whether
// it failed and with what status, and whether it leaves; what it hears goes into the watch. The
// caller holds the library's mutex.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_MPI_MPIHEARTBEAT_H
#define FSDPRT_COLLECTIVES_MPI_MPIHEARTBEAT_H

#include "collectives/Watchdog.h"
#include "collectives/mpi/MpiLibrary.h"

namespace fsdprt {

class MpiHeartbeat {
public:
  MpiHeartbeat(MpiLibrary &mpi, Watchdog &watchdog, fsdprt_mpi_handle over, int tag);
  ~MpiHeartbeat();

  /// Hears what came, and tells others when it is time to.
  void beat();
  /// Counts what the process of a rank said, whether its rank made progress or not.
  uint64_t heard(uint32_t rank) const { return peers[rank].heard.load(std::memory_order_relaxed); }
  /// The others are told that this process says no more; when all have said it, nothing is under
  /// way.
  void leave() { leaving = true; }
  bool haveAllLeft() const;
  /// All others know of the failure, as far as MPI says.
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
    char program[2][64] = {}, label[2][144] = {}; // one is read while the other is written
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
  double lastTold = 0;
  bool leaving = false;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPIHEARTBEAT_H
