//===- MpiCollective.h - A collective as messages ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In a collective, a rank sends data to each other member of its group, and receives data from each
// other member. This data is divided into chunks. Row k consists of the chunks with index k of all
// members. In each direction, at most two rows are in flight.
//
//     all_gather      sends source to all            receives each source in its target range
//     broadcast       root sends source to all       other members receive the target
//     shift           sends source to the next       receives the target from the member before
//     reduce_scatter  sends segment j to member j    receives its segment in a lane; sums each row
//     all_reduce      small: sends source to all     receives all sources in a lane; sums each row
//                     large: reduce_scatter of segments, then all_gather of the segments
//
// A lane is a buffer for two rows of received chunks. The sums read the chunks from the lane. There
// are MpiLanes::count lanes. Collectives take lanes in the order in which they were started. All
// members start the collectives in the same order, so the oldest collective in flight always has a
// lane and can complete.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_MPI_MPICOLLECTIVE_H
#define FSDPRT_COLLECTIVES_MPI_MPICOLLECTIVE_H

#include "collectives/Communicator.h"
#include "collectives/mpi/MpiLibrary.h"

namespace fsdprt {

class MpiLanes {
public:
  static constexpr uint32_t count = 4;
  static constexpr uint64_t chunkBytes = 512 << 10;

  void reserve(uint64_t newLaneBytes);
  /// Returns a free lane. Returns null if all lanes are taken.
  std::byte *take();
  void giveBack(std::byte *lane) { free.push_back(lane); }
  uint64_t bytes() const { return memory.size(); }

private:
  std::vector<std::byte> memory;
  std::vector<std::byte *> free;
};

class MpiCollective {
public:
  /// `over` is an MPI communicator of all processes. `tag` must not be used by any other
  /// collective.
  MpiCollective(MpiLibrary &mpi, const CollectiveKey &key, const std::vector<uint32_t> &members,
                uint32_t own, fsdprt_mpi_handle over, int tag);
  /// Makes the MPI library compute the sum. `group` is an MPI communicator of the members.
  void useLibrary(fsdprt_mpi_handle group) { library = group; }
  bool canUseLibrary() const;
  /// Makes all later sums omit the contribution of one member. `member` is the index of this member
  /// in the group.
  void drop(uint32_t member) { dropped = member; }
  uint64_t laneBytes() const;

  void start(const std::byte *source, std::byte *target);
  /// Continues the sends, receives and sums without waiting. Sums use the threads of `pool`, unless
  /// `pool` is null. Returns true if there was progress. The caller must hold the library's mutex.
  bool advance(MpiLanes &lanes, WorkerPool *pool);
  bool isDone() const { return phase == Phase::done; }
  /// Returns the ranks whose messages have not arrived yet, or have not been sent completely. The
  /// caller must hold the mutex of the library.
  const std::vector<uint32_t> &missing();
  void abandon();

private:
  enum class Phase { idle, move, sum, spread, library, done };
  struct Direction {
    std::vector<fsdprt_mpi_handle> requests; ///< for each of two rows: one request per member
    uint64_t rows = 0, posted = 0, finished = 0;
  };

  void enter(Phase next);
  void plan();
  void goOn();
  uint64_t rowsFor(uint64_t (MpiCollective::*bytesOf)(uint32_t) const) const;
  bool reaches(uint32_t from, uint32_t to) const;
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
  std::vector<const std::byte *> sources; ///< for each member: the member's operand of a sum
  std::vector<uint32_t> lacking;          ///< result of missing()
  const std::byte *source = nullptr;
  std::byte *target = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPICOLLECTIVE_H
