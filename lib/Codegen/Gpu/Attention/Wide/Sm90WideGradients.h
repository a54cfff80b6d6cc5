//===- Sm90WideGradients.h - Gradients in f32 with wgmma --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares what the roles of a block of threads share: the layout of tiles and barriers, and the
// order of the blocks that it visits. The rows that it owns are keys or queries:
//
//   factor      0         1
//   own         K or Q    V or dO
//   visited     Q or K    dO or V
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_WIDE_SM90WIDEGRADIENTS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_WIDE_SM90WIDEGRADIENTS_H

#include "Codegen/Gpu/Attention/AttentionClocks.h"
#include "Codegen/Gpu/Attention/KeyScores.h"
#include "Codegen/Gpu/Attention/QueryScores.h"
#include "Codegen/Gpu/Attention/Sm90Roles.h"

namespace mlir::fsdp::attention {

/// Sets the kernels with wgmma of `plan` for `op` in f32, where they take fewer clocks than those
/// with mma.sync. `clocksOfMma` returns those of a pass, and `normClocks` are those of the launch
/// that computes lse and δ.
void chooseSm90Wide(Sm80Backward &plan, AttentionGradOp op, const GpuTarget &target,
                    function_ref<double(AttentionPass)> clocksOfMma, double normClocks);
/// Number of registers per thread of the first warpgroup.
inline constexpr int64_t wideFactorRegisters = 88;
/// Returns the work of such a kernel.
Sm80Work workOf(AttentionGradOp op, const Sm90Wide &config, const GpuTarget &target);
/// Emits the entry and the launch of such a kernel. lse and δ must be in scratch.
void lowerSm90Wide(const Sm80Problem &problem, const Sm90Wide &config, StringRef symbol,
                   const GpuTarget &target, ModuleOp entries, GpuKernel &info);

/// Offsets in shared memory, in bytes:
///
///   for each factor:  own | visited[stages] | transposed[stages];  lse, δ[stages + 1]
///
/// For exact products, transposed factors and those visited factors that are multiplied have high
/// and low parts.
struct Sm90WidePlaces {
  static constexpr int64_t mostStages = 2, elementBytes = 4, halfRow = 16;
  /// Indices of the mbarriers. Except for OwnFull, a kind has a barrier for each factor and stage.
  enum Barrier {
    OwnFull = 0,
    Copied = 1,
    Full = 5, ///< ends when the parts have been computed
    Empty = 9,
    TurnedFull = 13, ///< ends when the factor has been transposed
    TurnedEmpty = 17,
    NumBarriers = 21
  };

  Sm90WidePlaces(const Sm90Wide &config, const Shape &shape);

  /// Bytes of one part of a factor, or 0 if it is not used.
  int64_t ownBytes[2], visitedBytes[2], turnedBytes[2], normBytes;
  /// Distance of the low part of a transposed factor. Rows of 16 values have both parts.
  int64_t lowDistance[2];
  int64_t turnedStride[2]; ///< bytes of a buffer for a transposed factor
  int64_t own[2], visited[2], turned[2], norms, barriers;
  int64_t bytes() const { return barriers + NumBarriers * Sm90Builder::barrierBytes; }
};

/// The data that all functions that emit an entry read.
struct Sm90WideProblem {
  Sm90WideProblem(const Sm80Problem &problem, const Sm90Wide &config, const QueryOrder &queryOrder,
                  const KeyOrder &keyOrder);

  const Sm80Problem &problem;
  const Sm90Wide &config;
  QueryOrder queryOrder; ///< of the blocks of queries, if the rows are queries
  KeyOrder keyOrder;     ///< of the blocks of keys, if the rows are keys
  const Shape &shape;
  AttentionGradOp op;
  Sm90WidePlaces places;
  HeadMap own[2], visited[2]; ///< the maps of the launch, in this order

private:
  HeadMap map(int64_t number);
};

/// The rows that a block of threads owns, and the blocks of the other side that it visits.
class WideVisits {
public:
  WideVisits(Sm90Builder &b, const Sm90WideProblem &wide);

  Value firstRow;                     ///< of the rows that the block of threads owns
  Value ownHead, visitedHead;         ///< i32 numbers of heads, counted over all batches
  std::optional<KeyScores> keys;      ///< set if the rows are keys
  std::optional<QueryScores> queries; ///< set if the rows are queries

  /// Emits body(number, block, carried) for each visited block, and returns the carried values.
  /// `number` counts the blocks that were visited before. For the blocks of each head, further
  /// values are carried behind the others: `contributions` sums, which begin with 0 and which
  /// `store` gets after the last block of the head.
  SmallVector<Value> forEach(ValueRange first,
                             function_ref<CodeBuilder::Carried(Value, Value, ValueRange)> body,
                             int64_t contributions = 0,
                             function_ref<void(ArrayRef<Value>)> store = nullptr);
  /// Returns true at run time if no element of `block` is masked.
  Value isFree(Value block) {
    return keys ? keys->blocks->isFree(block) : queries->blocks->isFree(block);
  }
  /// Return true if some visited block may have masked elements, or none.
  bool isEverMasked() { return keys ? keys->isEverMasked() : queries->isEverMasked(); }
  bool isEverFree() const { return keys ? keys->isEverFree() : queries->isEverFree(); }

private:
  Sm90Builder &b;
  const Sm90WideProblem &wide;
};

class Sm90WideRole {
public:
  Sm90WideRole(Sm90Builder &b, const Sm90WideProblem &wide)
      : b(b), wide(wide), config(wide.config), shape(wide.shape), places(wide.places),
        visits(b, wide), base(b.sharedAt(0)) {}

protected:
  Stage stageOf(Value number) {
    return {b.rem(number, config.stages), b.rem(b.div(number, config.stages), 2)};
  }
  Value barrier(Sm90WidePlaces::Barrier kind, int64_t factor, const Stage &stage) {
    int64_t first = kind + factor * Sm90WidePlaces::mostStages;
    return b.shiftBytes(barrierAt(first), b.mul(stage.index, Sm90Builder::barrierBytes));
  }
  Value barrierAt(int64_t number) {
    return b.shiftBytes(base, places.barriers + number * Sm90Builder::barrierBytes);
  }
  /// Returns the barrier that ends when a visited factor has its parts.
  Value fullBarrier(int64_t factor, const Stage &stage) {
    return barrier(splits(factor) ? Sm90WidePlaces::Full : Sm90WidePlaces::Copied, factor, stage);
  }
  Value isOther(Value parity) { return b.sub(b.i32(1), parity); }
  /// Return true if a visited factor is multiplied, split in place, or transposed.
  bool multiplies(int64_t factor) const { return places.ownBytes[factor]; }
  bool splits(int64_t factor) const { return config.splits && multiplies(factor); }
  bool turns(int64_t factor) const { return places.turnedBytes[factor]; }
  PanelTile own(int64_t factor) {
    return {b.shiftBytes(base, places.own[factor]), config.blockRows()};
  }
  PanelTile visited(int64_t factor, const Stage &stage) {
    int64_t bytes = places.visitedBytes[factor] * (splits(factor) ? 2 : 1);
    return {at(places.visited[factor], bytes, stage), config.blockCols};
  }
  PanelTile turned(int64_t factor, const Stage &stage) {
    return {at(places.turned[factor], places.turnedStride[factor], stage), colsOf(factor)};
  }
  /// Returns the address of lse, which δ follows, of the visited queries.
  Value norms(Value number) {
    return b.shiftBytes(b.shiftBytes(base, places.norms),
                        b.mul(b.rem(number, config.stages + 1), 2 * places.normBytes));
  }
  /// Returns the columns of a factor in products.
  int64_t colsOf(int64_t factor) const { return factor ? paddedValueDim(shape) : paddedDim(shape); }

  Sm90Builder &b;
  const Sm90WideProblem &wide;
  const Sm90Wide &config;
  const Shape &shape;
  const Sm90WidePlaces &places;
  WideVisits visits;
  Value base; ///< address of the shared memory

private:
  Value at(int64_t place, int64_t bytes, const Stage &stage) {
    return b.shiftBytes(b.shiftBytes(base, place), b.mul(stage.index, bytes));
  }
};

/// Emit the code of the lane that copies tiles, and of the three warps that compute factors.
void emitWideProducer(Sm90Builder &b, const Sm90WideProblem &wide);
void emitWideFactors(Sm90Builder &b, const Sm90WideProblem &wide);
/// Emits the code of consumer warpgroup `group`.
void emitWideConsumer(Sm90Builder &b, const Sm90WideProblem &wide, Value group);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_WIDE_SM90WIDEGRADIENTS_H
