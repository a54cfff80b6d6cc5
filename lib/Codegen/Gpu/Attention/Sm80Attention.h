//===- Sm80Attention.h - Attention with mma.sync ----------------*- C++ -*-===//
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

/// The tiling of a kernel with mma. A block of threads owns warps · 16 · rowPieces rows and visits
/// blocks of `blockCols` columns.
struct Sm80Config {
  int64_t warps, rowPieces, blockCols;
  int64_t blocksPerSm; ///< number of blocks of threads that must fit a multiprocessor together

  int64_t warpRows() const { return 16 * rowPieces; }
  int64_t blockRows() const { return warps * warpRows(); }
  int64_t threads() const { return 32 * warps; }
};

/// The resources that a configuration needs: an estimate of the registers per thread, and the exact
/// number of bytes of shared memory.
struct Sm80Needs {
  int64_t registers, sharedBytes;
};

/// A row of a table of configurations.
struct Sm80Row {
  int64_t dim; ///< upper limit for the larger one of the two head dimensions
  Sm80Config config;
};
/// Returns the first configuration of `table` that allows the head dimensions of `shape` and that
/// `passes` accepts. Reduces the blocks of the configuration if a tensor of `rows` rows and `cols`
/// columns does not fill these blocks.
std::optional<Sm80Config> chooseRow(ArrayRef<Sm80Row> table, const Shape &shape, int64_t rows,
                                    int64_t cols, function_ref<bool(const Sm80Config &)> passes);

/// Returns the configuration of the forward kernel, or nothing if none fits the chip.
std::optional<Sm80Config> chooseForward(const Shape &shape, Type element, const GpuTarget &target);
Sm80Needs forwardNeeds(const Sm80Config &config, const Shape &shape, Type element);
/// Returns true if `blocksPerSm` blocks with these resources fit a multiprocessor.
bool fits(const Sm80Config &config, const Sm80Needs &needs, const GpuTarget &target);

LogicalResult lowerSm80Forward(func::FuncOp kernel, AttentionOp op, const GpuTarget &target,
                               ModuleOp entries, GpuKernel &info);

/// Returns true if a function of attention reads captured tensors.
bool readsTensors(Region &function);

/// Returns true if a value of a function of attention is never NaN or infinite, because it is a
/// random number.
bool isFinite(Value value);

/// A score function (score_mod, for example) that is evaluated on fragments. Values that depend
/// only on the head are computed once. Values that depend only on the row or column are computed
/// once per row or column of a lane.
class FragmentFunction {
public:
  using Values = tile::ScoreFunction::Values;

  FragmentFunction(GpuBuilder &b, Region &region, unsigned scores, const Shape &shape,
                   ValueRange captures, const Head &head);

  bool empty() const { return function.empty(); }
  /// Return those values of the score function that depend only on the row (ofRow()) or only on the
  /// column (ofColumn()). The argument is the index of the row or column, an i32.
  Values ofRow(Value row) const;
  Values ofColumn(Value column) const;
  /// Returns the result of the score function for an element. `scores` are the values of those
  /// arguments of the region that precede the arguments b, h, q and k.
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
