//===- Buffers.cpp - Buffers of kernels -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "fsdp/Codegen/Codegen.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

double fsdp::toDouble(const char *p, Type type) {
  if (type.isF64())
    return *reinterpret_cast<const double *>(p);
  if (type.isF32())
    return *reinterpret_cast<const float *>(p);
  if (auto half = dyn_cast<FloatType>(type)) {
    APFloat value(half.getFloatSemantics(), APInt(16, *reinterpret_cast<const uint16_t *>(p)));
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return value.convertToDouble();
  }
  switch (getStorageType(type).getIntOrFloatBitWidth()) {
  case 8:
    return *reinterpret_cast<const int8_t *>(p);
  case 16:
    return *reinterpret_cast<const int16_t *>(p);
  case 32:
    return *reinterpret_cast<const int32_t *>(p);
  default:
    return *reinterpret_cast<const int64_t *>(p);
  }
}

void fsdp::fromDouble(char *p, Type type, double value) {
  if (auto number = dyn_cast<FloatType>(type)) {
    APFloat x(value);
    bool lost;
    x.convert(number.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = x.bitcastToAPInt().getZExtValue();
    memcpy(p, &bits, number.getWidth() / 8);
    return;
  }
  int64_t bits = value;
  memcpy(p, &bits, getStorageType(type).getIntOrFloatBitWidth() / 8);
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

std::pair<double, double> fsdp::measureError(Buffer &got, Buffer &expected, RankedTensorType type) {
  Type element = type.getElementType();
  size_t size = got.bytes / std::max<int64_t>(type.getNumElements(), 1);
  double worst = 0, rounding = 0, largest = 0;
  auto round = [&](double value) {
    char bytes[8];
    fromDouble(bytes, element, value);
    return toDouble(bytes, element);
  };
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    double x = toDouble(got.data() + i * size, element),
           y = toDouble(expected.data() + i * size, element);
    if (std::isfinite(y))
      largest = std::max(largest, std::fabs(y));
    if (x == y)
      continue;
    worst = std::isfinite(x) && std::isfinite(y) ? std::max(worst, std::fabs(x - y))
                                                 : std::numeric_limits<double>::infinity();
    if (std::isfinite(y))
      rounding = std::max(rounding, 2 * std::fabs(round(round(y + 0.3) - 0.3) - y));
  }
  unsigned precision = APFloat::semanticsPrecision(cast<FloatType>(element).getFloatSemantics());
  return {worst, std::max(rounding, std::ldexp(largest, (type.getNumElements() < 16 ? 5 : 1) -
                                                            int(precision)))};
}
