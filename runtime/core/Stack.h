//===- Stack.h - A thread's stack -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Allocates memory for the stack before the first step, because steps must not allocate memory. A
// rare code path, such as a long wait, may need more stack in a late step than in the first step.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_STACK_H
#define FSDPRT_CORE_STACK_H

#include <cstddef>

namespace fsdprt {

/// Makes the kernel allocate the next 64 KiB of the calling thread's stack.
[[gnu::noinline]] inline void touchStack() {
  char pages[64 << 10];
  for (size_t at = 0; at < sizeof pages; at += 4096)
    pages[at] = 0;
  asm volatile("" : : "r"(pages) : "memory"); // the compiler must keep the writes
}

} // namespace fsdprt

#endif // FSDPRT_CORE_STACK_H
