//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 (Salmon et al., SC 2011) computes four random words from a 128-bit counter and a
// 64-bit key. Any word of the stream can be computed without its predecessors. Every rank can
// therefore compute its own shard of a parameter, and the values do not depend on the sharding.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_PHILOX_H
#define FSDPRT_CORE_PHILOX_H

#include <array>
#include <cstdint>

namespace fsdprt {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xd2511f53) * counter[0], b = uint64_t(0xcd9e8d57) * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return counter;
}

/// Returns the four words of block `index` in the stream `stream` for the seed `seed`.
inline PhiloxBlock philox(uint64_t seed, uint64_t stream, uint64_t index) {
  return philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                 static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                seed);
}

inline uint64_t firstWord(const PhiloxBlock &block) { return uint64_t(block[1]) << 32 | block[0]; }
inline uint64_t secondWord(const PhiloxBlock &block) { return uint64_t(block[3]) << 32 | block[2]; }

/// Returns the number of the stream for a parameter: the FNV-1a hash of the parameter's name.
inline uint64_t streamOf(const char *name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name; ++name)
    hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
  return hash;
}

/// Maps 64 random bits to an integer in [0, limit). `limit` must be positive.
inline uint64_t below(uint64_t limit, uint64_t bits) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * limit >> 64);
}

/// Maps 64 random bits to a number in [0, 1).
inline double unitInterval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

} // namespace fsdprt

#endif // FSDPRT_CORE_PHILOX_H
