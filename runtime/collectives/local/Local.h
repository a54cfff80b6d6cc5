//===- Local.h - Ranks as threads of one process ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the backend 'local': all ranks are threads of this process and share its memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_LOCAL_H
#define FSDPRT_COLLECTIVES_LOCAL_LOCAL_H

#include "collectives/local/PeerMemory.h"

namespace fsdprt {

class LocalCommunicator final : public PeerMemory {
public:
  LocalCommunicator(Mesh mesh, double timeoutSeconds, uint32_t spins);
  /// Creates a communicator that reports progress to `watchdog`, a result of Watchdog::alone().
  LocalCommunicator(Mesh mesh, std::unique_ptr<Watchdog> watchdog, uint32_t spins);

  const char *name() const override { return "local"; }
  uint32_t processes() const override { return 1; }
  /// Does nothing. The slots of this backend contain addresses, so the base of the arena is not
  /// needed.
  void registerArena(uint32_t, const ArenaMemory &) override {}
  void connect() override;

private:
  struct RankSlot {
    std::unique_ptr<CollectiveSlot[]> slots;
    SharedFutexEvent event;
  };
  std::vector<std::unique_ptr<RankSlot>> rankSlots;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_LOCAL_H
