//===- Warpgroup.h - Order of warpgroup products ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A product is one operation of four
// warps. It runs when the last of them has issued it, by an agent of the warpgroup, after
// everything that all of its lanes cover. A warp that waits for a group waits for its products, and
// acquires the agent's reads. Until then the product owns its registers.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
#define FSDPRT_EMULATOR_MACHINE_WARPGROUP_H

#include "emulator/machine/VectorClocks.h"
#include <deque>

namespace fsdprt::emulate {

/// The use of a warp's register by products.
struct RegisterUse {
  uint64_t product = 0;     ///< last one that uses it, from 1; 0: none
  uint64_t fences = 0;      ///< number of wgmma.fence before the last access
  uint32_t instruction = 0; ///< of the last access
  enum Kind : uint8_t { Ordinary, Accumulator, Fragment } kind = Ordinary; ///< of the last access
};

/// The products of a warp.
struct LibraryGemm {
  std::vector<RegisterUse> registers; ///< by slots
  uint64_t fences = 0;
  uint64_t issued = 0, known = 0; ///< numbers of products; those up to `known` were waited for
  std::deque<uint64_t> groups;    ///< last product of each group
};

/// A product as issued by the warps.
struct IssuedProduct {
  uint32_t instruction;
  uint64_t a, b; ///< descriptors
  bool adds;     ///< to the accumulators; otherwise to zeros
};

class Warpgroup {
public:
  uint32_t agent = 0;
  std::deque<IssuedProduct> pending; ///< not yet issued by all warps
  uint64_t executed = 0;  ///< number of executed products; the next one is the first of `pending`
  std::deque<Time> times; ///< the agent's, at the end of each that was executed and not all warps
                          ///< have waited for
  uint64_t firstTime = 1; ///< number of the product of times[0]
};

struct WgmmaPlan {
  enum Kind : uint8_t { Half, Brain, TF32 } kind;
  bool sumsAreHalf, aIsShared, negatesA, negatesB, transposesA, transposesB;
  uint16_t columns;
  /// The extent of K is always 32 bytes.
  unsigned inner() const { return kind == TF32 ? 8 : 16; }
  unsigned sumRegisters() const { return columns / (sumsAreHalf ? 4 : 2); }
};

/// Handler of wgmma.mma_async: operands are A's descriptor or registers, B's descriptor, and a
/// predicate; results are the accumulators.
Step issueProduct(Warp &warp, const Instruction &i, LaneMask active);
/// Computes a product of all four warps, from their registers and shared memory.
void runProduct(Warp &last, Warpgroup &group, const IssuedProduct &product);
/// Checks that the registers of another instruction are in no product that the warp has not waited
/// for. Returns false if the warp must wait.
bool useRegisters(Warp &warp, const Instruction &instruction);
/// Returns the product that a warp waits for, in messages.
std::string waitsForProduct(const Warp &warp);
/// Fails if a product waits for a warp all of whose lanes leave.
void leaveWarpgroup(Warp &warp);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
