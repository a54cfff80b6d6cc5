//===- Warpgroup.h - Order of warpgroup products ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A product is one
// operation of the four warps of a warpgroup. A product runs when the last of these warps has
// issued it. An agent of the warpgroup makes the accesses of the product, which are ordered after
// the accesses that all lanes cover (see VectorClocks.h). A warp that waits for a group of products
// acquires the agent's accesses. Until then no other instruction may access the registers of these
// products.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
#define FSDPRT_EMULATOR_MACHINE_WARPGROUP_H

#include "emulator/machine/VectorClocks.h"
#include <deque>

namespace fsdprt::emulate {

/// The last access to a register of a warp, and the register's use by products.
struct RegisterUse {
  uint64_t product = 0;     ///< index of the last product that uses the register, from 1; 0 if none
  uint64_t fences = 0;      ///< number of wgmma.fence instructions before the last access
  uint32_t instruction = 0; ///< index of the instruction of the last access
  enum Kind : uint8_t { Ordinary, Accumulator, Fragment } kind = Ordinary; ///< kind of last access
};

/// The products of a warp.
struct WarpProducts {
  std::vector<RegisterUse> registers; ///< by slot
  uint64_t fences = 0;
  uint64_t issued = 0, known = 0; ///< indices of the last products issued and waited for
  std::deque<uint64_t> groups;    ///< index of each group's last product
};

/// A product as issued by the warps.
struct IssuedProduct {
  uint32_t instruction;
  uint64_t a, b; ///< matrix descriptors
  bool adds;     ///< adds to the accumulators instead of to zeros
};

class Warpgroup {
public:
  uint32_t agent = 0;
  std::deque<IssuedProduct> pending; ///< products that some warp has not issued yet
  uint64_t executed = 0;             ///< number of executed products, none of which is in `pending`

  /// Time of the agent at the end of each executed product that not all warps have waited for.
  std::deque<Time> times;
  uint64_t firstTime = 1; ///< index of the product of times[0]
};

struct WgmmaPlan {
  enum Kind : uint8_t { Half, Brain, TF32 } kind;
  bool sumsAreHalf, aIsShared, negatesA, negatesB, transposesA, transposesB;
  uint16_t columns;
  /// Returns the extent of K in elements, which always has 32 bytes.
  unsigned inner() const { return kind == TF32 ? 8 : 16; }
  unsigned sumRegisters() const { return columns / (sumsAreHalf ? 4 : 2); }
};

/// Executes wgmma.mma_async. The operands are the descriptor or the registers of A, the descriptor
/// of B, and a predicate; the results are the accumulators.
Step issueProduct(Warp &warp, const Instruction &i, LaneMask active);
/// Computes a product that all four warps have issued, from their registers and shared memory.
void runProduct(Warp &last, Warpgroup &group, const IssuedProduct &product);
/// Checks that no product for which the warp must still wait uses registers of `instruction`, which
/// is not a wgmma. Returns false if the warp must wait before the instruction can run.
bool useRegisters(Warp &warp, const Instruction &instruction);
/// Returns a description, for messages, of the product that a warp waits for.
std::string waitsForProduct(const Warp &warp);
/// Fails if `warp`, all of whose lanes have exited, has not issued a pending product.
void leaveWarpgroup(Warp &warp);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
