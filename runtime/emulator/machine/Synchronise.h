//===- Synchronise.h - Releases and acquires at addresses -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Memory Consistency Model: Release and Acquire Patterns". A strong write by a lane that
// releases, or that has executed a fence before, gives what the lane has done to whoever reads that
// address by a strong read and acquires, or executes a fence later.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H
#define FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H

#include "emulator/machine/Access.h"

namespace fsdprt::emulate {

enum class Order : uint8_t { Weak, Relaxed, Acquire, Release, Both };

/// After a strong access of one lane.
void strongRead(Warp &warp, unsigned lane, const Place &place, Order order);
void strongWrite(Warp &warp, unsigned lane, const Place &place, Order order);
/// fence and membar.
void fence(Warp &warp, LaneMask lanes);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_SYNCHRONISE_H
