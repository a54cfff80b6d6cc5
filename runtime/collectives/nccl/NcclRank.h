//===- NcclRank.h - One rank's NCCL communicators ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has an NCCL communicator of all ranks, from which a communicator for each lane is split. A
// lane is a group of the mesh and a channel (gather or reduce). Each channel has a stream.
// Communicators are non-blocking: a call may still be in progress when it returns, and the rank
// must not make another call before the call has ended. A collective has these states:
//
//     queued    after begin(); waits for the previous call, and for collectives of the same launch
//     issuing   after a poll; NCCL has the call, but has not put its work on the stream yet
//     issued    after a poll; the work is on the stream, followed by an event
//     idle      after isComplete() or isOrdered() has returned true
//
// A poll is a call of begin, isComplete, isOrdered or check.
//
// If the arena of the rank is on a GPU, the arena has a queue, and the channels use the streams
// `gather` and `reduce` of the queue. begin() makes the stream of the channel wait for earlier work
// on the compute stream. Later, isOrdered() makes the compute stream wait for the collective's
// event.
//
// All NCCL calls of a rank are non-blocking and hold `lock`, so that no other thread is inside NCCL
// during abort().
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_NCCL_NCCLRANK_H
#define FSDPRT_COLLECTIVES_NCCL_NCCLRANK_H

#include "collectives/Communicator.h"
#include "collectives/nccl/NcclLibrary.h"
#include "device/cuda/CudaTimeline.h"
#include <mutex>
#include <optional>

namespace fsdprt {

/// An error of NCCL or CUDA, whose message does not name the collective.
class NcclFailure : public Error {
public:
  using Error::Error;
};

struct NcclCall {
  fb::CollectiveKind kind;
  NcclType type;
  NcclOperation operation;
  size_t count;
  int root;
  uint32_t lane;
};

class NcclRank {
public:
  NcclRank(const NcclLibrary &nccl, const CudaDriver &cuda, int device, size_t lanes);
  ~NcclRank();
  NcclRank(const NcclRank &) = delete;
  NcclRank &operator=(const NcclRank &) = delete;

  //===- Set-up and end: one thread calls each method for all ranks here ------===//

  /// Makes the CUDA context of the rank's device current for the calling thread.
  void useDevice() const;
  void joinAll(const NcclId &id, uint32_t ranks, uint32_t rank);
  /// Creates the communicator of a lane. Must be called after joinAll(). Ranks with equal `color`
  /// form a group, in which ranks are ordered by `key`.
  void joinLane(size_t lane, uint32_t color, uint32_t key);
  /// Returns true if no NCCL call of the rank is in progress. Throws Error if a call has failed.
  bool isSettled();
  /// Makes the arena accessible to the device, and registers an arena in device memory with NCCL.
  /// Collectives use the streams of the arena's queue, if any. Must be called after joinLane().
  void adopt(const ArenaMemory &memory);
  void prepare(std::vector<NcclCall> calls, const std::vector<bool> &reduces);
  /// Starts to finalise the communicators. All ranks must call finalize(), and then destroy() as
  /// soon as isSettled() returns true. Throws Error.
  void finalize();
  void destroy();

  //===- Collectives --------------------------------------------------------===//

  /// Puts the next two collectives that are started into one NCCL group.
  void joinNext() { joins = true; }
  /// Starts a collective. Errors are thrown later, by isComplete(), isOrdered() or check().
  void begin(uint32_t collective, const std::byte *source, std::byte *target) noexcept;
  /// Returns true if a collective has completed. Throws Error.
  bool isComplete(uint32_t collective);
  /// Makes the compute stream wait for a collective and returns true, or returns false if the
  /// collective is not issued yet. The arena must have a queue.
  bool isOrdered(uint32_t collective);
  /// Returns the time stamps of a collective on its stream, if the queue has a timeline.
  DeviceSpan spanOf(uint32_t collective) const { return flights[collective].span; }
  void check();
  uint64_t begun(uint32_t collective) const {
    return flights[collective].begun.load(std::memory_order_acquire);
  }
  /// Returns `bytes` zeros in device memory, which are the source of an omitted contribution.
  const std::byte *zeros(size_t bytes);
  /// Aborts all collectives in progress. Later calls of the rank do not call NCCL.
  void abort() noexcept;

private:
  enum class State { idle, queued, issuing, issued };
  struct Flight {
    NcclCall call;
    CudaEvent event = nullptr, beganAt = nullptr;
    const std::byte *source = nullptr;
    std::byte *target = nullptr;
    State state = State::idle;
    bool joinsNext = false;
    DeviceSpan span;
    std::atomic<uint64_t> begun{0};
  };
  struct Lane {
    NcclComm comm = nullptr;
    void *registration = nullptr;
    bool reduces = false;
  };

  CudaStream streamOf(const Flight &flight) const {
    return streams[lanes[flight.call.lane].reduces];
  }
  void expect(NcclResult result, NcclComm comm) const;
  void expect(CudaResult result) const;
  bool isSettled(NcclComm comm) const;
  void checkLanes() const;
  void holdLane(const Flight &flight) const;
  uint32_t stamp(const Flight &flight) const;
  void expectAlive() const;
  void pump();
  NcclResult issue(const Flight &flight) const;
  NcclResult issueLaunch(uint64_t end);
  std::optional<uint64_t> endOfLaunch() const;
  Flight &flightAt(uint64_t place) { return flights[waiting[place % waiting.size()]]; }
  const Flight &flightAt(uint64_t place) const { return flights[waiting[place % waiting.size()]]; }
  void pin(const ArenaMemory &memory);
  template <typename Call>
  void onEveryComm(Call call);

  const NcclLibrary &nccl;
  const CudaDriver &cuda;
  int device;
  CudaContext context = nullptr;
  CudaQueue *queue = nullptr;
  NcclComm all = nullptr;
  std::vector<Lane> lanes; ///< elements must not move, because NCCL writes `comm`
  CudaStream streams[2] = {};
  std::vector<Flight> flights;
  std::vector<uint32_t> waiting; ///< ring buffer of started collectives
  uint64_t head = 0, tail = 0;   ///< range of `waiting` whose collectives are not issued yet
  bool joins = false;            ///< true if the next two collectives form one launch
  void *pinned = nullptr;
  CudaPointer zeroMemory = 0;
  size_t zeroBytes = 0;

  std::mutex lock;
  bool hasExpired = false; ///< true after abort() or destroy()
  std::optional<NcclFailure> failure;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCLRANK_H
