//===- NumberText.h - Readable numbers --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Formats bytes in the largest unit that leaves at least 1, and digits in groups of three, without
// allocation.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_NUMBERTEXT_H
#define FSDPRT_CORE_NUMBERTEXT_H

#include <cstdint>

namespace fsdprt {

/// Writes "12.3 MiB" into `text`, and returns it.
const char *shortBytes(uint64_t bytes, char (&text)[32]);
/// Writes "1,234,567" into `text`, and returns it.
const char *grouped(uint64_t number, char (&text)[32]);

} // namespace fsdprt

#endif // FSDPRT_CORE_NUMBERTEXT_H
