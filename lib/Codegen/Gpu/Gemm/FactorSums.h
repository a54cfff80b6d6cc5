//===- FactorSums.h - Sums of a factor over k -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_FACTORSUMS_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_FACTORSUMS_H

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "GpuGemm.h"

namespace mlir::fsdp::gemm {

class FactorSums {
public:
  FactorSums(Sm90Builder &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel)
      : b(b), problem(problem), plan(plan), kernel(kernel), side(*plan.summed()) {}

  /// The tile that a block computes, as seen by one of the threads that multiply.
  struct Tile {
    Value thread; ///< number of the thread among all that multiply
    Value firstRow, firstCol;
    Value part; ///< number of the part of k
  };
  /// Sums of a thread before the first tile of k.
  SmallVector<Value> begin() { return {b.number(0), b.number(0)}; }
  /// Adds the tile of k with the number `kBlock`, whose stage begins at `stage`, if this block has
  /// it. Returns the new sums.
  SmallVector<Value> add(const Tile &tile, Value kBlock, Value stage, ValueRange sums);
  /// Adds the sums of all threads, and stores the results or keeps them in scratch. `shared` is the
  /// address of factorSumBytes bytes of shared memory.
  void finish(const Tile &tile, ValueRange sums, Value shared);

private:
  static constexpr int64_t threads = 2 * Sm90Builder::groupThreads; ///< threads that multiply
  /// Each of them adds two columns in one of `groups()` ranges of k.
  int64_t pairs() const { return side.width / 2; }
  int64_t groups() const { return threads / pairs(); }
  Value shareOf(const Tile &tile);
  void store(const Tile &tile, Value inTile, Value total);
  SmallVector<Value> addRows(const Tile &tile, Value stage, ValueRange sums);

  Sm90Builder &b;
  const Problem &problem;
  const GpuPlan &plan;
  func::FuncOp kernel;
  const GpuSide &side;
};

/// Emits the addition of all shares and parts of element `number` of the sum of a factor, if the
/// element exists.
void addFactorSumShares(GpuBuilder &b, const Problem &problem, const GpuPlan &plan,
                        func::FuncOp kernel, Value number);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_FACTORSUMS_H
