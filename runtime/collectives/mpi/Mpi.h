//===- Mpi.h - Ranks as processes of an MPI job -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each process runs one rank of the mesh. The number of this rank is the rank of the process in
// MPI. The processes run on the same machine or on several machines. The members of a collective
// exchange messages and add up the received data in the order of ranks (MpiCollective.h). With
// MpiReduce::library, the MPI library computes the sums instead.
//
// Except for the set-up and the end of MPI, all MPI calls are non-blocking. No two threads call MPI
// at the same time, because a thread must lock a mutex before it calls MPI. While the rank
// computes, a service thread continues the exchange of messages, and sends and receives heartbeats
// (MpiHeartbeat.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_MPI_MPI_H
#define FSDPRT_COLLECTIVES_MPI_MPI_H

#include "collectives/mpi/MpiCollective.h"
#include "collectives/mpi/MpiHeartbeat.h"
#include <optional>
#include <thread>

namespace fsdprt {

enum class MpiReduce { ordered, library };

class MpiCommunicator final : public Communicator {
public:
  /// Connects this process to the other processes. Throws Error unless MPI has as many processes as
  /// the mesh has ranks, this process has rank `rank` in MPI, and `agreement` is equal in all
  /// processes (Agreement.h).
  MpiCommunicator(Mesh mesh, uint32_t rank, MpiReduce reduce, const std::string &agreement,
                  double timeoutSeconds, double meetingSeconds, double heartbeatSeconds);
  ~MpiCommunicator() override;

  const char *name() const override { return "mpi"; }
  uint32_t processes() const override { return ranks(); }
  void registerArena(uint32_t, const ArenaMemory &) override {}
  void connect() override;
  void exchange(const void *mine, size_t bytes, void *all) override;
  void collect(uint32_t rank, const void *data, size_t bytes, void *into) override;
  void leave() override;
  void poll() override;
  Abandoned abandoned() const override;
  const std::string &getLibraryVersion() const { return mpi.getVersion(); }

private:
  enum Tag : int { heartbeatTag = 1, exchangeTag, collectTag, firstTag = 16 };

  void begin(uint32_t collective, uint32_t rank, const std::byte *source,
             std::byte *target) override;
  void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) override;

  void agree(const std::string &agreement);
  void checkSchedule();
  void makeFlights();
  fsdprt_mpi_handle groupOver(const std::vector<uint32_t> &members);
  bool advanceAll(WorkerPool *pool);
  void serve();
  void checkHeartbeats();
  void endService();
  /// Waits until done() returns true. Calls late() if the time limit has passed since the result of
  /// beats() changed last.
  template <typename Done, typename Beats, typename Late>
  void await(WorkerPool *pool, Done done, Beats beats, Late late);
  void awaitMessages(fsdprt_mpi_handle *messages, size_t count, const char *why);
  uint64_t heardFromAll() const;
  void sayGoodbye();

  MpiLibrary &mpi;
  MpiReduce reduce;
  double meetingSeconds, heartbeatSeconds;
  fsdprt_mpi_handle world;
  std::unique_ptr<MpiHeartbeat> heartbeat;
  MpiLanes lanes;
  std::vector<std::unique_ptr<MpiCollective>> operations; ///< indexed by collective
  /// collectives in the order in which they were started
  std::vector<MpiCollective *> inFlight;
  std::vector<std::pair<std::vector<uint32_t>, fsdprt_mpi_handle>> groups;
  std::vector<fsdprt_mpi_handle> requests; ///< requests of exchange()
  /// Number of heartbeat messages from a process, and time of the last message in seconds of
  /// the wait.
  struct Sign {
    uint64_t heard;
    double at;
  };
  std::vector<Sign> lastSign;   ///< indexed by process
  std::optional<Error> problem; ///< error that the service thread has caught
  std::optional<Error> silence; ///< error that is set if another process no longer sends heartbeats
  uint64_t progress = 0;        ///< number of calls of advanceAll() that have made progress
  FutexEvent endingEvent;
  std::atomic<bool> ending{false}, busy{false};
  bool left = false;
  std::thread service;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPI_H
