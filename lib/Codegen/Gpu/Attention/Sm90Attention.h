//===- Sm90Attention.h - Attention with wgmma -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares functions for the tensor maps of heads, for their tiles in shared memory (see
// Sm90Builder.h), and for the resources of a block of threads.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ATTENTION_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ATTENTION_H

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "Codegen/Kernel/Attention/AttentionKernel.h"
#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

/// A tile in shared memory: panels of 64 columns, each with `rows` rows.
struct PanelTile {
  Value base;
  int64_t rows;
};

inline int64_t panelsOf(int64_t cols, int64_t elementBytes = 2) {
  return llvm::divideCeil(cols * elementBytes, Sm90Builder::panelBytes);
}
inline int64_t tileBytes(int64_t rows, int64_t cols, int64_t elementBytes = 2) {
  return panelsOf(cols, elementBytes) * rows * Sm90Builder::panelBytes;
}

/// Returns true if tensor maps can copy rows of this type. Tensor maps require rows of a multiple
/// of 16 bytes, of 16-bit elements or of f32.
bool hasTensorMap(RankedTensorType type);
/// A tensor map of a [batch, heads, rows, cols] tensor, an operand or a result of the kernel's
/// attention op. A box of the map is a panel of rows of one head. The dimensions of the map are in
/// the order of their distances:
///
///   cols, rows, batch · heads      contiguous tensors, and others whose heads have one distance
///   cols, heads, rows              one batch, with heads inside rows
///   cols, heads, rows, batch       several batches
class HeadMap {
public:
  /// `number` is the position of the map among the maps of the launch. If `roundsToTF32` is true,
  /// copies round f32 elements to TF32. Otherwise the map counts an f32 element as two elements.
  HeadMap(func::FuncOp kernel, Value heads, int64_t number, bool roundsToTF32 = false);
  /// Returns false if the kernel does not return the tensor.
  bool exists() const { return placed.has_value(); }
  /// Returns the map, whose boxes have `boxRows` rows.
  GpuTensorMap get(int64_t boxRows) const;
  /// Returns the coordinates of a box of the head `number`, counted over all batches.
  SmallVector<Value> coordinates(Sm90Builder &b, int64_t col, Value row, Value number) const;
  int64_t elementBytes() const { return type.getElementTypeBitWidth() / 8; }
  Value emit(Sm90Builder &b) const { return b.tensorMap(number); }

private:
  int64_t heads() const { return type.getDimSize(1); }
  bool splitsBatches() const;
  bool rowsHoldHeads() const;
  /// Number of bytes of the elements of the map.
  int64_t unitBytes() const { return roundsToTF32 ? 4 : 2; }
  /// Returns `row` and `head` in the order of their dimensions, then `batch` if there is one.
  template <typename T>
  SmallVector<T> inOrder(T col, T row, T head, T batch) const;

  std::optional<PlacedHeads> placed;
  RankedTensorType type;
  int64_t number;
  bool roundsToTF32;
};

/// Emits code that starts to copy rows of head `number` to the tile `to`,
/// beginning at row `firstRow`. Together, the panels of the tile have `cols` columns. The barrier
/// `barrier` counts the tileBytes() bytes that arrive. One thread runs this code.
void copyTile(Sm90Builder &b, const PanelTile &to, const HeadMap &map, Value firstRow, Value number,
              int64_t cols, Value barrier);
/// Emits code that starts to store the panels of a tile in shared memory to rows of a head. The
/// tile holds the columns from `firstCol` to `endCol` - 1. One thread runs this code.
void storeTile(Sm90Builder &b, const PanelTile &from, const HeadMap &map, Value firstRow,
               Value number, int64_t firstCol, int64_t endCol);
/// Multiplies each of the 16 rows of a fragment by the factor of this row, and stores the rows to
/// the tile `to`. The tile must begin at a row that is a multiple of 8. All threads of a warp run
/// this code.
void storeFragment(Sm90Builder &b, const tile::Fragment &fragment, ArrayRef<Value> factors,
                   Type element, const PanelTile &to);
/// Stores the result of toFactor() to the tile `to`, beginning at column `firstCol`, a multiple of
/// 16.
void storeWords(Sm90Builder &b, const tile::Layout &layout, ArrayRef<Value> words,
                const PanelTile &to, int64_t firstCol = 0);
/// Converts P or dS to the left factor of a product. Returns the words of this factor in the order
/// of the steps of k.
SmallVector<Value> toFactor(GpuBuilder &b, const tile::Fragment &fragment, Type element);

/// Number of registers per thread of the producer warpgroup, and of each consumer warpgroup.
struct RoleRegisters {
  int64_t producer, consumer;
};
/// `producer` is the number of registers that the producer needs, if there are two consumers.
RoleRegisters registersOfRoles(int64_t groups, int64_t producer = 24);
/// Emit code that changes the number of registers of a warpgroup: the producer releases registers
/// (giveRegisters()), and each of the `groups` consumer warpgroups takes more registers
/// (takeRegisters()).
void giveRegisters(Sm90Builder &b, int64_t groups, int64_t producer = 24);
void takeRegisters(Sm90Builder &b, int64_t groups, int64_t producer = 24);

/// Tiling of the forward kernel. `groups` warpgroups own 64 rows each, and one more warpgroup
/// copies tiles. All warpgroups visit blocks of `blockCols` keys.
struct Sm90Config {
  int64_t groups, blockCols;
  /// True if the consumer warpgroups start their products in turn, one after another.
  bool inTurns = false;
  bool ownOutput = false; ///< true if O has memory of its own and does not use the memory of Q
  int64_t keyStages = 2, valueStages = 2; ///< buffers of K and V
  /// True for f32. Three warps of the first warpgroup transpose V. If `splits` is true, they also
  /// split K and V into high and low parts, whose products are exact (Sm90Forward.cpp).
  bool isWide = false;
  bool splits = false;

  int64_t blockRows() const { return Sm90Builder::groupRows * groups; }
  int64_t threads() const { return Sm90Builder::groupThreads * (groups + 1); }
  int64_t elementBytes() const { return isWide ? 4 : 2; }
  /// Number of registers of the first warpgroup, which computes factors in f32.
  int64_t producerRegisters() const { return isWide ? 56 : 24; }
  int64_t parts() const { return splits ? 2 : 1; } ///< of a factor in shared memory
};
/// Returns the configuration for `op`, or nothing if wgmma cannot be used.
std::optional<Sm90Config> chooseSm90Forward(AttentionOp op, const GpuTarget &target);
/// Returns the estimated number of registers of a consumer thread, and the number of bytes of
/// shared memory. The number of registers includes `functionRegisters` registers for score
/// functions.
Sm80Needs sm90ForwardNeeds(const Sm90Config &config, const Shape &shape, int64_t functionRegisters);

LogicalResult lowerSm90Forward(func::FuncOp kernel, AttentionOp op, const Sm90Config &config,
                               const GpuTarget &target, ModuleOp entries, GpuKernel &info);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ATTENTION_H
