//===- Buffers.cpp - Buffers of kernels -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "fsdp/Codegen/Codegen.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <optional>

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the values of all 65,536 numbers of a 16-bit format.
static std::vector<double> listValues(const llvm::fltSemantics &semantics) {
  std::vector<double> values(1 << 16);
  for (unsigned bits = 0; bits < values.size(); ++bits) {
    APFloat value(semantics, APInt(16, bits));
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    values[bits] = value.convertToDouble();
  }
  return values;
}

ElementCodec::ElementCodec(Type type) {
  size = getStorageType(type).getIntOrFloatBitWidth() / 8;
  auto number = dyn_cast<FloatType>(type);
  if (!number)
    return;
  semantics = &number.getFloatSemantics();
  if (size != 2)
    return;
  static const std::vector<double> brain = listValues(APFloat::BFloat()),
                                   half = listValues(APFloat::IEEEhalf());
  values = type.isBF16() ? brain.data() : half.data();
}

double ElementCodec::read(const char *p) const {
  if (values)
    return values[*reinterpret_cast<const uint16_t *>(p)];
  if (semantics)
    return size == 8 ? *reinterpret_cast<const double *>(p) : *reinterpret_cast<const float *>(p);
  switch (size) {
  case 1:
    return *reinterpret_cast<const int8_t *>(p);
  case 2:
    return *reinterpret_cast<const int16_t *>(p);
  case 4:
    return *reinterpret_cast<const int32_t *>(p);
  default:
    return static_cast<double>(*reinterpret_cast<const int64_t *>(p));
  }
}

/// Rounds a number to a 16-bit format, unless the result is subnormal, infinite or NaN.
static std::optional<uint16_t> roundNormal(double value, const llvm::fltSemantics &semantics) {
  constexpr int mantissaOfDouble = 52, biasOfDouble = 1023;
  int mantissa = int(APFloat::semanticsPrecision(semantics)) - 1, bias = (1 << (14 - mantissa)) - 1;
  uint64_t bits = llvm::bit_cast<uint64_t>(value), sign = bits >> 63;
  int exponent = int(bits >> mantissaOfDouble & 0x7ff) - biasOfDouble;
  if (exponent < 1 - bias || exponent >= bias)
    return std::nullopt;
  int dropped = mantissaOfDouble - mantissa;
  uint64_t magnitude = bits & ~0ull >> 1, isOdd = magnitude >> dropped & 1;
  magnitude = (magnitude + (1ull << (dropped - 1)) - 1 + isOdd) >> dropped;
  return uint16_t(sign << 15 | (magnitude - (uint64_t(biasOfDouble - bias) << mantissa)));
}

void ElementCodec::write(char *p, double value) const {
  if (!semantics) {
    int64_t bits = static_cast<int64_t>(value);
    memcpy(p, &bits, size);
    return;
  }
  if (size == 8) {
    memcpy(p, &value, size);
    return;
  }
  if (size == 4) {
    float narrow = static_cast<float>(value);
    memcpy(p, &narrow, size);
    return;
  }
  std::optional<uint16_t> normal = roundNormal(value, *semantics);
  if (!normal) {
    APFloat x(value);
    bool lost;
    x.convert(*semantics, APFloat::rmNearestTiesToEven, &lost);
    normal = uint16_t(x.bitcastToAPInt().getZExtValue());
  }
  memcpy(p, &*normal, size);
}

void fsdp::fill(Buffer &buffer, DenseElementsAttr values) {
  size_t size = buffer.bytes / values.getNumElements();
  for (auto [i, value] : llvm::enumerate(values.getValues<Attribute>())) {
    APInt bits = isa<FloatAttr>(value) ? cast<FloatAttr>(value).getValue().bitcastToAPInt()
                                       : cast<IntegerAttr>(value).getValue();
    uint64_t raw = bits.getZExtValue();
    memcpy(buffer.data() + i * size, &raw, size);
  }
}

double fsdp::differenceOf(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y)))
    return 0;
  bool areFinite = std::isfinite(x) && std::isfinite(y);
  return areFinite ? std::fabs(x - y) : std::numeric_limits<double>::infinity();
}

std::pair<double, double> fsdp::measureError(Buffer &got, Buffer &expected, RankedTensorType type) {
  ElementCodec codec(type.getElementType());
  double worst = 0, rounding = 0, largest = 0;
  auto round = [&](double value) {
    char bytes[8];
    codec.write(bytes, value);
    return codec.read(bytes);
  };
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    double x = codec.read(got.data() + i * codec.size),
           y = codec.read(expected.data() + i * codec.size);
    if (std::isfinite(y))
      largest = std::max(largest, std::fabs(y));
    double difference = differenceOf(x, y);
    worst = std::max(worst, difference);
    if (difference > 0 && std::isfinite(y))
      rounding = std::max(rounding, 2 * std::fabs(round(round(y + 0.3) - 0.3) - y));
  }
  unsigned precision =
      APFloat::semanticsPrecision(cast<FloatType>(type.getElementType()).getFloatSemantics());
  return {worst, std::max(rounding, std::ldexp(largest, (type.getNumElements() < 16 ? 5 : 1) -
                                                            int(precision)))};
}
