//===- Arenas.h - The arenas of device and host, and the file ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An offset in a layout refers to the arena of the device, to the arena of the host, or to the file
// of offloaded states:
//
//   0          arena_bytes   hostBegin             mappedBytes   fileBegin     + file_bytes
//   | device    |    gap      | host                |    gap      | file          |
//
// If the device is a CPU, each rank maps its two arenas as one range of memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_ARENAS_H
#define FSDPRT_ARTIFACT_ARENAS_H

#include "fsdprt/artifact_generated.h"
#include "fsdprt/artifact_header.h"
#include <algorithm>

namespace fsdprt {

/// Largest size in bytes of one arena in a verified layout.
constexpr uint64_t maxArenaBytes = uint64_t(1) << 48;

/// hostBegin() and mappedBytes() do not overflow, because no arena exceeds maxArenaBytes bytes.
inline uint64_t hostBegin(const fb::Layout &layout) {
  uint64_t mask = FSDPRT_HOST_ARENA_ALIGNMENT - 1;
  return (layout.arena_bytes() + mask) & ~mask;
}
inline uint64_t mappedBytes(const fb::Layout &layout) {
  return layout.host_bytes() ? hostBegin(layout) + layout.host_bytes() : layout.arena_bytes();
}
/// Returns the offset at which the padding of a buffer ends. The buffer without its padding ends at
/// `end`. The padding ends at the next multiple of FSDPRT_BUFFER_ALIGNMENT bytes, or at the end of
/// the arenas if the arenas end before this multiple.
inline uint64_t alignedEnd(const fb::Layout &layout, uint64_t end) {
  uint64_t mask = FSDPRT_BUFFER_ALIGNMENT - 1;
  return std::min((end + mask) & ~mask, mappedBytes(layout));
}
inline uint64_t fileBegin(const fb::Layout &layout) {
  uint64_t mask = FSDPRT_HOST_ARENA_ALIGNMENT - 1;
  return (hostBegin(layout) + layout.host_bytes() + mask) & ~mask;
}
inline bool isInFile(const fb::Layout &layout, uint64_t offset) {
  return layout.file_bytes() && offset >= fileBegin(layout);
}
inline bool isOnHost(const fb::Layout &layout, uint64_t offset) {
  return layout.host_bytes() && offset >= hostBegin(layout) && !isInFile(layout, offset);
}
inline bool isOnDevice(const fb::Layout &layout, uint64_t offset) {
  return !isOnHost(layout, offset) && !isInFile(layout, offset);
}
/// Returns true if the range [begin, last + bytes) lies in one arena or in the file of states.
inline bool liesInArena(const fb::Layout &layout, uint64_t begin, uint64_t last, uint64_t bytes) {
  uint64_t end = isInFile(layout, begin)   ? fileBegin(layout) + layout.file_bytes()
                 : isOnHost(layout, begin) ? mappedBytes(layout)
                                           : layout.arena_bytes();
  return bytes <= end && last <= end - bytes;
}

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_ARENAS_H
