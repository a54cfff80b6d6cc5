//===- NcclWindows.h - Arenas that other ranks of NCCL address --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A window is a range of memory that all ranks of an NCCL communicator have registered together.
// NCCL then moves data directly between the arenas of ranks, by kernels or by copy engines. A
// symmetric window requires that the operands of a collective have the same offsets on all ranks.
// The plan of the arena gives them these offsets, except to operands that are a rank's piece of a
// buffer. Lanes with such operands have no windows.
//
//   1. allocate()  ncclMemAlloc allocates the arenas, because no other memory can be registered
//   2. agree()     all processes want windows, and their arenas have one size
//   3. NcclRank    ncclCommWindowRegister: all ranks of each communicator, in the order of lanes
//   4. agree()     NCCL has made a window on every rank; otherwise, all ranks deregister theirs
//
// If one of these steps is impossible, refuse() keeps the reason, and the run goes on without
// windows, or ends if the user has asked for them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_NCCL_NCCLWINDOWS_H
#define FSDPRT_COLLECTIVES_NCCL_NCCLWINDOWS_H

#include "collectives/nccl/NcclLibrary.h"
#include "device/DeviceFactory.h"
#include <set>

namespace fsdprt {

/// What the user asks of NCCL. NcclConfig::unset means that NCCL decides.
struct NcclSettings {
  enum class Windows { automatic, on, off } windows = Windows::automatic;
  int ctaPolicy = NcclConfig::unset;  ///< ncclPolicyEfficiency or ncclPolicyZero
  int maxCTAs = NcclConfig::unset;    ///< most multiprocessors that a collective occupies
  static constexpr int mostCTAs = 32; ///< NCCL's limit of maxCTAs

  /// Returns the configuration of communicators. Throws Error if the library is too old for it.
  NcclConfig configFor(const NcclLibrary &nccl) const;
};

class NcclWindows final : public DeviceAllocator {
public:
  /// `isOnDevice` says whether arenas are on GPUs. Throws Error if the user has asked for windows
  /// that the library does not have.
  NcclWindows(const NcclLibrary &nccl, const NcclSettings &settings, bool isOnDevice);

  std::byte *allocate(uint64_t bytes) override;
  void release(std::byte *memory) override;
  bool hasAllocated(const std::byte *memory) const { return allocated.count(memory); }

  /// Returns true unless a reason against windows is known.
  bool areWanted() const { return isPossible && reason.empty(); }
  /// Keeps a reason against windows, which ends the run if the user has asked for windows.
  void refuse(const std::string &why);
  /// Returns a text for the first lines of a run, which is empty if nobody has asked for windows.
  std::string describe() const;

private:
  const NcclLibrary &nccl;
  NcclSettings settings;
  bool isPossible; ///< false if no windows are asked for, or arenas are not on GPUs
  std::string reason;
  std::set<const std::byte *> allocated;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCL_NCCLWINDOWS_H
