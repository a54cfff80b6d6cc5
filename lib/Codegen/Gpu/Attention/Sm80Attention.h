//===- Sm80Attention.h - Attention on mma.sync ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80ATTENTION_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80ATTENTION_H

#include "Codegen/Gpu/Ptx/Sm80Tiles.h"
#include "Codegen/Kernel/Attention/AttentionShape.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp::attention {

/// How a kernel is cut: a block of threads has `warps` x 16 · rowPieces rows, and meets
/// blocks of `blockCols` of the other side.
struct Sm80Config {
  int64_t warps, rowPieces, blockCols;
  int64_t blocksPerSm; ///< that are to fit

  int64_t warpRows() const { return 16 * rowPieces; }
  int64_t blockRows() const { return warps * warpRows(); }
  int64_t threads() const { return 32 * warps; }
};

/// What a configuration needs: an estimate of registers, and exact bytes of shared memory.
struct Sm80Needs {
  int64_t registers, sharedBytes;
};

/// A row of a table of configurations.
struct Sm80Row {
  int64_t dim; ///< the larger head dimension, at most
  Sm80Config config;
};
/// The first that is wide enough and `passes`, cut to what `rows` rows and `cols` columns fill.
std::optional<Sm80Config> chooseRow(ArrayRef<Sm80Row> table, const Shape &shape, int64_t rows,
                                    int64_t cols, function_ref<bool(const Sm80Config &)> passes);

/// The forward kernel's configuration for these sizes; nothing when none fits the chip.
std::optional<Sm80Config> chooseForward(const Shape &shape, Type element, const GpuTarget &target);
Sm80Needs forwardNeeds(const Sm80Config &config, const Shape &shape, Type element);
/// Whether a block with these needs fits, as often as it is to.
bool fits(const Sm80Config &config, const Sm80Needs &needs, const GpuTarget &target);

LogicalResult lowerSm80Forward(func::FuncOp kernel, AttentionOp op, const GpuTarget &target,
                               ModuleOp entries, GpuKernel &info);

/// A function of scores on fragments: what depends on the head alone is computed once, what on the
/// row or the column alone once for each that a lane has.
class FragmentFunction {
public:
  using Values = tile::ScoreFunction::Values;

  FragmentFunction(GpuBuilder &b, Region &region, unsigned scores, const Shape &shape,
                   ValueRange captures, const Head &head);

  bool empty() const { return function.empty(); }
  /// Values that depend on this row (column) alone, an i32 that exists.
  Values ofRow(Value row) const;
  Values ofColumn(Value column) const;
  /// The result for an element; `scores` are the leading arguments.
  Value emit(const Values &row, const Values &column, Value q, Value k,
             ArrayRef<Value> scores) const;
  tile::Site siteAt(Value q, Value k, ArrayRef<Value> scores) const;

  tile::ScoreFunction function;
  Values unit;

private:
  GpuBuilder &b;
  Head head;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80ATTENTION_H
