//===- TensorMap.h - Encoded tensor maps ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tensor map (PTX ISA, "Tensor-map") is an object of 128 bytes, which cuTensorMapEncodeTiled()
// writes. The tensor map describes a tensor in memory, and the shape of the box that an instruction
// copies from or to this tensor. The encoding of the driver is not documented. The emulator
// therefore uses its own encoding, which contains a magic number and a checksum. The emulator
// rejects an object with any other encoding. The enumerators have the same values as in cuda.h.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_TENSORMAP_H
#define FSDPRT_EMULATOR_TENSORMAP_H

#include "emulator/ptx/Types.h"
#include <array>

namespace fsdprt::emulate {

enum class TensorType : uint32_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F64,
  BF16,
  F32Flushed,
  TF32,
  TF32Flushed
};
enum class TensorInterleave : uint32_t { None, Bytes16, Bytes32 };
enum class TensorSwizzle : uint32_t { None, Bytes32, Bytes64, Bytes128 };
enum class TensorFill : uint32_t { Zeros, NaN };

constexpr unsigned maxTensorRank = 5;

/// The arguments of cuTensorMapEncodeTiled(). Elements that follow each other in dimension 0 also
/// follow each other in memory.
struct TensorMap {
  TensorType type = TensorType::U8;
  uint32_t rank = 0;
  uint64_t address = 0;
  uint64_t sizes[maxTensorRank] = {};       ///< sizes of the dimensions, in elements
  uint64_t strides[maxTensorRank - 1] = {}; ///< strides of dimensions 1 to 4, in bytes
  uint32_t box[maxTensorRank] = {};
  /// This is "elementStrides" of cuda.h. Along dimension d, only every steps[d]-th element of the
  /// box is copied.
  uint32_t steps[maxTensorRank] = {1, 1, 1, 1, 1};
  TensorInterleave interleave = TensorInterleave::None;
  TensorSwizzle swizzle = TensorSwizzle::None;
  uint32_t promotion = 0; ///< "l2Promotion" of cuda.h
  TensorFill fill = TensorFill::Zeros;

  unsigned elementBytes() const;
  /// Returns how many elements are copied along a dimension of the box.
  uint32_t count(unsigned dimension) const;
  uint32_t rowBytes() const { return count(0) * elementBytes(); }
  uint64_t boxBytes() const;
  /// Returns the type in which reductions add the elements.
  Type elementType() const;
};

using TensorMapBytes = std::array<uint8_t, 128>;

/// Encodes a tensor map. Throws Error if the driver or the emulator does not support this map.
TensorMapBytes encodeTensorMap(const TensorMap &map);
/// Decodes a tensor map. Returns nothing if `bytes` is not a result of encodeTensorMap().
std::optional<TensorMap> decodeTensorMap(const uint8_t *bytes);

/// Returns the swizzled address (PTX ISA, "Tensor Swizzling Modes" and "Shared Memory Matrix
/// Layout"). A swizzle permutes the 16-byte chunks of each row of 128 bytes. The new index of a
/// chunk is the XOR of its old index with the lowest one, two or three bits of `row`, which is the
/// index of the row.
constexpr uint64_t swizzled(uint64_t address, TensorSwizzle swizzle, uint64_t row) {
  uint64_t mask = (uint64_t(1) << static_cast<uint32_t>(swizzle)) - 1;
  return address ^ (row & mask) << 4;
}
constexpr uint64_t swizzled(uint64_t address, TensorSwizzle swizzle) {
  return swizzled(address, swizzle, address >> 7);
}

/// Returns the number of bytes in which the pattern of a swizzle repeats, or 16 without a swizzle.
constexpr uint32_t spanOf(TensorSwizzle swizzle) { return 16u << static_cast<uint32_t>(swizzle); }

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_TENSORMAP_H
