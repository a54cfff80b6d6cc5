//===- SharedDraws.h - Random numbers for several lanes ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_FUNCTIONS_SHAREDDRAWS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_FUNCTIONS_SHAREDDRAWS_H

#include "Codegen/Gpu/Attention/Sm80Attention.h"

namespace mlir::fsdp::attention {

/// Emits those random elements of a score function that lanes of a warp can compute for each other.
class SharedDraws {
public:
  using Values = FragmentFunction::Values;

  /// Keys are the rows of the accumulators, or their columns. `function` must outlive this object.
  SharedDraws(GpuBuilder &b, const FragmentFunction &function, bool keysAreRows);

  /// The values of the random ops for the four registers of a lane in a piece of 16 rows and 8
  /// columns of an accumulator, in the order of the registers.
  using Piece = std::array<Values, 4>;
  /// Emits the random ops for a piece. `query` and `otherQuery` are the lane's queries that exist,
  /// and `key` is its first key, which may not exist. All lanes of the warp must execute this code.
  Piece emit(Value query, Value otherQuery, Value key) const;

private:
  struct Draw {
    mutable RandomElementOp op;
    RandomPlace place;
  };
  std::array<Value, 4> emitWords(const Draw &draw, Value query, Value otherQuery, Value key) const;
  void exchange(std::array<Value, 4> &words, unsigned distance, int64_t lanes) const;

  GpuBuilder &b;
  const FragmentFunction &function;
  bool keysAreRows;
  SmallVector<Draw> draws;
};

/// Returns true if lanes can share the blocks of a random op of a function whose index of the key
/// is `k`. If they do, a lane executes `sharedDrawIssue` instructions for an element.
bool canShareDraw(RandomElementOp op, Value k, const RegionDependence &dependences);
inline constexpr double sharedDrawIssue = 21;

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_FUNCTIONS_SHAREDDRAWS_H
