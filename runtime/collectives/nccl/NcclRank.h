//===- NcclRank.h - One rank's NCCL communicators ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each rank has an NCCL communicator of all ranks. From this communicator, one communicator for
// each lane is split off. A lane consists of a group of the mesh and a channel (gather or reduce).
// All collectives of a channel run on the same stream. The communicators are non-blocking: when an
// NCCL function returns, its work may still be in progress. The rank must not make another call
// before the previous call has ended. From its start to its end, a collective has these states:
//
//     queued    after begin(); waits for the previous call, and for collectives of the same launch
//     issuing   after a poll; NCCL has the call, but has not put its work on the stream yet
//     issued    after a poll; the work is on the stream, followed by an event
//     idle      after isComplete() or isOrdered() has returned true
//
// A poll is a call of begin(), isComplete(), isOrdered() or check(). A poll moves collectives to
// their next states.
//
// If the arena of the rank is on a GPU, the arena has a queue. The channels then use the streams
// `gather` and `reduce` of this queue, and begin() makes the stream of the channel wait for earlier
// work on the compute stream. Later, isOrdered() makes the compute stream wait for the event of the
// collective.
//
// All NCCL calls of a rank are non-blocking, and only a thread that has locked `lock` makes them.
// While abort() runs, no other thread is therefore inside of NCCL.
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

/// An error of NCCL or CUDA. The message of the error does not name the collective.
class NcclFailure : public Error {
public:
  using Error::Error;
};

struct NcclCall {
  fb::CollectiveKind kind;
  NcclType type;
  NcclOperation operation;
  size_t count;
  int root; ///< of a shift: the member from which this rank receives
  uint32_t lane;
  int next = 0; ///< of a shift: the member to which this rank sends
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
  void joinAll(const NcclId &id, uint32_t ranks, uint32_t rank, NcclConfig config);
  /// Creates the communicator of a lane. joinAll() must have been called and must have completed.
  /// Ranks that pass the same `color` form a group, in which they are ordered by `key`.
  void joinLane(size_t lane, uint32_t color, uint32_t key);
  /// Returns true if no NCCL call of the rank is in progress. Throws Error if an earlier call has
  /// failed.
  bool isSettled();
  /// Registers the arena as a symmetric window of a lane. All ranks of the lane must do so. The
  /// window exists when the call has completed, if NCCL supports windows here. Returns the error if
  /// NCCL refuses the memory.
  NcclResult registerWindow(size_t lane, const ArenaMemory &memory);
  bool hasWindow(size_t lane) const { return lanes[lane].window; }
  /// Deregisters all windows. No collective may be in progress.
  void dropWindows();
  /// Makes the arena accessible to the GPU. If the arena is in device memory, registers it with
  /// NCCL for the lanes without a window. If the arena has a queue, the collectives use the streams
  /// of this queue. joinLane() must have been called for all lanes and must have completed.
  void adopt(const ArenaMemory &memory);
  void prepare(std::vector<NcclCall> calls, const std::vector<bool> &reduces);
  /// Begins to finalise the communicators of the rank. All ranks must call finalize(). As soon as
  /// isSettled() then returns true, the ranks must call destroy(). Throws Error.
  void finalize();
  void destroy();

  //===- Collectives --------------------------------------------------------===//

  /// Puts the next two collectives that the rank starts into the same NCCL group.
  void joinNext() { joins = true; }
  /// Starts a collective. If an error occurs, isComplete(), isOrdered() or check() throws it later.
  void begin(uint32_t collective, const std::byte *source, std::byte *target) noexcept;
  /// Returns true if a collective has completed. Throws Error.
  bool isComplete(uint32_t collective);
  /// If a collective has been issued, makes the compute stream wait for it and returns true.
  /// Otherwise returns false. The arena must have a queue.
  bool isOrdered(uint32_t collective);
  /// Returns the time stamps of a collective on its stream. The time stamps are 0 if the queue has
  /// no timeline.
  DeviceSpan spanOf(uint32_t collective) const { return flights[collective].span; }
  void check();
  uint64_t begun(uint32_t collective) const {
    return flights[collective].begun.load(std::memory_order_acquire);
  }
  /// Returns the address of `bytes` zeros in device memory. A rank whose contribution a sum must
  /// omit uses these zeros as its source.
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
    NcclWindow window = nullptr;
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
  NcclResult shift(const Flight &flight, NcclComm comm, CudaStream stream) const;
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
  /// NCCL writes to `comm` of the elements, so the elements must not move in memory
  std::vector<Lane> lanes;
  CudaStream streams[2] = {};
  std::vector<Flight> flights;
  std::vector<uint32_t> waiting; ///< ring buffer of the collectives that the rank has started
  /// the collectives in [head, tail) of `waiting` have not been issued yet
  uint64_t head = 0, tail = 0;
  /// true if the next two collectives that start belong to one launch
  bool joins = false;
  void *pinned = nullptr;
  CudaPointer zeroMemory = 0;
  size_t zeroBytes = 0;

  std::mutex lock;
  bool hasExpired = false; ///< true after abort() or destroy() was called
  std::optional<NcclFailure> failure;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCLRANK_H
