//===- Structs.h - Structs whose size the caller knows ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A caller that was compiled with an older header has structs with fewer members. takeStruct() sets
// the missing members to zero, and giveStruct() does not write them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ABI_STRUCTS_H
#define FSDPRT_ABI_STRUCTS_H

#include "core/Error.h"
#include <algorithm>
#include <cstring>

namespace fsdprt {

/// Copies the caller's struct `from` into a complete struct and returns this struct. Members that
/// the caller's struct lacks are zero. If `from` is null, all members are zero.
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

/// Copies those members of `filled` that exist in the caller's struct `to`.
template <typename Struct>
void giveStruct(Struct &filled, Struct *to) {
  size_t size = std::min(to->struct_size, sizeof filled);
  filled.struct_size = to->struct_size;
  std::memcpy(to, &filled, size);
}

} // namespace fsdprt

#endif // FSDPRT_ABI_STRUCTS_H
