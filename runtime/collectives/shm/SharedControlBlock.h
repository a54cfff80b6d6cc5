//===- SharedControlBlock.h - Shared state of ranks on a machine -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The control block is shared memory (memfd) that the host creates and all ranks map (ShmHost.h):
//
//     header | a slot per rank | a name per collective | collective slots: rank 0's, rank 1's, ...
//
// A rank writes only to its own slots. There are two exceptions: every rank may set the failure
// flag in the header, and every rank may signal the events of other ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_SHM_SHAREDCONTROLBLOCK_H
#define FSDPRT_COLLECTIVES_SHM_SHAREDCONTROLBLOCK_H

#include "collectives/Communicator.h"

namespace fsdprt {

/// The state of a rank in a collective. All members are 0 at first.
struct alignas(64) CollectiveSlot {
  /// increases by PeerMemory::stages whenever the collective runs
  std::atomic<uint64_t> progress{0};
  uint64_t source = 0, target = 0; ///< offsets of the buffers from the base address of the rank
};

/// The process that supervises the ranks. The ranks check that its heartbeat continues to change.
struct alignas(64) Watcher {
  std::atomic<uint64_t> heartbeat{0}; // 0 until the first heartbeat
  uint32_t process = 0;
  uint32_t startedRanks = 0;         // 1 if this process has started the ranks
  double heartbeatSeconds = 0;       // time limit for heartbeats, in seconds
  char program[32] = {};             // name of the program that this process runs
  std::atomic<uint32_t> isSilent{0}; // 1 if a rank has noticed that `heartbeat` does not change

  /// Returns a text such as "the process that started the ranks (process 42) has sent no heartbeat
  /// for 2 s".
  std::string silence() const;
};

class SharedControlBlock {
public:
  static constexpr size_t nameBytes = 192, mailboxBytes = 1 << 20;

  struct Header {
    uint64_t magic, bytes;
    uint32_t ranks, collectives;
    alignas(64) std::atomic<uint32_t> failed;
    Watcher watcher;
  };
  struct alignas(64) RankSlot {
    RankProgress progress;
    alignas(64) std::atomic<uint64_t> heartbeat; ///< counter that a separate thread increments
    std::atomic<uint32_t> finished;              ///< 1 if the rank has called leave()
    /// event for the waits of all groups whose first member is this rank
    alignas(64) SharedFutexEvent event;
    // exchange() and collect() use the next members, which are counters and buffers for the data.
    alignas(64) std::atomic<uint64_t> exchanges, sent, received;
    alignas(64) std::byte words[2][Communicator::exchangeLimit];
    alignas(64) std::byte mailbox[mailboxBytes];
  };

  SharedControlBlock(uint32_t ranks, uint32_t collectives);
  /// Maps a control block that another process has created. Takes ownership of `descriptor`. Throws
  /// Error if the memory does not contain a valid control block.
  explicit SharedControlBlock(int descriptor);
  ~SharedControlBlock();
  SharedControlBlock(const SharedControlBlock &) = delete;
  SharedControlBlock &operator=(const SharedControlBlock &) = delete;

  int descriptor() const { return file; }
  uint32_t ranks() const { return header().ranks; }
  uint32_t collectives() const { return header().collectives; }
  Header &header() const { return *reinterpret_cast<Header *>(base); }
  RankSlot &rankSlot(uint32_t rank) const {
    return reinterpret_cast<RankSlot *>(base + headerBytes)[rank];
  }
  char *name(uint32_t collective) const;
  CollectiveSlot *slots(uint32_t rank) const;
  /// Returns a watchdog that reads and writes the member `progress` of all rank slots.
  std::unique_ptr<Watchdog> watchdog(double timeoutSeconds) const;

private:
  static constexpr size_t headerBytes = 4096;
  static uint64_t bytesFor(uint32_t ranks, uint32_t collectives);
  void map();

  int file = -1;
  std::byte *base = nullptr;
  uint64_t bytes = 0;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_SHM_SHAREDCONTROLBLOCK_H
