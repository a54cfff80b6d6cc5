//===- NcclBackend.cpp - NCCL, for the conformance tests --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Registers two backends that use the NCCL stub (NcclStub.h). The ranks are threads. The first
// backend has one Communicator for all ranks. The second backend has one Communicator per rank, and
// shared memory connects these objects as if the ranks were processes.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Local.h"
#include "collectives/nccl/Nccl.h"
#include "collectives/shm/Shm.h"
#include "test/collectives/RankThreads.h"
#include <cstdlib>

using namespace fsdprt;
using namespace fsdprt::test;

#ifdef FSDPRT_NCCL_STUB_LIBRARY
static constexpr bool isStub = true;
[[maybe_unused]] static const int paths =
    setenv("FSDPRT_NCCL_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1) |
    setenv("FSDPRT_CUDA_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1);
#else
static constexpr bool isStub = false;
#endif

namespace {
class NcclBackend : public Backend {
public:
  bool canMeet(uint32_t ranks) const override {
    const char *shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return isStub ||
           ranks <= static_cast<uint32_t>(
                        CudaDriver("backend 'nccl'", CudaDriver::Use::transfers).devices()) ||
           (shared && *shared == '1');
  }
};

class NcclThreads final : public NcclBackend {
public:
  const char *name() const override { return "nccl"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    NcclCommunicator communicator(
        std::make_unique<LocalCommunicator>(meeting.mesh, meeting.timeoutSeconds, /*spins=*/100),
        /*spins=*/100);
    attendTogether(communicator, meeting, /*sumsInOrder=*/isStub, body);
  }
};

/// Uses one communicator for each rank, as a run with several processes does, but the ranks are
/// threads.
class NcclProcesses final : public NcclBackend {
public:
  const char *name() const override { return "nccl_over_shm"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    meetAtHost(meeting, [&](uint32_t rank, int channel) {
      NcclCommunicator communicator(
          std::make_unique<ShmCommunicator>(meeting.mesh, rank, channel, /*agreement=*/"",
                                            meeting.timeoutSeconds, /*spins=*/100),
          /*spins=*/100);
      attendAlone(communicator, meeting, rank, /*sumsInOrder=*/isStub, body);
    });
  }
};
} // namespace

static RegisterBackend threads(std::make_unique<NcclThreads>());
static RegisterBackend processes(std::make_unique<NcclProcesses>());
