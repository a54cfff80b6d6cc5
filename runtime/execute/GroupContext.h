//===- GroupContext.h - What the ranks of a group share ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Options of a group, and what each of its ranks refers to.
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
  bool cudaGraph = false;             ///< 'step' is recorded once and launched as a whole
  std::string offloadDirectory;       ///< of the ranks' files, where the layout has them
  double linkBytesPerSecond = 0;      ///< of links that collectives are slowed down to; 0: not
  uint64_t stepsBefore = 0;           ///< of the run, before the first 'step' here: for messages
  std::vector<std::string> onlyKinds; ///< see SessionHooks; empty: all
};

struct GroupContext {
  const Artifact &artifact;
  const Mesh &mesh;
  const fb::Layout &layout; ///< of all programs of the group
  const RankGroupOptions &options;
  Communicator &communicator;
  Watchdog &watchdog;
  const std::vector<std::shared_ptr<RankObserver>> &observers;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_GROUPCONTEXT_H
