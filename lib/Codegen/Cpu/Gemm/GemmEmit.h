//===- GemmEmit.h - Emitters of a contraction kernel ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_GEMM_GEMMEMIT_H
#define FSDP_LIB_CODEGEN_CPU_GEMM_GEMMEMIT_H

#include "Codegen/Kernel/Gemm/GemmShared.h"
#include "GemmPlan.h"

namespace mlir::fsdp::gemm {

/// The data that all functions of this file read: the problem, its plan, and the pointers that the
/// phase function receives.
struct Kernel {
  const Problem &problem;
  const Plan &plan;
  SmallVector<Value> bindings;
  Value worker;

  /// Returns the pointer to the element of an operand at a position.
  Pointer at(CodeBuilder &b, const Operand &operand, const Position &position) const;
};

/// One operand of the contraction, divided into panels of `width` rows or columns.
struct Side {
  const Operand &operand;
  ArrayRef<int> digits; ///< digits (GemmProblem.h) of the operand's rows or columns
  int64_t width;
  int64_t stride;  ///< distance between rows or columns, in elements
  int64_t kStride; ///< distance between elements with consecutive values of k, in elements
  int64_t offset;  ///< offset of the packed panels in a worker's scratch, in bytes
  bool isLhs;      ///< true for lhs, false for rhs

  /// True for the left operand of tdpbf16ps. Its panels consist of tiles of 16 rows by 16 steps,
  /// and the steps of a row of a tile are contiguous.
  bool rowTiles = false;
};

/// Emits code that packs rows (or columns) [first, end) of an operand, for `kCount` values of k.
/// `first` is the first row of a panel. Step s of row i of a panel is stored at index s · width + i
/// of `to`. If `rowTiles` is true, the step is stored at index (s / 16 · width + i) · 16 + s % 16.
/// Rows beyond `end` have unspecified values.
void emitPackPanels(CodeBuilder &b, const Kernel &kernel, const Side &side,
                    const Position &position, Value first, Value end, Value kCount, Pointer to);

/// Number of steps per iteration of the micro-kernel's loop.
static constexpr int64_t microUnroll = 2;

/// The position of an iteration in the loops of the micro-kernel: number `turn` of part `part`,
/// beginning with step `k`.
struct Turn {
  Value part, turn, k;
};
/// Emitters of the code that the micro-kernel runs beside its multiply-adds.
struct Beside {
  llvm::function_ref<void(const Turn &)> eachTurn;
  llvm::function_ref<void(Value)> eachPart; ///< called at the beginning of each part
};

/// Emits code that computes tile[r · stride + c] = start + Σ over `steps` of lhs · rhs. The
/// products are added to the values that the tile already has if `accumulate` is true at run time.
/// Otherwise they are added to the constant `start`. If Plan::parts is 1, the loop is not divided,
/// and only `beside.eachTurn` is used.
void emitMicroKernel(CodeBuilder &b, const Plan &plan, Pointer lhs, Pointer rhs, Value steps,
                     Pointer tile, Value tileStride, Value accumulate, TypedAttr start,
                     const Beside &beside);

/// Emits the same computation as emitMicroKernel(), but for AMX tiles. `steps` is a multiple of 16.
/// `beside` emits code that runs beside the products of the 16 steps that begin with its argument.
void emitTileKernel(CodeBuilder &b, const Plan &plan, Pointer lhs, Pointer rhs, Value steps,
                    Pointer tile, Value tileStride, Value accumulate, TypedAttr start,
                    llvm::function_ref<void(Value)> beside);

/// Emits a prefetch of one cache line of the source of the panel that is packed next. `next` is the
/// first element of this panel in the operand of `side`. The micro-kernel of row panel `tile`
/// issues the prefetch in the iteration that begins with step `k`.
void emitPrefetchOfPanel(CodeBuilder &b, const Plan &plan, const Side &side, Pointer next,
                         Value tile, Value k);

/// The lines of lhs that a micro-kernel prefetches. Line i of iteration `turn` of a part is at
/// `from` + part · perPart + turn · perTurn + i · perLine, in bytes.
struct NextRows {
  Pointer from;
  Value perPart, perTurn, perLine;
};
/// Returns the lines that the micro-kernel of a row panel of `steps` steps prefetches. If
/// `isPacked` is true at run time, they belong to the next packed panel, which begins at
/// `nextPacked`. Otherwise they belong to the source of the rows that are packed next. `first` is
/// the first element of the row panel in the source.
NextRows findNextRows(CodeBuilder &b, const Plan &plan, const Side &side, Pointer first,
                      Pointer nextPacked, Value steps, Value isPacked);
/// Emits the prefetches of one iteration.
void emitPrefetchOfRows(CodeBuilder &b, const Plan &plan, const NextRows &next, const Turn &turn);
/// Emits the prefetches of one part of the micro-kernel of row panel `tile`: lines of the source of
/// the panel of rhs that is packed next. `next` is the first element of this panel.
void emitPrefetchInPart(CodeBuilder &b, const Plan &plan, const Side &side, Pointer next,
                        Value tile, Value part);

/// The part of the result that a strip computes.
struct Strip {
  Position position;
  Value rows, cols;
  Value isLast; ///< true if no products are added to the strip later
};
/// Returns true if the rows of an operand of the epilogue have cache lines of their own.
bool hasLinesOfRows(const Plan &plan, const Operand &operand);
/// Prefetches `cols` elements of row `row` of an operand. `corner` is the element in row 0.
void emitPrefetchOfRow(CodeBuilder &b, const Plan &plan, const Operand &operand, Pointer corner,
                       Value row, int64_t cols, bool forWriting);
/// Prefetches the elements that the epilogue of a strip accesses, in the rows with which `eachRow`
/// calls its argument.
void emitPrefetchOfStrip(CodeBuilder &b, const Kernel &kernel, const Strip &strip,
                         llvm::function_ref<void(llvm::function_ref<void(Value)>)> eachRow);
/// Copies the strip's elements of `source` to `sums`. In `sums`, each row has Plan::stripCols()
/// columns.
void emitLoadStrip(CodeBuilder &b, const Kernel &kernel, const Operand &source, const Strip &strip,
                   Pointer sums);

/// Emits code that applies the elementwise ops after the contraction to the sums of a strip and
/// stores the results. The constructor emits the addresses of the strip.
class StripFinisher {
public:
  StripFinisher(CodeBuilder &b, const Kernel &kernel, const Strip &strip, Pointer sums);
  /// Finishes the whole strip.
  void finish();
  /// Finishes chunk `number`, or all chunks from `number` on (Plan::chunksPerStrip()). Chunks of
  /// the same row are adjacent. Chunks outside the strip have no effect. A chunk is one vector that
  /// LLVM splits into four, whose instructions alternate. Long chains of operations thus overlap.
  void finishChunk(Value number);
  void finishChunksFrom(Value number);
  /// Prefetches what finishChunk() reads.
  void prefetchChunk(Value number);

private:
  /// Calls `body` with the row and column of chunk `number`, if the chunk is in the strip.
  void atChunk(Value number, llvm::function_ref<void(Value row, Value col)> body);
  /// Finishes `width` columns of a row. If `streaming` is true, the row consists of whole cache
  /// lines and of whole vectors.
  void finishVector(Value row, Value col, int64_t width, bool streaming);

  CodeBuilder &b;
  const Kernel &kernel;
  Strip strip;
  Pointer sums;
  SmallVector<Pointer> loads, stores; ///< addresses at the corner of the strip
  SmallVector<SmallVector<Value>> indices;
  Value wholeLines; ///< true if streamed rows consist of whole cache lines
};

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_CPU_GEMM_GEMMEMIT_H
