//===- Arenas.h - The device's arena and the host's -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Offsets of a layout count through both of its arenas:
//
//   0          arena_bytes   hostBegin             mappedBytes
//   | device's |    no one's | host's              |
//
// Where the device is the CPU, a rank maps them as one range.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_ARENAS_H
#define FSDPRT_ARTIFACT_ARENAS_H

#include "fsdprt/artifact_generated.h"
#include "fsdprt/artifact_header.h"

namespace fsdprt {

/// The most bytes that a verified layout has in either arena.
constexpr uint64_t maxArenaBytes = uint64_t(1) << 48;

/// Arenas are verified to have at most maxArenaBytes: nothing here overflows.
inline uint64_t hostBegin(const fb::Layout &layout) {
  uint64_t mask = FSDPRT_HOST_ARENA_ALIGNMENT - 1;
  return (layout.arena_bytes() + mask) & ~mask;
}
inline uint64_t mappedBytes(const fb::Layout &layout) {
  return layout.host_bytes() ? hostBegin(layout) + layout.host_bytes() : layout.arena_bytes();
}
inline bool isOnHost(const fb::Layout &layout, uint64_t offset) {
  return layout.host_bytes() && offset >= hostBegin(layout);
}
/// Whether [begin, last + bytes) lies in one of the two.
inline bool liesInArena(const fb::Layout &layout, uint64_t begin, uint64_t last, uint64_t bytes) {
  uint64_t end = isOnHost(layout, begin) ? mappedBytes(layout) : layout.arena_bytes();
  return bytes <= end && last <= end - bytes;
}

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_ARENAS_H
