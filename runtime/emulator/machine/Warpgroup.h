//===- Warpgroup.h - Order of warpgroup products ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A product is one
// operation of the four warps of a warpgroup. The emulator computes a product when all four warps
// have issued the product. An agent of the warpgroup (see VectorClocks.h) makes the memory accesses
// of the product. An access is ordered before the product if all lanes of the warpgroup cover the
// access. A warp that waits for a group of products acquires the agent's accesses. Until a warp has
// waited for a product, no other instruction may access the registers of the product.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
#define FSDPRT_EMULATOR_MACHINE_WARPGROUP_H

#include "emulator/machine/VectorClocks.h"
#include <deque>

namespace fsdprt::emulate {

/// The last access to a register of a warp, and the last product that uses the register.
struct RegisterUse {
  uint64_t product = 0;     ///< number of the last product that uses the register; 0 if none
  uint64_t fences = 0;      ///< number of wgmma.fence instructions before the last access
  uint32_t instruction = 0; ///< index of the instruction of the last access
  enum Kind : uint8_t { Ordinary, Accumulator, Fragment } kind = Ordinary; ///< kind of last access
};

/// The products that a warp has issued, and the registers that they use.
struct WarpProducts {
  std::vector<RegisterUse> registers; ///< by slot
  uint64_t fences = 0;
  uint64_t issued = 0, known = 0; ///< index of the last issued product, and of the last product for
                                  ///< which the warp has waited
  std::deque<uint64_t> groups;    ///< index of each group's last product
};

/// A product that some warps of the warpgroup have issued.
struct IssuedProduct {
  uint32_t instruction;
  uint64_t a, b; ///< matrix descriptors
  bool adds;     ///< true if the product is added to the accumulators, false if it replaces them
};

class Warpgroup {
public:
  uint32_t agent = 0;
  std::deque<IssuedProduct> pending; ///< products that at least one warp has not issued yet
  uint64_t executed = 0;             ///< number of products that were removed from `pending`

  /// The time of the agent after each executed product for which some warp has not waited yet.
  std::deque<Time> times;
  uint64_t firstTime = 1; ///< index of the product to which times[0] belongs
};

struct WgmmaPlan {
  enum Kind : uint8_t { Half, Brain, TF32 } kind;
  bool sumsAreHalf, aIsShared, negatesA, negatesB, transposesA, transposesB;
  uint16_t columns;
  /// Returns the extent of K in elements. The extent of K in bytes is always 32.
  unsigned inner() const { return kind == TF32 ? 8 : 16; }
  unsigned sumRegisters() const { return columns / (sumsAreHalf ? 4 : 2); }
};

/// Executes wgmma.mma_async. The operands are the descriptor or the registers of A, the descriptor
/// of B, and a predicate; the results are the accumulators.
Step issueProduct(Warp &warp, const Instruction &i, LaneMask active);
/// Computes a product that all four warps have issued. Its operands are in the registers of these
/// warps and in shared memory.
void runProduct(Warp &last, Warpgroup &group, const IssuedProduct &product);
/// Fails if `instruction`, which is not a wgmma, accesses a register of a product for which the
/// warp has not waited. Only an instruction that copies a register may read such a register.
/// Returns false if the warp must wait before the instruction can run.
bool useRegisters(Warp &warp, const Instruction &instruction);
/// Returns a description, for messages, of the product that a warp waits for.
std::string waitsForProduct(const Warp &warp);
/// Called when all lanes of `warp` have exited. Fails if the warpgroup has a pending product that
/// `warp` has not issued.
void leaveWarpgroup(Warp &warp);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_WARPGROUP_H
