//===- Shm.h - Ranks as processes of one machine ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every process has one rank. The arena of this rank is in a memfd. The arenas of all other ranks
// are mapped read-only. The slots, the events and the mailboxes are in the control block.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_SHM_SHM_H
#define FSDPRT_COLLECTIVES_SHM_SHM_H

#include "collectives/Channel.h"
#include "collectives/local/PeerMemory.h"
#include "device/Arena.h"
#include <thread>

namespace fsdprt {

class ShmCommunicator final : public PeerMemory {
public:
  /// Sends `agreement` to the host and receives the control block. `channel` is the descriptor of
  /// the channel of the rank. The communicator takes ownership of `channel`. Throws Error if the
  /// agreements of the ranks differ (core/Agreement.h).
  ShmCommunicator(Mesh mesh, uint32_t rank, int channel, const std::string &agreement,
                  double timeoutSeconds, uint32_t spins);
  ~ShmCommunicator() override;

  const char *name() const override { return "shm"; }
  uint32_t processes() const override { return ranks(); }
  bool needsSharedArenas() const override { return true; }
  void registerArena(uint32_t rank, const ArenaMemory &memory) override { own = memory; }
  void connect() override;
  void exchange(const void *mine, size_t bytes, void *all) override;
  void collect(uint32_t rank, const void *data, size_t bytes, void *into) override;
  void leave() override;
  void poll() override;

private:
  Message receive(Message::Kind kind, int &attached);
  uint64_t scheduleHash() const;
  void writeNames();
  void beat();
  void beatHeart();
  void checkWatcher();
  /// Waits until ready() returns true, which happens when the process of `rank` has written to its
  /// slot. Throws Error if that process sends no heartbeat for as long as the time limit.
  template <typename Ready>
  void awaitDesk(uint32_t rank, const char *why, Ready ready);

  Channel channel;
  std::unique_ptr<SharedControlBlock> block;
  ArenaMemory own;
  std::vector<std::unique_ptr<PeerArena>> arenas;
  double timeout;
  uint64_t watcherBeats = 0; ///< heartbeat of the watcher at the last check
  /// seconds without a new heartbeat; time of the last check
  double watcherSilent = 0, lastLooked = 0;
  std::atomic<bool> ending{false};
  FutexEvent endingEvent;
  std::thread heart;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_SHM_SHM_H
