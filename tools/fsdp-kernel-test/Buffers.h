//===- Buffers.h - Buffers of kernels ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_BUFFERS_H
#define FSDP_TOOLS_KERNELTEST_BUFFERS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <cstring>
#include <vector>

namespace mlir::fsdp {

/// Memory that is aligned to 64 bytes. Guard bytes with a known value follow the memory.
class Buffer {
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> lines;

public:
  size_t bytes;
  explicit Buffer(size_t bytes, char content = char(0xA5)) : lines(bytes / 64 + 2), bytes(bytes) {
    memset(data(), 0xA5, lines.size() * 64);
    memset(data(), content, bytes);
  }
  char *data() { return lines.front().bytes; }
  bool intact() {
    return llvm::all_of(ArrayRef<char>(data() + bytes, 64), [](char c) { return c == char(0xA5); });
  }
};

/// Reads and writes elements of a type as doubles.
class ElementCodec {
  const llvm::fltSemantics *semantics = nullptr; ///< null for integers
  const double *values = nullptr;                ///< of all numbers of a 16-bit float

public:
  size_t size; ///< of an element, in bytes
  explicit ElementCodec(Type type);
  double read(const char *p) const;
  /// Rounds the number to the nearest one of the type.
  void write(char *p, double value) const;
};

void fill(Buffer &buffer, DenseElementsAttr values);

/// Returns |x - y|. Returns 0 if both numbers are NaN or the same infinity, and infinity for all
/// other pairs of which one is not finite.
double differenceOf(double x, double y);

/// Returns two numbers: the largest difference between the elements of both buffers, and the
/// largest difference that rounding may cause. The second number is twice the largest error that
/// rounding causes if 0.3 is added to an element and subtracted again. It is at least one unit in
/// the last place of the largest element, or 16 units for fewer than 16 elements. With few
/// elements, an evaluation in low precision may by chance have no errors.
std::pair<double, double> measureError(Buffer &got, Buffer &expected, RankedTensorType type);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_BUFFERS_H
