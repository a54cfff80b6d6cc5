//===- SequenceSeeds.cpp - Which values the axis context splits -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %q: rows ← contract: rows ← norm: rows ← ids: slice of the batch      backwards
//   attention %q: rows → contract: rows → .. → cross_entropy: all_reduce  forwards
//
//  1. The seeds are the rows of queries of each attention. Spread each seed (SplitGroup.cpp) to
//     the values that are computed from parameters, up to lookups, and down to partial sums.
//  2. If an op on the way cannot be split, the sequence cannot: emit an error at this op. The
//     return of a split value is such an op.
//  3. Choose the rows of a rank (SequenceRows.cpp).
//
// O(uses of values).
//
//===----------------------------------------------------------------------===//

#include "SequenceSeeds.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns true if each block of each split dimension consists of the rows of `seed`. Stripes of
/// rows are not stripes of a dimension that contains several elements of a row, or of several rows.
static bool keepsRows(const SplitGroup &group, AttentionOp seed) {
  int64_t rows = cast<RankedTensorType>(seed.getO().getType()).getDimSize(2);
  return llvm::all_of(group.splits, [&](auto &entry) {
    return llvm::all_of(entry.second.blocks, [&](int64_t block) { return block == rows; });
  });
}

FailureOr<SplitGroup> fsdp::chooseSequence(func::FuncOp func, int64_t ranks) {
  auto seeds = llvm::to_vector(func.getBody().front().getOps<AttentionOp>());
  SplitGroup group(func, {contextAxis, ranks});
  if (seeds.empty())
    return emitError(func.getLoc())
           << "axis 'context' of " << ranks
           << " ranks splits the rows of attention, and the model has no 'fsdp.attention'; remove "
              "the axis from --mesh, or find with --remarks why attention was not recognised";
  for (AttentionOp seed : seeds) {
    int64_t rows = cast<RankedTensorType>(seed.getO().getType()).getDimSize(2);
    if (succeeded(group.spread(seed.getO(), {2, {rows}})))
      continue;
    InFlightDiagnostic diag = emitError(group.where)
                              << "axis 'context' of " << ranks
                              << " ranks cannot split the sequence: " << group.why;
    diag.attachNote(seed.getLoc()) << "the sequence is dimension 2 of this 'fsdp.attention', with "
                                   << rows << " rows of queries";
    if (!group.dimension.empty())
      diag.attachNote(group.where) << "in this op, the sequence is " << group.dimension;
    diag.attachNote() << "remove the axis from --mesh: its ranks can be on 'shard' or, for fewer "
                         "activations, on 'tensor' with --sequence-parallel";
    return diag;
  }
  group.setStriped(keepsRows(group, seeds[0]) && prefersStripes(seeds, ranks));
  return group;
}
