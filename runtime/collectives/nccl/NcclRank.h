//===- NcclRank.h - One rank's NCCL communicators ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has a communicator of all ranks, and split from it a communicator for each lane. A lane is
// a group of the mesh and a channel (gather or reduce). Each channel has a stream. Communicators
// are non-blocking: a call may still be in progress when it returns, and the rank's next call must
// wait for it. States of a collective:
//
//     begin()       queued   waits for the previous call, and for collectives of the same launch
//     any poll      issuing  NCCL has the call; its work is not on the stream yet
//     any poll      issued   the work is on the stream, followed by an event
//     isComplete()  true     the event has been reached
//
// If the rank is on a GPU, its arena has a queue, and the channels use the queue's streams `gather`
// and `reduce`. These streams first wait for the work that was on the compute stream at begin().
// After the collective is issued, isOrdered() makes the compute stream wait for the event.
//
// A poll is a call of begin, isComplete, isOrdered or check. All calls of a rank into NCCL are
// non-blocking and hold its lock, so that abort() finds no thread inside NCCL.
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

/// An error of NCCL or CUDA. The code that catches it adds the collective to the message.
class NcclFailure : public Error {
public:
  using Error::Error;
};

/// Arguments of an NCCL call for a collective.
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

  /// Makes the rank's device current for this thread.
  void useDevice() const;
  void joinAll(const NcclId &id, uint32_t ranks, uint32_t rank);
  /// Joins a lane, after joinAll(). Ranks with equal `color` form a group, ordered by `key`.
  void joinLane(size_t lane, uint32_t color, uint32_t key);
  /// Returns true if no call is in progress. Throws Error.
  bool isSettled();
  /// Makes the arena accessible to the device, and registers the arena with NCCL if it is in device
  /// memory. Uses the arena's queue, if there is one. All lanes must have been joined.
  void adopt(const ArenaMemory &memory);
  void prepare(std::vector<NcclCall> calls, const std::vector<bool> &reduces);
  /// Starts an orderly end, which all ranks must start. Call destroy() once isSettled() returns
  /// true. Throws Error.
  void finalize();
  void destroy();

  //===- Collectives --------------------------------------------------------===//

  /// Puts the next two collectives into one NCCL group.
  void joinNext() { joins = true; }
  /// Starts a collective. Errors are thrown later, by isComplete or isOrdered.
  void begin(uint32_t collective, const std::byte *source, std::byte *target) noexcept;
  /// Returns true if a collective has completed. Throws Error.
  bool isComplete(uint32_t collective);
  /// Makes the compute stream wait for an issued collective; returns false if it is not issued yet.
  /// Requires a queue.
  bool isOrdered(uint32_t collective);
  /// Returns the time span of a collective on its stream, if the queue has a timeline.
  DeviceSpan spanOf(uint32_t collective) const { return flights[collective].span; }
  /// Throws the first error that has been reported.
  void check();
  /// Returns how often a collective was started.
  uint64_t begun(uint32_t collective) const {
    return flights[collective].begun.load(std::memory_order_acquire);
  }
  /// Returns `bytes` zeros in device memory, the source of a rank whose contribution is omitted.
  const std::byte *zeros(size_t bytes);
  /// Aborts all collectives in progress. No call into NCCL follows. A second call does nothing.
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
  std::vector<Lane> lanes; // The elements must not move, because NCCL writes them.
  CudaStream streams[2] = {};
  std::vector<Flight> flights;
  std::vector<uint32_t> waiting; // ring buffer of started collectives; no collective is in it twice
  uint64_t head = 0, tail = 0;   // range of `waiting` that is not issued yet
  bool joins = false;            // the next collective shares a launch with the one after it
  void *pinned = nullptr;
  CudaPointer zeroMemory = 0;
  size_t zeroBytes = 0;

  std::mutex lock;
  bool hasExpired = false; // aborted, or destroyed
  std::optional<NcclFailure> failure;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCLRANK_H
