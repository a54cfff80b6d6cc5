//===- Sizes.h - Limit on the size of a tensor ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Import rejects tensors of more than 2^48 elements before it multiplies dimensions. In all later
// code, element counts and byte offsets therefore fit an int64_t, and so do sums of a few of them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_SIZES_H
#define FSDP_IR_SIZES_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace mlir::fsdp {

inline constexpr int64_t kMaxElements = int64_t(1) << 48;

/// Returns whether the product of the dimensions is at most `limit`, where a dimension of size 0
/// counts as 1. If the function returns true, the product of any subset of the dimensions is also
/// at most `limit`.
inline bool fitsElements(ArrayRef<int64_t> shape, int64_t limit = kMaxElements) {
  int64_t count = 1;
  return llvm::all_of(shape, [&](int64_t dim) {
    return !llvm::MulOverflow(count, std::max<int64_t>(dim, 1), count) && count <= limit;
  });
}

} // namespace mlir::fsdp

#endif // FSDP_IR_SIZES_H
