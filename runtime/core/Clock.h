//===- Clock.h - The machine's monotonic clock ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_CLOCK_H
#define FSDPRT_CORE_CLOCK_H

#include <cstdint>
#include <ctime>

namespace fsdprt {

inline uint64_t monotonicNanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

} // namespace fsdprt

#endif // FSDPRT_CORE_CLOCK_H
