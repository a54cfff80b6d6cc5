//===- AllocationHook.cpp - Counting allocations ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines malloc(), calloc() and related functions in the executable. These definitions replace the
// functions of the C library for every caller, including operator new. Each of them counts the
// call, and then calls the function of the C library by its internal name. In a build with a
// sanitizer, hooks of the sanitizer's allocator count the calls instead.
//
//===----------------------------------------------------------------------===//

#include "AllocationHook.h"
#include "core/AllocationCount.h"
#include <atomic>
#include <cerrno>

using namespace fsdprt;

static std::atomic<bool> counting{false};
static std::atomic<uint64_t> allocations{0};
static std::atomic<size_t> firstSize{0};
static std::atomic<const void *> firstPlace{nullptr};

static inline void note(size_t size, const void *place) {
  if (!counting.load(std::memory_order_relaxed) || areAllocationsUncounted)
    return;
  if (allocations.fetch_add(1, std::memory_order_relaxed) == 0) {
    firstSize.store(size, std::memory_order_relaxed);
    firstPlace.store(place, std::memory_order_relaxed);
  }
}

uint64_t fsdprt::countedAllocations() { return allocations.load(); }
size_t fsdprt::firstAllocationSize() { return firstSize.load(); }
const void *fsdprt::firstAllocationPlace() { return firstPlace.load(); }

void AllocationCheck::afterRun(const TrainingRun &run) {
  if (countedAllocations() == 0)
    return run.reporter.line("no memory was allocated during the steps%s",
                             run.options.save.empty() ? "" : ", except by saves");
  failed("expected no allocation during the steps, found %llu; the first has %zu bytes and returns "
         "to %p",
         static_cast<unsigned long long>(countedAllocations()), firstAllocationSize(),
         firstAllocationPlace());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FSDP_RUN_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FSDP_RUN_SANITIZED
#endif
#endif

#ifdef FSDP_RUN_SANITIZED

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                                         void (*)(const volatile void *));

void fsdprt::countAllocations(bool on) {
  static bool installed = __sanitizer_install_malloc_and_free_hooks(
                              [](const volatile void *, size_t size) { note(size, nullptr); },
                              [](const volatile void *) {}) != 0;
  counting = on && installed;
}

#else

void fsdprt::countAllocations(bool on) { counting = on; }

#pragma GCC visibility push(default)
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
  note(size, __builtin_return_address(0));
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  note(count * size, __builtin_return_address(0));
  return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  note(size, __builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void *memalign(size_t alignment, size_t size) {
  note(size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  note(size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
  note(size, __builtin_return_address(0));
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
    return EINVAL;
  void *result = __libc_memalign(alignment, size);
  if (!result)
    return ENOMEM;
  *memory = result;
  return 0;
}
}
#pragma GCC visibility pop

#endif
