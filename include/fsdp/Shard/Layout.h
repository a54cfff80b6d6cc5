//===- Layout.h - The flat buffer of a unit ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes layouts of flat buffers in elements, without IR.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_LAYOUT_H
#define FSDP_SHARD_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir {
namespace fsdp {

/// Alignment of parameter offsets in elements: 64 bytes for elements of two bytes.
constexpr int64_t kOffsetAlignment = 32;
/// Returns the alignment of parameter offsets, in elements of `bytes` bytes.
constexpr int64_t getOffsetAlignment(int64_t bytes) { return bytes == 1 ? 64 : kOffsetAlignment; }
/// Alignment, in elements, of the shard size of a unit.
constexpr int64_t kShardAlignment = 64;
/// Alignment, in elements, of the shard size of a unit of more than `kLargeUnit` elements.
constexpr int64_t kLargeShardAlignment = 1024;
constexpr int64_t kLargeUnit = 64 * 1024;
/// Greatest size of a unit in elements, so that offsets in bytes fit an int64_t.
constexpr int64_t kMaxUnitSize = int64_t(1) << 48;

struct ParamExtent {
  int64_t size; ///< number of elements, at least 0
  bool decay;   ///< has weight decay
};

struct UnitLayout {
  /// Indices of the parameters in the order of the flat buffer.
  llvm::SmallVector<unsigned> order;
  /// Offset in elements of parameter `order[i]`.
  llvm::SmallVector<int64_t> offsets;
  /// Elements per shard; at least `kShardAlignment`.
  int64_t shardSize = 0;
  /// Elements that belong to no parameter.
  int64_t padding = 0;
};

/// Lays parameters out in one flat buffer of `shards` equal shards. The size of a shard is a
/// multiple of `parts` and of `rowSize`. The sizes of the parameters must add up to at most
/// `kMaxUnitSize`.
UnitLayout layOutUnit(llvm::ArrayRef<ParamExtent> params, int64_t shards, int64_t parts = 1,
                      int64_t offsetAlignment = kOffsetAlignment, int64_t rowSize = 1);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_LAYOUT_H
