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

/// Writes `bytes` as "12.3 MiB" to `text` and returns `text`.
const char *shortBytes(uint64_t bytes, char (&text)[32]);
/// Writes `number` as "1,234,567" to `text` and returns `text`.
const char *grouped(uint64_t number, char (&text)[32]);

/// Returns `value`. Removes the sign of a NaN, because printf() would write it as "-nan".
inline double printableNumber(double value) { return std::isnan(value) ? NAN : value; }

} // namespace fsdprt

#endif // FSDPRT_CORE_NUMBERTEXT_H
