//===- Nccl.h - Collectives over NCCL ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NCCL runs the collectives. Everything else is done by another Communicator, `control`: it assigns
// the ranks to processes, distributes the unique id of NCCL, and implements exchange(), collect()
// and heartbeats. `control` may be any other backend. Its ranks may be threads (local), processes
// on one machine (shm), or processes on several machines (mpi).
//
//     control    connect | unique id of rank 0 to all
//     NCCL               | one communicator of all ranks | split: one for each axis and channel
//
// Rule R5 of Communicator.h does not hold for this backend, because the order in which NCCL adds
// the values depends on the algorithm that NCCL uses. A sum over three or more ranks may therefore
// differ from the sum that another backend computes, but only by rounding.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_NCCL_NCCL_H
#define FSDPRT_COLLECTIVES_NCCL_NCCL_H

#include "collectives/nccl/NcclRank.h"
#include "collectives/nccl/NcclWindows.h"
#include "device/Arena.h"
#include <optional>

namespace fsdprt {

class NcclCommunicator final : public Communicator {
public:
  /// `control` must have the same mesh and must not be connected yet. `localRank` is the index of
  /// the rank among the ranks of its machine. It is set only if each process has one rank and the
  /// index is known. `isOnDevice` is the value that isOnDevice() returns. Throws Error if NCCL
  /// cannot be loaded, or if it is too old for `settings`.
  NcclCommunicator(std::unique_ptr<Communicator> control, uint32_t spins,
                   std::optional<uint32_t> localRank = {}, bool isOnDevice = false,
                   const NcclSettings &settings = {});
  ~NcclCommunicator() override;

  const char *name() const override { return "nccl"; }
  const char *text() const override { return library.c_str(); }
  uint32_t processes() const override { return control->processes(); }
  bool needsSharedArenas() const override { return !onDevice && control->needsSharedArenas(); }
  DeviceAllocator *arenaAllocator() override { return windows.areWanted() ? &windows : nullptr; }
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
  /// Destroys the NCCL communicators before `control` leaves, so that the loss of a rank is
  /// detected while the communicators are destroyed.
  void leave() override;
  void abort(fsdprt_status status) override { control->abort(status); }
  void joinNext(uint32_t rank) override;
  Abandoned abandoned() const override { return control->abandoned(); }
  void poll() override;

private:
  /// A lane consists of a channel and of all groups that extend over the same mesh axes. The
  /// channel is reduce if `reduces` is true, and otherwise gather. In each of these groups, all
  /// collectives of a lane use the same NCCL communicator.
  struct Lane {
    const Groups *groups;
    bool reduces;
    bool hasPieces = false; ///< whether operands have other offsets on other ranks
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
  NcclCall callOf(uint32_t collective, uint32_t rank) const;
  NcclId agreeOnId();
  void compareArenas(const std::vector<Word> &words);
  void join();
  void registerWindows();
  void registerWindow(size_t lane, NcclResult &refused);
  template <typename Start>
  void onEveryRank(const char *what, Start start, const NcclResult &tolerated = ncclOk);
  bool awaitRanks(double seconds);
  bool hasBegun(uint32_t collective, uint32_t rank, uint32_t member) const;
  [[noreturn]] void reportStuck(uint32_t collective, uint32_t rank) const;

  std::unique_ptr<Communicator> control;
  NcclLibrary nccl;
  CudaDriver cuda{"backend 'nccl'", CudaDriver::Use::transfers};
  uint32_t spins;
  std::optional<uint32_t> localRank;
  bool onDevice;
  NcclConfig config; ///< of all NCCL communicators
  NcclWindows windows;
  std::vector<std::unique_ptr<Arena>> unused; ///< host arenas that only `control` requires
  /// a text with the versions of NCCL and of the driver
  std::string library;
  std::vector<Lane> lanes;
  std::vector<uint32_t> laneOf; ///< for each collective: index of its lane in `lanes`
  std::vector<ArenaMemory> arenas;
  std::vector<std::unique_ptr<NcclRank>> ncclRanks;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCL_H
