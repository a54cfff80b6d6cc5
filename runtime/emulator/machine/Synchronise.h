//===- Synchronise.h - Releases and acquires at addresses -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Memory Consistency Model: Release and Acquire Patterns". A strong write that
// has release order or follows a fence of its lane publishes the lane's earlier accesses. Another
// lane acquires these accesses when it reads the address by a strong read that has acquire order or
// is followed by a fence of the reading lane.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H
#define FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H

#include "emulator/machine/Access.h"

namespace fsdprt::emulate {

enum class Order : uint8_t { Weak, Relaxed, Acquire, Release, Both };

/// These functions update the vector clocks for a strong read, a strong write, or a fence.
void strongRead(Warp &warp, unsigned lane, const Place &place, Order order);
void strongWrite(Warp &warp, unsigned lane, const Place &place, Order order);
void fence(Warp &warp, LaneMask lanes);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H
