//===- DType.h - Element types ----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines sizes, names and conversions of element types. Conversions to a smaller type round to the
// nearest value, and ties to even.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_DTYPE_H
#define FSDPRT_CORE_DTYPE_H

#include "fsdprt/artifact_generated.h"
#include <cstdint>
#include <cstring>

namespace fsdprt {

using DType = fb::DType;

inline uint64_t sizeOf(DType type) {
  static constexpr uint8_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1};
  return sizes[static_cast<int>(type)];
}

inline bool isFloat(DType type) { return type <= DType::bf16; }

inline const char *nameOf(DType type) { return fb::EnumNameDType(type); }

inline float bf16ToF32(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

inline uint16_t f32ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t quiet = bits >> 16 | 0x40; // A NaN keeps its sign and its upper payload bits.
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

inline float f16ToF32(uint16_t bits) {
  _Float16 value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<float>(value);
}

inline uint16_t f32ToF16(float value) {
  _Float16 narrow = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

template <typename Integer>
Integer loadInteger(const void *from) {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Returns the element at `from` as f64. Only integers of more than 53 bits may be rounded.
inline double loadElement(DType type, const void *from) {
  switch (type) {
  case DType::f64: {
    double value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  case DType::f32: {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  case DType::f16:
  case DType::bf16: {
    uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return type == DType::f16 ? f16ToF32(bits) : bf16ToF32(bits);
  }
  case DType::i64:
    return static_cast<double>(loadInteger<int64_t>(from));
  case DType::i32:
    return loadInteger<int32_t>(from);
  case DType::i16:
    return loadInteger<int16_t>(from);
  case DType::i8:
    return loadInteger<int8_t>(from);
  case DType::i1:
    return loadInteger<uint8_t>(from) != 0;
  }
  return 0;
}

/// Stores `value`, which must be a whole number that `Integer` can represent.
template <typename Integer>
void storeInteger(double value, void *to) {
  Integer narrow = static_cast<Integer>(value);
  std::memcpy(to, &narrow, sizeof narrow);
}

/// Returns true if an integer of `type` can represent `value`.
inline bool isHeldBy(DType type, double value) {
  if (type == DType::i1)
    return value == 0 || value == 1;
  double limit = type == DType::i64   ? 0x1p63
                 : type == DType::i32 ? 0x1p31
                 : type == DType::i16 ? 0x1p15
                                      : 0x1p7;
  return value >= -limit && value < limit &&
         value == static_cast<double>(static_cast<int64_t>(value));
}

/// Stores `value` as one element at `to`. For f16 and bf16, `value` is first rounded to f32 and
/// then to `type`, because a parameter must be equal to its f32 master after rounding to `type`. An
/// integer type must be able to represent `value`.
inline void storeElement(DType type, double value, void *to) {
  switch (type) {
  case DType::f64:
    std::memcpy(to, &value, sizeof value);
    return;
  case DType::f32: {
    float narrow = static_cast<float>(value);
    std::memcpy(to, &narrow, sizeof narrow);
    return;
  }
  case DType::f16:
  case DType::bf16: {
    uint16_t bits = type == DType::f16 ? f32ToF16(static_cast<float>(value))
                                       : f32ToBf16(static_cast<float>(value));
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
  case DType::i64:
    storeInteger<int64_t>(value, to);
    return;
  case DType::i32:
    storeInteger<int32_t>(value, to);
    return;
  case DType::i16:
    storeInteger<int16_t>(value, to);
    return;
  case DType::i8:
    storeInteger<int8_t>(value, to);
    return;
  case DType::i1:
    storeInteger<uint8_t>(value, to);
    return;
  }
}

} // namespace fsdprt

#endif // FSDPRT_CORE_DTYPE_H
