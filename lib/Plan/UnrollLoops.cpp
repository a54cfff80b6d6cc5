//===- UnrollLoops.cpp - Unroll to one level of loops -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference program sums over ranks, micro-batches and replicas in a nest of loops. A program
// may have only one level of loops. Therefore this pass keeps the loop with the most iterations of
// each nest and unrolls the other loops.
//
//   for r in 0..2 {                      for a in 0..8 { f(a) }
//     for a in 0..8 { f(8 r + a) }  =>   for a in 0..8 { f(8 + a) }
//   }
//
// Takes O(ops x iterations of the unrolled loops) time.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Aliasing.h"
#include "fsdp/Plan/Passes.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_UNROLLLOOPSPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class UnrollLoopsPass : public fsdp::impl::UnrollLoopsPassBase<UnrollLoopsPass> {
  void runOnOperation() override {
    for (auto outer : llvm::to_vector(getOperation().getOps<scf::ForOp>()))
      if (failed(unrollNest(outer)))
        return signalPassFailure();
  }

  LogicalResult unrollNest(scf::ForOp outer) {
    SmallVector<scf::ForOp> loops; // inner ones first
    outer.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    scf::ForOp kept;
    int64_t most = -1;
    for (scf::ForOp loop : loops) {
      std::optional<int64_t> count = getTripCount(loop);
      if (!count)
        return loop.emitError("expected a loop over micro-batches to have constant bounds");
      if (*count > most) {
        most = *count;
        kept = loop;
      }
    }
    for (scf::ForOp loop : loops) {
      if (loop == kept)
        continue;
      if (failed(loopUnrollFull(loop)))
        return loop.emitError("cannot be unrolled; expected one level of loops over micro-batches");
      ++numUnrolled;
    }
    return success();
  }
};

} // namespace
