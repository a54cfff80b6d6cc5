//===- NumberText.h - Readable numbers --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Formats numbers of bytes in the largest unit in which the value is at least 1, and integers with
// a comma after groups of three digits. Allocates no memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_NUMBERTEXT_H
#define FSDPRT_CORE_NUMBERTEXT_H

#include <cmath>
#include <cstdint>

namespace fsdprt {

/// Writes text such as "12.3 MiB" to `text` and returns `text`.
const char *shortBytes(uint64_t bytes, char (&text)[32]);
/// Writes text such as "1,234,567" to `text` and returns `text`.
const char *grouped(uint64_t number, char (&text)[32]);

/// Returns `value`, or a NaN without a sign, which printf would write as "-nan".
inline double printableNumber(double value) { return std::isnan(value) ? NAN : value; }

} // namespace fsdprt

#endif // FSDPRT_CORE_NUMBERTEXT_H
