//===- Sm90Attention.h - Attention on wgmma ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matrices of heads as tensor maps copy them, tiles of them in shared memory (see Sm90Builder.h),
// and what a block of threads may take of a multiprocessor.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ATTENTION_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ATTENTION_H

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// A tile in shared memory: panels of 64 columns, each of `rows` rows.
struct PanelTile {
  Value base;
  int64_t rows;
};

inline int64_t panelsOf(int64_t cols) { return llvm::divideCeil(cols, Sm90Builder::panelCols); }
inline int64_t tileBytes(int64_t rows, int64_t cols) {
  return panelsOf(cols) * rows * Sm90Builder::panelBytes;
}

/// Whether rows of tensors of this type can be copied by tensor maps: heads of a multiple of 8
/// numbers of 16 bits.
bool hasTensorMap(RankedTensorType type);
/// Of a [batch, heads, rows, cols] tensor, as [batch · heads, rows, cols]; boxes are panels of
/// `boxRows` rows.
GpuTensorMap mapOfHeads(func::FuncOp kernel, Value tensor, int64_t boxRows);
/// The same of what the kernel returns as `result`; nothing when it does not.
std::optional<GpuTensorMap> mapOfResult(func::FuncOp kernel, Value result, int64_t boxRows);

/// Begins to copy the rows from `firstRow` on of the number-th head to `to`, all of its rows in
/// panels for `cols` columns; `barrier` counts tileBytes(). By one thread.
void copyTile(Sm90Builder &b, const PanelTile &to, Value map, Value firstRow, Value number,
              int64_t cols, Value barrier);
/// Begins to store panels of rows of shared memory, `from` on, to rows of a head. By one thread.
void storeTile(Sm90Builder &b, const PanelTile &from, Value map, Value firstRow, Value number,
               int64_t cols);
/// A fragment of 16 rows to rows `to` of a tile, from a multiple of 8 on; rows times a factor each.
/// By a warp.
void storeFragment(Sm90Builder &b, const tile::Fragment &fragment, ArrayRef<Value> factors,
                   Type element, const PanelTile &to);
/// The same of what toFactor() gives.
void storeWords(Sm90Builder &b, const tile::Layout &layout, ArrayRef<Value> words,
                const PanelTile &to);
/// P or dS as the left factor of a product, from registers: words for each step of k.
SmallVector<Value> toFactor(GpuBuilder &b, const tile::Fragment &fragment, Type element);

//===----------------------------------------------------------------------===//
// Registers of roles
//===----------------------------------------------------------------------===//

/// Registers that a producing warpgroup keeps, and that each of `groups` consuming ones has then.
struct RoleRegisters {
  int64_t producer, consumer;
};
RoleRegisters registersOfRoles(int64_t groups);
/// Sets them, for a block of a producing and `groups` consuming warpgroups.
void giveRegisters(Sm90Builder &b, int64_t groups);
void takeRegisters(Sm90Builder &b, int64_t groups);

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// A block of threads has `groups` warpgroups with 64 rows each, besides one that copies, and meets
/// blocks of `blockCols` keys.
struct Sm90Config {
  int64_t groups, blockCols;
  bool inTurns = false;   ///< warpgroups issue products one after the other
  bool ownOutput = false; ///< O has memory of its own, not that of Q

  int64_t blockRows() const { return Sm90Builder::groupRows * groups; }
  int64_t threads() const { return Sm90Builder::groupThreads * (groups + 1); }
};
/// The configuration for `op`; nothing when it is not for wgmma.
std::optional<Sm90Config> chooseSm90Forward(AttentionOp op, const GpuTarget &target);
/// Registers, an estimate, of which functions of scores take `functionRegisters`; and bytes of
/// shared memory.
Sm80Needs sm90ForwardNeeds(const Sm90Config &config, const Shape &shape, int64_t functionRegisters);

LogicalResult lowerSm90Forward(func::FuncOp kernel, AttentionOp op, const Sm90Config &config,
                               const GpuTarget &target, ModuleOp entries, GpuKernel &info);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ATTENTION_H
