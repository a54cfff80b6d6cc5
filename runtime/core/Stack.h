//===- Stack.h - A thread's stack -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A code path that first runs in step 1000, such as a longer wait, must not allocate stack memory.
// So the stack is allocated in advance.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_STACK_H
#define FSDPRT_CORE_STACK_H

#include <cstddef>

namespace fsdprt {

/// Makes the kernel allocate the first 64 KiB of the calling thread's stack.
[[gnu::noinline]] inline void touchStack() {
  char pages[64 << 10];
  for (size_t at = 0; at < sizeof pages; at += 4096)
    pages[at] = 0;
  asm volatile("" : : "r"(pages) : "memory"); // the compiler must not remove the writes
}

} // namespace fsdprt

#endif // FSDPRT_CORE_STACK_H
