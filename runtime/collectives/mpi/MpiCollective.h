//===- MpiCollective.h - A collective as messages ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a rank sends to and receives from each other member of its group, in rows: row k is the k-th
// chunk for each of them. Two rows are under way in each direction.
//
//     all_gather      source to each                 each's into its place of the target
//     broadcast       root: source to each           the root's into the target
//     reduce_scatter  piece j of the source to j     chunks of the own piece into a lane; summed
//                                                    when a row is there
//     all_reduce      small: source to each          all of each's into a lane, summed
//                     else: reduce_scatter of pieces of the target, then all_gather of them
//
// A lane is room for two rows of chunks that are summed. There are a few; flights get them in the
// order of their starts, which is the same on all members, so that the oldest one can always end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_MPI_MPICOLLECTIVE_H
#define FSDPRT_COLLECTIVES_MPI_MPICOLLECTIVE_H

#include "collectives/Communicator.h"
#include "collectives/mpi/MpiLibrary.h"

namespace fsdprt {

/// Room for sums under way.
class MpiLanes {
public:
  static constexpr uint32_t count = 4;
  static constexpr uint64_t chunkBytes = 512 << 10;

  void reserve(uint64_t newLaneBytes);
  std::byte *take();
  void giveBack(std::byte *lane) { free.push_back(lane); }
  uint64_t bytes() const { return memory.size(); }

private:
  std::vector<std::byte> memory;
  std::vector<std::byte *> free;
};

class MpiCollective {
public:
  /// `over` are the members' processes, `tag` is the collective's own.
  MpiCollective(MpiLibrary &mpi, const CollectiveKey &key, const std::vector<uint32_t> &members,
                uint32_t own, fsdprt_mpi_handle over, int tag);
  /// Sums are the library's own, over the group's communicator.
  void useLibrary(fsdprt_mpi_handle group) { library = group; }
  bool canUseLibrary() const;
  /// From here on without the contribution of a member, by its place in the group.
  void drop(uint32_t member) { dropped = member; }
  uint64_t laneBytes() const;

  void start(const std::byte *source, std::byte *target);
  /// Goes on without waiting, on `pool` if not null. Returns whether anything happened. The caller
  /// holds the mutex.
  bool advance(MpiLanes &lanes, WorkerPool *pool);
  bool isDone() const { return phase == Phase::done; }
  /// The members (ranks) whose messages are missing. One thread at a time waits for a flight.
  const std::vector<uint32_t> &missing();
  /// Forgets what it waits to receive.
  void abandon();

private:
  enum class Phase { idle, move, sum, spread, library, done };
  struct Direction {
    std::vector<fsdprt_mpi_handle> requests; // of two rows
    uint64_t rows = 0, posted = 0, finished = 0;
  };

  void enter(Phase next);
  void plan();
  void goOn();
  uint64_t rowsFor(uint64_t (MpiCollective::*bytesOf)(uint32_t) const) const;
  uint64_t sendBytes(uint32_t j) const;
  uint64_t receiveBytes(uint32_t j) const;
  const std::byte *sendFrom(uint32_t j) const;
  std::byte *receiveInto(uint32_t j, uint64_t row) const;
  void pieceOf(uint32_t j, uint64_t &first, uint64_t &count) const;
  bool advanceSends();
  bool advanceReceives(MpiLanes &lanes, WorkerPool *pool);
  void post(Direction &direction, bool sending);
  void addUp(uint64_t row, WorkerPool *pool);
  void startLibrary();
  void scaleSum();
  bool isSum() const {
    return key.kind == fb::CollectiveKind::reduce_scatter ||
           key.kind == fb::CollectiveKind::all_reduce;
  }
  bool isSmall() const { return key.count * elementBytes <= smallBytes; }
  bool isInPlace() const { return source == target; }
  fsdprt_mpi_handle *rowOf(Direction &direction, uint64_t row) {
    return &direction.requests[row % 2 * group];
  }

  static constexpr uint64_t smallBytes = 16 << 10, largeChunkBytes = 32 << 20;

  MpiLibrary &mpi;
  const CollectiveKey &key;
  const std::vector<uint32_t> &members;
  uint32_t group, own, dropped = UINT32_MAX;
  fsdprt_mpi_handle over, library = 0, libraryRequest = 0;
  int tag;
  uint64_t elementBytes, chunk = 0;
  Phase phase = Phase::idle;
  Direction sends, receives;
  std::byte *lane = nullptr;
  std::vector<const std::byte *> sources; // of a sum
  std::vector<uint32_t> lacking;
  const std::byte *source = nullptr;
  std::byte *target = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPICOLLECTIVE_H
