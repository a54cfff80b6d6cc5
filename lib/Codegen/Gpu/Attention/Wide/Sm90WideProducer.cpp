//===- Sm90WideProducer.cpp - Copies and factors of f32 ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One lane of warpgroup 0 copies tiles. Its other warps compute factors for wgmma, in which the
// values of k are contiguous: parts for exact products (SplitProducts.cpp), and transposed factors
// for the sums (TransposeTile.cpp), to which they copy the parts:
//
//   producer                          three warps                        consumers
//   copy the own factors              for each visited block             for each visited block
//   for each visited block              for both factors                   S, dP;  release factors
//     for both factors                    wait; split in place             dS, P
//       wait until it is empty            for each transposed factor       dV += P · dO   (keys)
//       copy it, and lse and δ              wait until it is empty         dK or dQ += dS · Q or K
//                                           transpose;  release factor     release transposed ones
//
// Consumers read lse and δ after they have released the factors. Therefore there is one more buffer
// for these than stages.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/SplitProducts.h"
#include "Sm90WideGradients.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

using Places = Sm90WidePlaces;

namespace {
class WideProducer : Sm90WideRole {
public:
  using Sm90WideRole::Sm90WideRole;
  void emit();

private:
  void copyBlock(Value number, Value block);
  void copyNorms(Value number, Value firstQuery, Value barrier);
};

/// Emits the code of the three warps that split and transpose factors.
class WideFactors : Sm90WideRole {
public:
  using Sm90WideRole::Sm90WideRole;
  void emit();

private:
  void split(int64_t factor, const Stage &stage);
  void turn(int64_t factor, const Stage &stage);
  /// Makes the warp's accesses visible to products and copies, then arrives at the barriers.
  void signal(ArrayRef<Value> barriers);
};
} // namespace

void WideProducer::copyNorms(Value number, Value firstQuery, Value barrier) {
  const Sm80Backward &plan = wide.problem.plan;
  Value place = b.add(b.mul(b.to64(visits.visitedHead), plan.rowStride), b.to64(firstQuery)),
        to = norms(number);
  for (int64_t from : {plan.lse, plan.delta}) {
    b.copyBulk(to, b.address(b.shift(b.scratch(b.getF32Type()), b.add(place, from))),
               b.i32(places.normBytes), barrier);
    to = b.shiftBytes(to, places.normBytes);
  }
}

void WideProducer::copyBlock(Value number, Value block) {
  Stage stage = stageOf(number);
  Value firstRow = b.mul(block, config.blockCols);
  for (int64_t factor : {0, 1}) {
    int64_t norms = factor ? 0 : 2 * places.normBytes;
    Value copied = barrier(Places::Copied, factor, stage);
    b.wait(barrier(Places::Empty, factor, stage), isOther(stage.parity));
    b.expect(copied, places.visitedBytes[factor] + norms);
    copyTile(b, visited(factor, stage), wide.visited[factor], firstRow, visits.visitedHead,
             factor ? shape.valueDim : shape.dim, copied);
    if (norms)
      copyNorms(number, firstRow, copied);
  }
}

void WideProducer::emit() {
  Value full = barrierAt(Places::OwnFull);
  for (int64_t map = 0; map < 4; ++map)
    b.prefetchMap(b.tensorMap(map));
  b.expect(full, places.ownBytes[0] + places.ownBytes[1]);
  for (int64_t factor : {0, 1})
    if (multiplies(factor))
      copyTile(b, own(factor), wide.own[factor], visits.firstRow, visits.ownHead,
               factor ? shape.valueDim : shape.dim, full);
  visits.forEach({}, [&](Value number, Value block, ValueRange) -> CodeBuilder::Carried {
    copyBlock(number, block);
    return {};
  });
}

void WideFactors::signal(ArrayRef<Value> barriers) {
  b.fenceAsync();
  b.syncWarp();
  b.when(b.isEqual(b.lane(), 0), [&] {
    for (Value barrier : barriers)
      b.arrive(barrier);
  });
}

void WideFactors::split(int64_t factor, const Stage &stage) {
  b.wait(barrier(Places::Copied, factor, stage), stage.parity);
  splitTile(b, visited(factor, stage).base, places.visitedBytes[factor]);
  signal(barrier(Places::Full, factor, stage));
}

/// Transposes a factor: both of its parts, after all warps have split it, or its values, which it
/// splits for exact products.
void WideFactors::turn(int64_t factor, const Stage &stage) {
  b.wait(barrier(Places::TurnedEmpty, factor, stage), isOther(stage.parity));
  b.wait(fullBarrier(factor, stage), stage.parity);
  PanelTile from = visited(factor, stage), to = turned(factor, stage);
  auto transpose = [&](Value from, Value to, int64_t lowDistance, int64_t firstCol) {
    transposeTile(b, from, config.blockCols, to, colsOf(factor), lowDistance, firstCol);
  };
  int64_t distance = places.lowDistance[factor];
  bool halves = distance < Sm90Builder::panelBytes; // of the rows
  transpose(from.base, to.base, config.splits && !multiplies(factor) ? distance : 0, 0);
  if (splits(factor))
    transpose(b.shiftBytes(from.base, places.visitedBytes[factor]),
              halves ? to.base : b.shiftBytes(to.base, distance), 0, halves ? Places::halfRow : 0);
  signal({barrier(Places::TurnedFull, factor, stage), barrier(Places::Empty, factor, stage)});
}

void WideFactors::emit() {
  visits.forEach({}, [&](Value number, Value, ValueRange) -> CodeBuilder::Carried {
    Stage stage = stageOf(number);
    for (int64_t factor : {0, 1})
      if (splits(factor))
        split(factor, stage);
    for (int64_t factor : {1, 0}) // in the order of the sums
      if (turns(factor))
        turn(factor, stage);
    return {};
  });
}

void attention::emitWideProducer(Sm90Builder &b, const Sm90WideProblem &wide) {
  WideProducer(b, wide).emit();
}

void attention::emitWideFactors(Sm90Builder &b, const Sm90WideProblem &wide) {
  WideFactors(b, wide).emit();
}
