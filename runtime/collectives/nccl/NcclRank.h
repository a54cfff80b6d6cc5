//===- NcclRank.h - What one rank has of NCCL -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has a communicator of all ranks and, split from it, one for each lane: a group of the mesh
// and a channel, gather or reduce. A channel has a stream. No communicator blocks, so a call may be
// under way when it returns, and the next one on this rank has to wait until it is not:
//
//     begin()       queued   the call waits for the one before it, and for those that are one
//                            launch with it
//     any look      issuing  NCCL has the call; its work is not on the stream yet
//     any look      issued   the work is on the stream, and an event after it
//     isComplete()  true     the event has come
//
// Of a rank on a GPU, whose arena has a queue, channels are its streams gather and reduce; what
// begins is after its compute stream there, and isOrdered() puts that after the event, as soon as
// it is issued.
//
// A look is any of begin, isComplete and check. All calls of a rank into NCCL are under its lock,
// which is held for the time of calls that do not block; so abort() finds no thread inside.
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

/// What NCCL or CUDA report; whoever catches it knows at which collective.
class NcclFailure : public Error {
public:
  using Error::Error;
};

/// A collective command as NCCL takes it.
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

  /// The next calls of this thread are for the rank's device.
  void useDevice() const;
  void joinAll(const NcclId &id, uint32_t ranks, uint32_t rank);
  /// After that: those with the same color are together, in the order of their keys.
  void joinLane(size_t lane, uint32_t color, uint32_t key);
  /// No call is under way. Throws Error.
  bool isSettled();
  /// After all lanes: makes memory known to the device, and registers it if it is the device's
  /// own. Its queue is the rank's.
  void adopt(const ArenaMemory &memory);
  void prepare(std::vector<NcclCall> calls, const std::vector<bool> &reduces);
  /// Ends orderly, with all others: destroy() when isSettled(). Throws Error.
  void finalize();
  void destroy();

  //===- Collectives --------------------------------------------------------===//

  /// The collective that begins next is in one group of NCCL's with that after it.
  void joinNext() { joins = true; }
  /// Fails later: isComplete throws then.
  void begin(uint32_t collective, const std::byte *source, std::byte *target) noexcept;
  /// Throws Error.
  bool isComplete(uint32_t collective);
  /// The same of a rank with a queue: what it computes from here on is after the collective.
  bool isOrdered(uint32_t collective);
  /// When it was on its stream, where the queue has a timeline.
  DeviceSpan spanOf(uint32_t collective) const { return flights[collective].span; }
  /// Throws Error if one has been reported.
  void check();
  /// How often a collective was begun.
  uint64_t begun(uint32_t collective) const {
    return flights[collective].begun.load(std::memory_order_acquire);
  }
  /// As a source for what contributes nothing.
  const std::byte *zeros(size_t bytes);
  /// Ends what is under way. Once; from then on there are no calls into NCCL.
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
  std::vector<uint32_t> waiting; // a ring: a collective is in it once at most
  uint64_t head = 0, tail = 0;   // of what is not issued yet
  bool joins = false;            // what begins next, with that after it
  void *pinned = nullptr;
  CudaPointer zeroMemory = 0;
  size_t zeroBytes = 0;

  std::mutex lock;
  bool hasExpired = false; // aborted, or destroyed
  std::optional<NcclFailure> failure;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCLRANK_H
