//===- TensorMap.cpp - Encoded tensor maps ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks all requirements of cuTensorMapEncodeTiled() that cuda.h documents, except one. According
// to cuda.h, each stride must be at least as large as its dimension. The driver does not check this
// requirement, and tensor maps that split rows into panels do not satisfy it.
//
//===----------------------------------------------------------------------===//

#include "emulator/TensorMap.h"
#include "core/Error.h"
#include <cstddef>
#include <cstring>
#include <iterator>

using namespace fsdprt;
using namespace fsdprt::emulate;

namespace {
struct TypeRow {
  const char *name;
  Type element; ///< type of the elements in reductions
  uint8_t bytes;
  bool isFloating;
};

struct Encoded {
  uint64_t magic;
  uint64_t address;
  uint64_t strides[maxTensorRank - 1];
  uint32_t sizes[maxTensorRank]; ///< for each dimension: the size minus one
  uint8_t box[maxTensorRank];    ///< for each dimension: the extent of the box minus one
  uint8_t steps[maxTensorRank];
  uint8_t type, rank, interleave, swizzle, promotion, fill;
  uint8_t unused[40];
  uint32_t checksum;
};
static_assert(sizeof(Encoded) == 128);
} // namespace

static constexpr uint64_t magicNumber = 0x70616d7470647366; // "fsdptmap"

static const TypeRow types[] = {
    {"U8", Type::U8, 1, false},      {"U16", Type::U16, 2, false},    {"U32", Type::U32, 4, false},
    {"S32", Type::S32, 4, false},    {"U64", Type::U64, 8, false},    {"S64", Type::S64, 8, false},
    {"F16", Type::F16, 2, true},     {"F32", Type::F32, 4, true},     {"F64", Type::F64, 8, true},
    {"BF16", Type::BF16, 2, true},   {"F32_FTZ", Type::F32, 4, true}, {"TF32", Type::F32, 4, true},
    {"TF32_FTZ", Type::F32, 4, true}};

static const TypeRow &rowOf(TensorType type) { return types[static_cast<uint32_t>(type)]; }

unsigned TensorMap::elementBytes() const { return rowOf(type).bytes; }
Type TensorMap::elementType() const { return rowOf(type).element; }

uint32_t TensorMap::count(unsigned dimension) const {
  return dimension ? (box[dimension] + steps[dimension] - 1) / steps[dimension] : box[0];
}

uint64_t TensorMap::boxBytes() const {
  uint64_t bytes = rowBytes();
  for (unsigned d = 1; d < rank; ++d)
    bytes *= count(d);
  return bytes;
}

static unsigned long long number(uint64_t value) { return value; }

static void checkKinds(const TensorMap &map) {
  uint32_t type = static_cast<uint32_t>(map.type),
           interleave = static_cast<uint32_t>(map.interleave);
  uint32_t swizzle = static_cast<uint32_t>(map.swizzle), fill = static_cast<uint32_t>(map.fill);
  if (type >= std::size(types))
    badInput("tensor map: data type %u: expected 0 to %zu (packed types of 4 and 6 bits are not "
             "supported)",
             type, std::size(types) - 1);
  if (interleave > 2)
    badInput("tensor map: interleave %u: expected 0 to 2", interleave);
  if (swizzle > 3)
    badInput(
        "tensor map: swizzle %u: expected 0 to 3 (other atoms than 16 bytes are not supported)",
        swizzle);
  if (map.promotion > 3)
    badInput("tensor map: L2 promotion %u: expected 0 to 3", map.promotion);
  if (fill > 1)
    badInput("tensor map: out-of-bounds fill %u: expected 0 or 1", fill);
  if (fill && !rowOf(map.type).isFloating)
    badInput("tensor map: NaN as out-of-bounds fill of type %s, which is not a floating-point one",
             rowOf(map.type).name);
  if (!map.rank || map.rank > maxTensorRank)
    badInput("tensor map: rank %u: expected 1 to %u", map.rank, maxTensorRank);
  if (interleave && map.rank < 3)
    badInput("tensor map: rank %u: expected 3 at least of an interleaved layout", map.rank);
  if (map.interleave == TensorInterleave::Bytes32 && map.swizzle != TensorSwizzle::Bytes32)
    badInput("tensor map: swizzle %u: expected 32 bytes, as the interleave has", swizzle);
}

static void checkPlaces(const TensorMap &map) {
  uint64_t alignment = map.interleave == TensorInterleave::Bytes32 ? 32 : 16;
  if (map.address % alignment)
    badInput("tensor map: address 0x%llx: expected a multiple of %llu", number(map.address),
             number(alignment));
  for (unsigned d = 0; d < map.rank; ++d)
    if (!map.sizes[d] || map.sizes[d] > uint64_t(1) << 32)
      badInput("tensor map: size %llu of dimension %u: expected 1 to 2^32", number(map.sizes[d]),
               d);
  for (unsigned d = 1; d < map.rank; ++d)
    if (map.strides[d - 1] % alignment || map.strides[d - 1] >= uint64_t(1) << 40)
      badInput("tensor map: stride %llu of dimension %u: expected a multiple of %llu below 2^40",
               number(map.strides[d - 1]), d, number(alignment));
}

static void checkBox(const TensorMap &map) {
  for (unsigned d = 0; d < map.rank; ++d) {
    if (!map.box[d] || map.box[d] > 256)
      badInput("tensor map: box of %u in dimension %u: expected 1 to 256", map.box[d], d);
    if (!map.steps[d] || map.steps[d] > 8)
      badInput("tensor map: element stride %u of dimension %u: expected 1 to 8", map.steps[d], d);
  }
  if (map.interleave != TensorInterleave::None)
    badInput("tensor map: interleaved layouts are not supported");
  uint32_t row = map.rowBytes();
  if (row % 16)
    badInput("tensor map: %u bytes of a box in dimension 0: expected a multiple of 16", row);
  if (map.swizzle != TensorSwizzle::None && row > spanOf(map.swizzle))
    badInput("tensor map: %u bytes of a box in dimension 0: expected %u at most, which the swizzle "
             "spans",
             row, spanOf(map.swizzle));
}

/// Returns the FNV-1a hash of all bytes that precede the checksum.
static uint32_t checksumOf(const Encoded &encoded) {
  auto bytes = reinterpret_cast<const uint8_t *>(&encoded);
  uint32_t sum = 2166136261u;
  for (size_t k = 0; k < offsetof(Encoded, checksum); ++k)
    sum = (sum ^ bytes[k]) * 16777619u;
  return sum;
}

TensorMapBytes fsdprt::emulate::encodeTensorMap(const TensorMap &map) {
  checkKinds(map);
  checkPlaces(map);
  checkBox(map);
  Encoded encoded = {};
  encoded.magic = magicNumber;
  encoded.address = map.address;
  for (unsigned d = 0; d < map.rank; ++d) {
    encoded.sizes[d] = map.sizes[d] - 1;
    encoded.box[d] = map.box[d] - 1;
    encoded.steps[d] = map.steps[d];
    if (d)
      encoded.strides[d - 1] = map.strides[d - 1];
  }
  encoded.type = static_cast<uint8_t>(map.type), encoded.rank = map.rank;
  encoded.interleave = static_cast<uint8_t>(map.interleave),
  encoded.swizzle = static_cast<uint8_t>(map.swizzle);
  encoded.promotion = map.promotion, encoded.fill = static_cast<uint8_t>(map.fill);
  encoded.checksum = checksumOf(encoded);
  TensorMapBytes bytes;
  std::memcpy(bytes.data(), &encoded, sizeof encoded);
  return bytes;
}

std::optional<TensorMap> fsdprt::emulate::decodeTensorMap(const uint8_t *bytes) {
  Encoded encoded;
  std::memcpy(&encoded, bytes, sizeof encoded);
  if (encoded.magic != magicNumber || encoded.checksum != checksumOf(encoded))
    return std::nullopt;
  TensorMap map;
  map.address = encoded.address;
  map.type = static_cast<TensorType>(encoded.type), map.rank = encoded.rank;
  for (unsigned d = 0; d < map.rank; ++d) {
    map.sizes[d] = uint64_t(encoded.sizes[d]) + 1;
    map.box[d] = encoded.box[d] + 1u;
    map.steps[d] = encoded.steps[d];
    if (d)
      map.strides[d - 1] = encoded.strides[d - 1];
  }
  map.interleave = static_cast<TensorInterleave>(encoded.interleave),
  map.swizzle = static_cast<TensorSwizzle>(encoded.swizzle);
  map.promotion = encoded.promotion, map.fill = static_cast<TensorFill>(encoded.fill);
  return map;
}
