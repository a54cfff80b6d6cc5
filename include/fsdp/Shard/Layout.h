//===- Layout.h - The flat buffer of a unit ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pure arithmetic, in elements; no IR.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_LAYOUT_H
#define FSDP_SHARD_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir {
namespace fsdp {

/// Offsets of parameters are multiples of this: 64 bytes of the narrowest float.
constexpr int64_t kOffsetAlignment = 32;
/// That of elements of `bytes` bytes, 64 for those of one.
constexpr int64_t getOffsetAlignment(int64_t bytes) { return bytes == 1 ? 64 : kOffsetAlignment; }
/// Shard sizes are multiples of this ...
constexpr int64_t kShardAlignment = 64;
/// ... or, in units of more than `kLargeUnit` elements, of this.
constexpr int64_t kLargeShardAlignment = 1024;
constexpr int64_t kLargeUnit = 64 * 1024;
/// Units above this size are refused: offsets in bytes must fit an int64_t.
constexpr int64_t kMaxUnitSize = int64_t(1) << 48;

struct ParamExtent {
  int64_t size; ///< elements; 0 is allowed
  bool decay;   ///< takes part in weight decay
};

struct UnitLayout {
  /// Positions in the list given, in the order of the flat buffer.
  llvm::SmallVector<unsigned> order;
  /// Offset of `order[i]`.
  llvm::SmallVector<int64_t> offsets;
  /// Elements that each of the shards has; at least `kShardAlignment`.
  int64_t shardSize = 0;
  /// Elements that belong to no parameter.
  int64_t padding = 0;
};

/// Lays parameters out in one flat buffer of `shards` equal slices, each of which can be cut into
/// `parts` equal ones, and is a multiple of `rowSize`. The sizes add up to at most `kMaxUnitSize`.
UnitLayout layOutUnit(llvm::ArrayRef<ParamExtent> params, int64_t shards, int64_t parts = 1,
                      int64_t offsetAlignment = kOffsetAlignment, int64_t rowSize = 1);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_LAYOUT_H
