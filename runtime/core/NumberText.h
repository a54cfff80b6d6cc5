//===- NumberText.h - Readable numbers --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Formats numbers of bytes with the largest unit that gives a value of at least 1, and integers
// with commas between groups of three digits. Allocates no memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_NUMBERTEXT_H
#define FSDPRT_CORE_NUMBERTEXT_H

#include <cmath>
#include <cstdint>

namespace fsdprt {

/// Writes `bytes` to `text`, for example as "12.3 MiB", and returns `text`.
const char *shortBytes(uint64_t bytes, char (&text)[32]);
/// Writes `number` to `text`, for example as "1,234,567", and returns `text`.
const char *grouped(uint64_t number, char (&text)[32]);

/// Returns `value`, or a NaN without sign if `value` is a NaN, because printf() would write a
/// negative NaN as "-nan".
inline double printableNumber(double value) { return std::isnan(value) ? NAN : value; }

} // namespace fsdprt

#endif // FSDPRT_CORE_NUMBERTEXT_H
