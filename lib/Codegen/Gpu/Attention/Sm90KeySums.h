//===- Sm90KeySums.h - Sums of dK and dV with wgmma -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the sums of a consumer warpgroup, and how they become results.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90KEYSUMS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90KEYSUMS_H

#include "Sm90Backward.h"

namespace mlir::fsdp::attention {

class Sm90KeySums : public Sm90KeyRole {
public:
  /// `sharing` is the number of the warpgroup if warpgroups share keys, else 0.
  Sm90KeySums(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config, KeyScores &scores,
              int64_t sharing)
      : Sm90KeyRole(b, problem, config, scores), sharing(sharing),
        sumsK(!config.tables && (!config.sharesKeys || sharing == 1)),
        sumsV(!config.tables && (!config.sharesKeys || sharing == 0)),
        dim(sumsK ? paddedDim(shape.dim) : 0), valueDim(sumsV ? paddedDim(shape.valueDim) : 0),
        keyLayout(tile::Layout::mmaSums(16, dim)),
        valueLayout(tile::Layout::mmaSums(16, valueDim)) {}

protected:
  /// The sums of a thread. dk or dv is empty if this warpgroup does not sum it.
  struct Sums {
    SmallVector<Value> dk, dv, columns; ///< `columns` holds the sums of contributions
  };
  SmallVector<Value> flat(const Sums &sums);
  Sums sumsOf(ValueRange values);
  /// Signals that this warp no longer needs the contents of a buffer.
  void release(Value barrier);
  /// Returns the number of the warp among those that own the keys.
  Value warpOfKeys() {
    return b.sub(b.warp(), b.i32((1 + sharing) * Sm90Builder::groupThreads / 32));
  }
  void shareRowSums(int64_t firstQuery, ArrayRef<Value> sums);
  void storeRowSums(Value block, SmallVector<Value> &columns);
  /// Stores the sums of contributions for one query head.
  void storeContributions(ArrayRef<Value> sums);
  /// Stores dK and dV. If there are parts, adds them to the sums of the earlier parts.
  void store(const Sums &sums);

  const int64_t sharing;
  const bool sumsK, sumsV; ///< true if this warpgroup sums dK, dV
  const int64_t dim, valueDim;
  const tile::Layout keyLayout, valueLayout;

private:
  void storeColumns(ArrayRef<Value> columns);
  Pointer rowSumAt(int64_t number, Value row, Value query);
  Value indexOfKeys();
  Pointer sumsOfThread(Value index);
  int64_t threadsOfKeys() const {
    return config.sharesKeys ? Sm90Builder::groupThreads : consumers();
  }
  Sums addParts(const Sums &sums);
  void storePart(const Sums &sums);
  void storeResults(const Sums &sums);
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90KEYSUMS_H
