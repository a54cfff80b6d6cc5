//===- Sanitized.h - Detecting sanitizers ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_SANITIZED_H
#define FSDPRT_TEST_SANITIZED_H

namespace fsdprt::test {

/// True if this program is built with a sanitizer. The program is then several times slower. The
/// program also cannot run under a limit on its address space, because sanitizers reserve a large
/// part of the address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool isSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool isSanitized = true;
#else
constexpr bool isSanitized = false;
#endif
#else
constexpr bool isSanitized = false;
#endif

/// True if this program is built with ThreadSanitizer. The memory that ThreadSanitizer itself uses
/// grows during a run.
#if defined(__SANITIZE_THREAD__)
constexpr bool isThreadSanitized = true;
#elif defined(__has_feature)
constexpr bool isThreadSanitized = __has_feature(thread_sanitizer);
#else
constexpr bool isThreadSanitized = false;
#endif

} // namespace fsdprt::test

#endif // FSDPRT_TEST_SANITIZED_H
