//===- GroupContext.h - Shared by the ranks of a group ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Options of a group of ranks, and the objects that its ranks refer to.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_GROUPCONTEXT_H
#define FSDPRT_EXECUTE_GROUPCONTEXT_H

#include "artifact/Artifact.h"
#include "collectives/Communicator.h"
#include "device/DeviceFactory.h"
#include "execute/RankObserver.h"

namespace fsdprt {

struct RankGroupOptions {
  uint32_t threadsPerRank = 1;
  double timeoutSeconds = 60;
  uint64_t seed = 0;
  DeviceKind device = DeviceKind::cpu;
  bool restrictCalls = false;         ///< filter the system calls of threads that run kernels
  bool cudaGraph = false;             ///< record 'step' once and launch it as a whole
  std::string offloadDirectory;       ///< for the ranks' offload files
  double linkBytesPerSecond = 0;      ///< simulated bandwidth of links; 0: no limit
  uint64_t stepsBefore = 0;           ///< steps of the run before this session, for messages
  std::vector<std::string> onlyKinds; ///< SessionHooks::onlyKinds; empty: all kinds
};

struct GroupContext {
  const Artifact &artifact;
  const Mesh &mesh;
  const fb::Layout &layout; ///< layout of all programs of the group
  const RankGroupOptions &options;
  Communicator &communicator;
  Watchdog &watchdog;
  const std::vector<std::shared_ptr<RankObserver>> &observers;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_GROUPCONTEXT_H
