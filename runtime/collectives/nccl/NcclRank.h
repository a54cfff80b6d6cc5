//===- NcclRank.h - One rank's NCCL communicators ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has a communicator of all ranks and, split from it, one for each lane. A lane is a group
// of the mesh and a channel, gather or reduce; a channel has a stream. Communicators are
// non-blocking: a call may still be in progress when it returns, and the rank's next call must wait
// for it. States of a collective:
//
//     begin()       queued   waits for the previous call, and for collectives of the same launch
//     any poll      issuing  NCCL has the call; its work is not on the stream yet
//     any poll      issued   the work is on the stream, followed by an event
//     isComplete()  true     the event has been reached
//
// For a rank on a GPU, whose arena has a queue, channels use its streams gather and reduce. These
// first wait for the compute stream's work before begin(). Once the collective is issued,
// isOrdered() makes the compute stream wait for its event.
//
// A poll is any of begin, isComplete and check. All calls of a rank into NCCL are non-blocking and
// under its lock; so abort() finds no thread inside of NCCL.
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

/// An error of NCCL or CUDA. Whoever catches it adds the collective to the message.
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

  //===- Set-up and end: by one thread, for all ranks here, stage by stage --===//

  /// Makes the rank's device current for this thread.
  void useDevice() const;
  void joinAll(const NcclId &id, uint32_t ranks, uint32_t rank);
  /// Joins a lane, after joinAll(). Ranks with equal `color` form a group, in the order of `key`.
  void joinLane(size_t lane, uint32_t color, uint32_t key);
  /// Returns true if no call is in progress. Throws Error.
  bool isSettled();
  /// Makes the arena accessible to the device, and registers it with NCCL if it is in device
  /// memory. Takes over its queue. Call it after joining all lanes.
  void adopt(const ArenaMemory &memory);
  void prepare(std::vector<NcclCall> calls, const std::vector<bool> &reduces);
  /// Starts an orderly end together with all other ranks. Call destroy() once isSettled(). Throws
  /// Error.
  void finalize();
  void destroy();

  //===- Collectives --------------------------------------------------------===//

  /// Puts the next collective and the one after it into one NCCL group.
  void joinNext() { joins = true; }
  /// Starts a collective. Errors are thrown by isComplete.
  void begin(uint32_t collective, const std::byte *source, std::byte *target) noexcept;
  /// Returns true if a collective has completed. Throws Error.
  bool isComplete(uint32_t collective);
  /// For a rank with a queue: returns true once the compute stream waits for the collective.
  bool isOrdered(uint32_t collective);
  /// Returns the time span of a collective on its stream, if the queue has a timeline.
  DeviceSpan spanOf(uint32_t collective) const { return flights[collective].span; }
  /// Throws the first error that has been reported.
  void check();
  /// Returns how often a collective was started.
  uint64_t begun(uint32_t collective) const {
    return flights[collective].begun.load(std::memory_order_acquire);
  }
  /// Returns `bytes` zeros in device memory, as a source that adds nothing.
  const std::byte *zeros(size_t bytes);
  /// Aborts what is in progress. After that there are no calls into NCCL. More calls do nothing.
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
  std::vector<Lane> lanes; // never moved: NCCL writes into them
  CudaStream streams[2] = {};
  std::vector<Flight> flights;
  std::vector<uint32_t> waiting; // ring buffer: each collective is in it at most once
  uint64_t head = 0, tail = 0;   // range of collectives that are not issued yet
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
