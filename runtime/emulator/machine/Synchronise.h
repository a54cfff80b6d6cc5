//===- Synchronise.h - Releases and acquires at addresses -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Memory Consistency Model: Release and Acquire Patterns". A strong write by a lane that
// releases, or has executed a fence before, publishes the lane's earlier accesses. A lane that
// reads the address by a strong read acquires them, by that read or by a later fence.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H
#define FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H

#include "emulator/machine/Access.h"

namespace fsdprt::emulate {

enum class Order : uint8_t { Weak, Relaxed, Acquire, Release, Both };

/// To be called after a strong access of one lane.
void strongRead(Warp &warp, unsigned lane, const Place &place, Order order);
void strongWrite(Warp &warp, unsigned lane, const Place &place, Order order);
/// Executes fence or membar.
void fence(Warp &warp, LaneMask lanes);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H
