//===- Nccl.h - Collectives over NCCL ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NCCL transfers the contents of arenas. Another communicator, `control`, does everything else: it
// knows which process has which ranks, and transfers NCCL's unique id, exchanges between programs
// and heartbeats. So NCCL can be combined with each of the other backends: threads (local),
// processes of a machine (shm), or several machines (mpi).
//
//     control    connect | rank 0's id to all
//     NCCL               | one communicator of all ranks | split: one for each axis and channel
//
// (R5) of Communicator.h does not hold: NCCL's order of summation depends on its algorithm. So sums
//      of three or more ranks equal those of other backends only up to rounding.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_NCCL_NCCL_H
#define FSDPRT_COLLECTIVES_NCCL_NCCL_H

#include "collectives/nccl/NcclRank.h"
#include "device/Arena.h"
#include <optional>

namespace fsdprt {

class NcclCommunicator final : public Communicator {
public:
  /// `control` is for the same mesh, and not connected yet. `localRank` is the rank's index on its
  /// machine, if each process has one rank and the index is known. `isOnDevice`: see (R10). Throws
  /// Error if there is no NCCL.
  NcclCommunicator(std::unique_ptr<Communicator> control, uint32_t spins,
                   std::optional<uint32_t> localRank = {}, bool isOnDevice = false);
  ~NcclCommunicator() override;

  const char *name() const override { return "nccl"; }
  const char *text() const override { return library.c_str(); }
  uint32_t processes() const override { return control->processes(); }
  bool needsSharedArenas() const override { return !onDevice && control->needsSharedArenas(); }
  bool allowsTransferWorkers() const override { return !onDevice; }
  bool isOnDevice() const override { return onDevice; }
  DeviceSpan spanOnDevice(uint32_t collective, uint32_t rank) const override {
    return ncclRank(rank).spanOf(collective);
  }
  uint32_t firstDevice() const override { return static_cast<uint32_t>(deviceOf(firstRank())); }
  void registerArena(uint32_t rank, const ArenaMemory &memory) override;
  void releaseArenas() override;
  void connect() override;
  void exchange(const void *mine, size_t bytes, void *all) override {
    control->exchange(mine, bytes, all);
  }
  void collect(uint32_t rank, const void *data, size_t bytes, void *into) override {
    control->collect(rank, data, bytes, into);
  }
  /// Ends NCCL's communicators first, because `control` can then still detect the loss of a rank.
  void leave() override;
  void abort(fsdprt_status status) override { control->abort(status); }
  void joinNext(uint32_t rank) override;
  Abandoned abandoned() const override { return control->abandoned(); }
  void poll() override;

private:
  /// A group of the mesh and a channel (gather or reduce), whose collectives share a communicator.
  struct Lane {
    const Groups *groups;
    bool reduces;
  };
  NcclRank &ncclRank(uint32_t rank) const { return *ncclRanks[rank - firstRank()]; }
  void begin(uint32_t collective, uint32_t rank, const std::byte *source,
             std::byte *target) override;
  void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) override;

  struct Word;
  void checkDevices() const;
  bool mayShareDevices() const;
  void checkOthers(const std::vector<Word> &words) const;
  int deviceOf(uint32_t rank) const;
  void findLanes();
  NcclCall callOf(uint32_t collective) const;
  NcclId agreeOnId();
  void join();
  template <typename Start>
  void onEveryRank(const char *what, Start start);
  bool awaitRanks(double seconds);
  bool hasBegun(uint32_t collective, uint32_t rank, uint32_t member) const;
  [[noreturn]] void reportStuck(uint32_t collective, uint32_t rank) const;

  std::unique_ptr<Communicator> control;
  NcclLibrary nccl;
  CudaDriver cuda{"backend 'nccl'", CudaDriver::Use::transfers};
  uint32_t spins;
  std::optional<uint32_t> localRank;
  bool onDevice;
  std::vector<std::unique_ptr<Arena>> unused; // host arenas that `control` needs for ranks on GPUs
  std::string library;                        // versions of NCCL and the driver
  std::vector<Lane> lanes;
  std::vector<uint32_t> laneOf; // by collective
  std::vector<ArenaMemory> arenas;
  std::vector<std::unique_ptr<NcclRank>> ncclRanks;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCL_H
