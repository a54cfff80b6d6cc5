//===- Warpgroup.h - LibraryGemm that four warps have in flight ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A product is one operation of four
// warps: it runs when the last of them has issued it, by an agent that the warpgroup has, which
// knows what all of its lanes know. A warp that waits for a group waits for that, and learns what
// the agent has read. Until then its registers belong to the product.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
#define FSDPRT_EMULATOR_MACHINE_WARPGROUP_H

#include "emulator/machine/VectorClocks.h"
#include <deque>

namespace fsdprt::emulate {

/// What products have to do with a register of a warp.
struct RegisterUse {
  uint64_t product = 0;     ///< the last that uses it, from 1; 0: none
  uint64_t fences = 0;      ///< how many wgmma.fence were before the last access
  uint32_t instruction = 0; ///< of the last access
  enum Kind : uint8_t { Ordinary, Accumulator, Fragment } kind = Ordinary; ///< of the last access
};

/// Of a warp.
struct LibraryGemm {
  std::vector<RegisterUse> registers; ///< by slots
  uint64_t fences = 0;
  uint64_t issued = 0, known = 0; ///< products; `known` have been waited for
  std::deque<uint64_t> groups;    ///< the last product of each
};

/// A product as its warps have issued it.
struct IssuedProduct {
  uint32_t instruction;
  uint64_t a, b; ///< descriptors
  bool adds;     ///< to the accumulators, which are zeros otherwise
};

class Warpgroup {
public:
  uint32_t agent = 0;
  std::deque<IssuedProduct> pending; ///< that not all warps have issued
  uint64_t executed = 0;             ///< the first one pending is the next
  std::deque<Time> times; ///< the agent's, at the end of each that was executed and not all warps
                          ///< have waited for
  uint64_t firstTime = 1; ///< the product of the first of `times`
};

struct WgmmaPlan {
  enum Kind : uint8_t { Half, Brain, TF32 } kind;
  bool sumsAreHalf, aIsShared, negatesA, negatesB, transposesA, transposesB;
  uint16_t columns;
  /// Bytes of K are always 32.
  unsigned inner() const { return kind == TF32 ? 8 : 16; }
  unsigned sumRegisters() const { return columns / (sumsAreHalf ? 4 : 2); }
};

/// wgmma.mma_async: operands are A's descriptor or its registers, B's descriptor, and a predicate;
/// results the accumulators.
Step issueProduct(Warp &warp, const Instruction &i, LaneMask active);
/// A product of all four warps, which their registers and the shared memory hold.
void runProduct(Warp &last, Warpgroup &group, const IssuedProduct &product);
/// Of a warp's instruction that is no wgmma: its registers are in no product that it has not waited
/// for. False: it has to wait.
bool useRegisters(Warp &warp, const Instruction &instruction);
/// What a warp waits for, for messages.
std::string waitsForProduct(const Warp &warp);
/// All lanes of a warp leave: no product may wait for it.
void leaveWarpgroup(Warp &warp);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
