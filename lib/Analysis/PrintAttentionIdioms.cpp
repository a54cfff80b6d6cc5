//===- PrintAttentionIdioms.cpp - Remarks on attention ops ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   remark: attention: mask is causal, window of 256; score is softcap 30
//   note: rows [q0, q1) visit keys [max(0, q0 - 255), q1), mask-free in [max(0, q1 - 256), q0 + 1)
//   note: keys [k0, k1) visit rows [k0, min(k1 + 255, 1024)), mask-free in ..
//   note: ops of its functions: 2 once, 1 per row, 0 per key, 5 per score
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/AttentionIdioms.h"
#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/Analysis/Passes.h"
#include "fsdp/IR/Sizes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PRINTATTENTIONIDIOMSPASS
#include "fsdp/Analysis/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct PrintAttentionIdiomsPass
    : public fsdp::impl::PrintAttentionIdiomsPassBase<PrintAttentionIdiomsPass> {
  using PrintAttentionIdiomsPassBase::PrintAttentionIdiomsPassBase;
  void runOnOperation() override;

private:
  void print(AttentionOp op);
};
} // namespace

static std::string describe(ArrayRef<TileRange> ranges, StringRef tile) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto range = [&](const TileExpr &begin, const TileExpr &end) {
    os << '[';
    begin.print(os, tile);
    os << ", ";
    end.print(os, tile);
    os << ')';
  };
  llvm::interleave(
      ranges, os,
      [&](const TileRange &r) {
        range(r.begin, r.end);
        if (r.fullBegin == r.fullEnd)
          return;
        os << ", mask-free in ";
        range(r.fullBegin, r.fullEnd);
      },
      "; ");
  if (ranges.empty())
    os << "nothing";
  return text;
}

void PrintAttentionIdiomsPass::print(AttentionOp op) {
  AttentionTiles tiles(op);
  std::string mask = nameMask(op), score = nameScore(op);
  InFlightDiagnostic remark = emitRemark(op.getLoc(), "attention: mask is ");
  remark << (mask.empty() ? "none" : mask) << "; score is " << (score.empty() ? "plain" : score);
  std::string unit = tile ? " in tiles of " + std::to_string(tile) : "";
  remark.attachNote() << "rows [q0, q1) visit keys" << unit << " "
                      << describe(tile ? tiles.getKeyTiles(tile)
                                       : SmallVector<TileRange>(tiles.getKeys()),
                                  "q");
  remark.attachNote() << "keys [k0, k1) visit rows" << unit << " "
                      << describe(tile ? tiles.getRowTiles(tile)
                                       : SmallVector<TileRange>(tiles.getRows()),
                                  "k");
  unsigned counts[4] = {};
  for (Region *function : {&op.getScoreMod(), &op.getMaskMod()}) {
    RegionDependence dependence(*function);
    for (Operation &o : function->getOps())
      if (!isa<YieldOp>(o) && !o.hasTrait<OpTrait::ConstantLike>())
        ++counts[static_cast<unsigned>(dependence.of(&o))];
  }
  remark.attachNote() << "ops of its functions: " << counts[0] << " once, " << counts[1]
                      << " per row, " << counts[2] << " per key, " << counts[3] << " per score";
  for (const SideComparison &c : tiles.getSideComparisons())
    remark.attachNote(c.row.getLoc())
        << "kept only where this value of the row is " << arith::stringifyCmpIPredicate(c.predicate)
        << " one of the key";
  ++numAttentions;
  numSkipping += !tiles.isUnmasked();
}

void PrintAttentionIdiomsPass::runOnOperation() {
  if (tile < 0 || tile > kMaxElements) {
    emitError(getOperation()->getLoc())
        << "tile: expected at least 0 and at most 2^48, found " << tile.getValue();
    return signalPassFailure();
  }
  getOperation()->walk([&](AttentionOp op) {
    print(op);
    if (AttentionTiles(op).isFullyMasked())
      emitWarning(op.getLoc(), "the mask keeps no key in any row: the result is zero");
  });
}
