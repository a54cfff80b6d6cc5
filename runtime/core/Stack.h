//===- Stack.h - A thread's stack -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A path that is taken for the first time in step 1000 (a wait that is longer than those before)
// must not need memory that was not there in step 1.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_STACK_H
#define FSDPRT_CORE_STACK_H

#include <cstddef>

namespace fsdprt {

/// Gives the first pages of the calling thread's stack memory.
[[gnu::noinline]] inline void touchStack() {
  char pages[64 << 10];
  for (size_t at = 0; at < sizeof pages; at += 4096)
    pages[at] = 0;
  asm volatile("" : : "r"(pages) : "memory"); // all of it is used, for all the compiler knows
}

} // namespace fsdprt

#endif // FSDPRT_CORE_STACK_H
