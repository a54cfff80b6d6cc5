//===- Reduce.cpp - Sums in rank order --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Elements are summed in blocks of 2048. The sums of a block over all ranks are computed on the
// stack, in a buffer that is small enough to stay in the L1 cache. The sums are then scaled and
// written. Large results are written with streaming stores, which do not read the lines from memory
// first. The code is compiled for three vector widths. At run time, the widest version that the
// processor supports is used.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Reduce.h"
#include <algorithm>
#include <type_traits>

using namespace fsdprt;

static constexpr uint64_t blockSize = 2048;
/// Least number of bytes of a result that is written with streaming stores.
static constexpr uint64_t streamedBytes = 1 << 20;

#if defined(__x86_64__) && defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define FSDPRT_HAS_STREAMING_STORES
#endif
#endif

namespace {
struct F64 {
  using Stored = double;
  using Sum = double;
  static Sum load(Stored x) { return x; }
  static Stored store(Sum x) { return x; }
};
struct F32 {
  using Stored = float;
  using Sum = float;
  static Sum load(Stored x) { return x; }
  static Stored store(Sum x) { return x; }
};
struct BF16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored x) { return bf16ToF32(x); }
  static Stored store(Sum x) { return f32ToBf16(x); }
};
struct F16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored x) { return f16ToF32(x); }
  static Stored store(Sum x) { return f32ToF16(x); }
};
} // namespace

using Reducer = void (*)(bool average, const std::byte *const *sources, uint32_t ranks,
                         uint64_t offset, uint64_t elements, std::byte *target);

/// Copies `size` elements to `to`. If `isStreamed` is true, writes whole cache lines with streaming
/// stores; `from` and `to` must then be aligned to a cache line.
template <typename Stored>
static inline __attribute__((always_inline)) void write(const Stored *from, uint64_t size,
                                                        bool isStreamed, Stored *to) {
  uint64_t done = 0;
#ifdef FSDPRT_HAS_STREAMING_STORES
  using Line = Stored __attribute__((vector_size(64), may_alias));
  constexpr uint64_t perLine = sizeof(Line) / sizeof(Stored);
  for (; isStreamed && done + perLine <= size; done += perLine)
    __builtin_nontemporal_store(*reinterpret_cast<const Line *>(from + done),
                                reinterpret_cast<Line *>(to + done));
#endif
  std::copy(from + done, from + size, to + done);
}

template <typename Type>
static inline __attribute__((always_inline)) void
reduce(bool average, const std::byte *const *sources, uint32_t ranks, uint64_t offset,
       uint64_t elements, std::byte *target) {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;
  const Sum scale = Sum(1) / static_cast<Sum>(ranks);
  auto *to = reinterpret_cast<Stored *>(target);
  // If the sums replace a source, their lines are in the cache already.
  bool isStreamed =
      elements * sizeof(Stored) >= streamedBytes && reinterpret_cast<uintptr_t>(target) % 64 == 0 &&
      std::none_of(sources, sources + ranks,
                   [&](const std::byte *source) { return source && source + offset == target; });
  for (uint64_t begin = 0; begin < elements; begin += blockSize) {
    alignas(64) Sum sum[blockSize];
    uint64_t size = std::min(blockSize, elements - begin);
    for (uint64_t i = 0; i < size; ++i)
      sum[i] = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (!sources[rank])
        continue;
      const auto *from = reinterpret_cast<const Stored *>(sources[rank] + offset) + begin;
      for (uint64_t i = 0; i < size; ++i)
        sum[i] += Type::load(from[i]);
    }
    if (average)
      for (uint64_t i = 0; i < size; ++i)
        sum[i] *= scale;
    if constexpr (std::is_same_v<Stored, Sum>) {
      write(sum, size, isStreamed, to + begin);
    } else {
      // All sums are rounded before a line is written, because only this loop gets vector code.
      alignas(64) Stored rounded[blockSize];
      for (uint64_t i = 0; i < size; ++i)
        rounded[i] = Type::store(sum[i]);
      write(rounded, size, isStreamed, to + begin);
    }
  }
#ifdef FSDPRT_HAS_STREAMING_STORES
  if (isStreamed)
    __builtin_ia32_sfence(); // later stores become visible after the streaming stores
#endif
}

#define FSDPRT_REDUCER(NAME, ATTRIBUTE)                                                            \
  template <typename Type>                                                                         \
  ATTRIBUTE static void NAME(bool average, const std::byte *const *sources, uint32_t ranks,        \
                             uint64_t offset, uint64_t elements, std::byte *target) {              \
    reduce<Type>(average, sources, ranks, offset, elements, target);                               \
  }

FSDPRT_REDUCER(reduceBaseline, )
#if defined(__x86_64__)
FSDPRT_REDUCER(reduceAvx2, __attribute__((target("avx2,f16c"))))
FSDPRT_REDUCER(reduceAvx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c"))))
#endif

template <typename Type>
static Reducer choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return reduceAvx512<Type>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
    return reduceAvx2<Type>;
#endif
  return reduceBaseline<Type>;
}

void fsdprt::reduceInOrder(DType type, bool average, const std::byte *const *sources,
                           uint32_t ranks, uint64_t offset, uint64_t elements, std::byte *target) {
  static const Reducer reducers[] = {choose<F64>(), choose<F32>(), choose<F16>(), choose<BF16>()};
  reducers[static_cast<int>(type)](average, sources, ranks, offset, elements, target);
}
