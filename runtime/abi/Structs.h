//===- Structs.h - Structs whose size the caller knows ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A caller that was compiled with an older header has shorter structs. The functions below read
// missing members as zero, and do not write them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ABI_STRUCTS_H
#define FSDPRT_ABI_STRUCTS_H

#include "core/Error.h"
#include <algorithm>
#include <cstring>

namespace fsdprt {

/// Returns a complete struct with the members that the caller's struct has and zeros in all others.
/// `from` may be null.
template <typename Struct>
Struct takeStruct(const Struct *from) {
  Struct result = {};
  if (from && (from->struct_size < sizeof(size_t) || from->struct_size > (size_t(1) << 20)))
    badInput("struct_size: expected the size of the struct, at most 1 MiB");
  if (from)
    std::memcpy(&result, from, std::min(from->struct_size, sizeof result));
  result.struct_size = sizeof result;
  return result;
}

/// Copies the members of `filled` that the caller's struct `to` has.
template <typename Struct>
void giveStruct(Struct &filled, Struct *to) {
  size_t size = std::min(to->struct_size, sizeof filled);
  filled.struct_size = to->struct_size;
  std::memcpy(to, &filled, size);
}

} // namespace fsdprt

#endif // FSDPRT_ABI_STRUCTS_H
