//===- Lanes.h - One loop over the lanes of a warp --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The templates in this file make handlers of instructions from operations. An operation is a
// struct with a function such as `static R apply(A, B)`, which computes the result of one lane. A
// handler applies the operation to all lanes in a loop. The loop writes the results to a separate
// array. The results therefore do not alias the operands, and the compiler vectorises the loop. A
// second version of the handler is compiled for AVX2 and FMA, and is used if the host has both.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_LANES_H
#define FSDPRT_EMULATOR_MACHINE_LANES_H

#include "emulator/machine/Machine.h"

namespace fsdprt::emulate {

#define FSDPRT_INLINE __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define FSDPRT_WIDE __attribute__((target("avx2,fma,f16c")))
inline bool hostIsWide() {
  static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return wide;
}
#else
#define FSDPRT_WIDE
inline bool hostIsWide() { return false; }
#endif

/// Writes the results of active lanes, and does not change the values of other lanes.
template <typename T>
FSDPRT_INLINE void keep(T *to, const T *from, LaneMask active) {
  if (active == allLanes) {
    for (unsigned lane = 0; lane < warpSize; ++lane)
      to[lane] = from[lane];
    return;
  }
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      to[lane] = from[lane];
}

FSDPRT_INLINE void keepBits(LaneMask &to, LaneMask from, LaneMask active) {
  to = (to & ~active) | (from & active);
}

template <typename Op, typename R, typename A>
struct Map1 {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    R result[warpSize];
    const A *a = warp.at<A>(i.in[0]);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      result[lane] = Op::apply(a[lane]);
    keep(warp.at<R>(i.out[0]), result, active);
    return Step::Next;
  }
};

template <typename Op, typename R, typename A, typename B = A>
struct Map2 {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    R result[warpSize];
    const A *a = warp.at<A>(i.in[0]);
    const B *b = warp.at<B>(i.in[1]);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      result[lane] = Op::apply(a[lane], b[lane]);
    keep(warp.at<R>(i.out[0]), result, active);
    return Step::Next;
  }
};

template <typename Op, typename R, typename A, typename B = A, typename C = A>
struct Map3 {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    R result[warpSize];
    const A *a = warp.at<A>(i.in[0]);
    const B *b = warp.at<B>(i.in[1]);
    const C *c = warp.at<C>(i.in[2]);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      result[lane] = Op::apply(a[lane], b[lane], c[lane]);
    keep(warp.at<R>(i.out[0]), result, active);
    return Step::Next;
  }
};

/// Applies `static bool apply(A, A)` of `Op` to all lanes. Returns a mask with the result of each
/// lane.
template <typename Op, typename A>
struct Test2 {
  static FSDPRT_INLINE LaneMask bits(Warp &warp, const Instruction &i) {
    const A *a = warp.at<A>(i.in[0]), *b = warp.at<A>(i.in[1]);
    LaneMask result = 0;
    for (unsigned lane = 0; lane < warpSize; ++lane)
      result |= LaneMask(Op::apply(a[lane], b[lane])) << lane;
    return result;
  }
};

template <typename Op>
struct Run {
  static Step narrow(Warp &warp, const Instruction &i, LaneMask active) {
    return Op::run(warp, i, active);
  }
  FSDPRT_WIDE static Step wide(Warp &warp, const Instruction &i, LaneMask active) {
    return Op::run(warp, i, active);
  }
};
template <typename Op>
Handler handler() {
  return hostIsWide() ? Run<Op>::wide : Run<Op>::narrow;
}

template <typename Op, typename T>
Handler unary() {
  return handler<Map1<Op, T, T>>();
}
template <typename Op, typename T>
Handler binary() {
  return handler<Map2<Op, T, T>>();
}
template <typename Op, typename T>
Handler ternary() {
  return handler<Map3<Op, T, T>>();
}

/// Returns the value of a lane's register of 2, 4 or 8 bytes.
inline uint64_t readBits(Warp &warp, Slot slot, unsigned size, unsigned lane) {
  return size == 2   ? warp.at<uint16_t>(slot)[lane]
         : size == 4 ? warp.at<uint32_t>(slot)[lane]
                     : warp.at<uint64_t>(slot)[lane];
}

inline void writeBits(Warp &warp, Slot slot, unsigned size, unsigned lane, uint64_t bits) {
  if (size == 2)
    warp.at<uint16_t>(slot)[lane] = bits;
  else if (size == 4)
    warp.at<uint32_t>(slot)[lane] = bits;
  else
    warp.at<uint64_t>(slot)[lane] = bits;
}

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_LANES_H
