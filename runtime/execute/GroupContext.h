//===- GroupContext.h - Shared by the ranks of a group ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_GROUPCONTEXT_H
#define FSDPRT_EXECUTE_GROUPCONTEXT_H

#include "artifact/Artifact.h"
#include "collectives/Communicator.h"
#include "core/CpuBinding.h"
#include "device/DeviceFactory.h"
#include "execute/RankObserver.h"

namespace fsdprt {

struct RankGroupOptions {
  uint32_t threadsPerRank = 1;
  CpuBinding cpus; ///< CPUs of the threads of the ranks of this process
  double timeoutSeconds = 60;
  uint64_t seed = 0;
  DeviceKind device = DeviceKind::cpu;
  /// True if threads that run kernels get filters for system calls.
  bool restrictCalls = false;
  bool cudaGraph = false;             ///< true if the program 'step' is launched as one CUDA graph
  std::string offloadDirectory;       ///< folder that contains the files of offloaded states
  double linkBytesPerSecond = 0;      ///< simulated bandwidth of links; 0 to simulate none
  uint64_t stepsBefore = 0;           ///< number of steps that were made before this run
  std::vector<std::string> onlyKinds; ///< kinds in SessionHooks::onlyKinds; empty for all kinds
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
