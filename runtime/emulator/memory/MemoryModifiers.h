//===- MemoryModifiers.h - Modifiers of memory instructions -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses the space, order, cache and vector modifiers of ld, st, atom and red.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_MEMORYMODIFIERS_H
#define FSDPRT_EMULATOR_MEMORY_MEMORYMODIFIERS_H

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Synchronise.h"

namespace fsdprt::emulate {

/// Takes a space (PTX ISA, "State Spaces"). Returns the generic space if the opcode names no space.
inline Space takeSpace(Modifiers &modifiers) {
  int space = modifiers.takeOneOf({"global", "shared", "shared::cta", "shared::cluster", "local",
                                   "param", "param::entry", "param::func", "const"});
  static const Space spaces[] = {Space::Global, Space::Shared, Space::Shared,
                                 Space::Shared, Space::Local,  Space::Param,
                                 Space::Param,  Space::Param,  Space::Const};
  return space < 0 ? Space::Generic : spaces[space];
}

/// Takes cache operators and eviction hints, which have no effect. Returns true if the opcode has
/// .L2::cache_hint. With this modifier, the instruction has an additional operand.
inline bool takeCaches(Modifiers &modifiers) {
  modifiers.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  modifiers.take("nc");
  modifiers.take("unified");
  for (const char *level : {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
                            "L1::evict_last", "L1::no_allocate", "L2::evict_normal",
                            "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B"})
    modifiers.take(level);
  return modifiers.take("L2::cache_hint");
}

/// Takes the order of an access (PTX ISA, "Memory Consistency Model: Operation Types").
inline Order takeOrder(Modifiers &modifiers) {
  int order =
      modifiers.takeOneOf({"weak", "volatile", "relaxed", "mmio", "acquire", "release", "acq_rel"});
  modifiers.takeOneOf({"cta", "cluster", "gpu", "sys"});
  static const Order orders[] = {Order::Weak,    Order::Relaxed, Order::Relaxed, Order::Relaxed,
                                 Order::Acquire, Order::Release, Order::Both};
  return order < 0 ? Order::Weak : orders[order];
}

inline unsigned takeVector(Modifiers &modifiers) {
  int vector = modifiers.takeOneOf({"v2", "v4", "v8"});
  return vector < 0 ? 1 : 2u << vector;
}

/// Returns the address that a lane accesses: the sum of the base in `slot` and `offset`.
inline uint64_t addressOf(Warp &warp, Slot slot, bool isWide, int64_t offset, unsigned lane) {
  return isWide ? warp.at<uint64_t>(slot)[lane] + offset
                : uint32_t(warp.at<uint32_t>(slot)[lane] + offset);
}

/// An operand [base + offset] of an instruction.
struct AddressOperand {
  Space space;
  Slot base = 0;
  int64_t offset = 0;
  bool isWide = false;

  AddressOperand(Space space) : space(space) {}
  AddressOperand(Decoder &d, const Operand &operand, Space space) : space(space) {
    base = d.address(operand, this->space, offset, isWide);
  }
  uint64_t at(Warp &warp, unsigned lane) const {
    return addressOf(warp, base, isWide, offset, lane);
  }
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_MEMORYMODIFIERS_H
