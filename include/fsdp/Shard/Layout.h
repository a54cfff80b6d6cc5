//===- Layout.h - The flat buffer of a unit ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes layouts of flat buffers. Sizes and offsets are in elements. This code does not depend on
// the IR.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_LAYOUT_H
#define FSDP_SHARD_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir {
namespace fsdp {

/// Alignment of the offsets of parameters, in elements. For elements of at least two bytes, it
/// corresponds to an alignment of at least 64 bytes.
constexpr int64_t kOffsetAlignment = 32;
/// Returns the alignment of parameter offsets, in elements of `bytes` bytes.
constexpr int64_t getOffsetAlignment(int64_t bytes) { return bytes == 1 ? 64 : kOffsetAlignment; }
/// The shard size of a unit, in elements, is a multiple of this number.
constexpr int64_t kShardAlignment = 64;
/// The shard size of a unit of more than `kLargeUnit` elements is a multiple of this number.
constexpr int64_t kLargeShardAlignment = 1024;
constexpr int64_t kLargeUnit = 64 * 1024;
/// Greatest number of elements of a unit. With this limit, offsets in bytes fit an int64_t.
constexpr int64_t kMaxUnitSize = int64_t(1) << 48;

struct ParamExtent {
  int64_t size; ///< number of elements, at least 0
  bool decay;   ///< true if weight decay applies to the parameter
};

struct UnitLayout {
  /// Indices of the parameters, in the order of their offsets in the flat buffer.
  llvm::SmallVector<unsigned> order;
  /// Offset in elements of parameter `order[i]`.
  llvm::SmallVector<int64_t> offsets;
  /// Number of elements per shard; at least `kShardAlignment`.
  int64_t shardSize = 0;
  /// Number of elements of the flat buffer that belong to no parameter.
  int64_t padding = 0;
};

/// Assigns an offset to each parameter in a flat buffer of `shards` equal shards. The size of a
/// shard is a multiple of `parts` and of `rowSize`. The sum of the sizes of `params` is at most
/// `kMaxUnitSize`.
UnitLayout layOutUnit(llvm::ArrayRef<ParamExtent> params, int64_t shards, int64_t parts = 1,
                      int64_t offsetAlignment = kOffsetAlignment, int64_t rowSize = 1);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_LAYOUT_H
