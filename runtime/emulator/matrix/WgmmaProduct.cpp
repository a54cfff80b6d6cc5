//===- WgmmaProduct.cpp - Matrix products of warpgroups ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the products of wgmma (PTX ISA, "Shared Memory Matrix Layout, Strides, Matrix Descriptor
// Format"). P is the number of 16-byte chunks in the span of the swizzle (1 without a swizzle); SBO
// and LBO are the descriptor's stride and leading byte offsets. Chunk (m, k) of a matrix has the
// following offset from the start address:
//
//   K-major   P > 1: 16 P (m % 8) + SBO (m / 8) + 16 k
//             P = 1: 16 (m % 8) + SBO (m / 8) + LBO k;
//   MN-major  P > 1: 16 (m % P) + LBO (m / P) + 16 P (k % 8) + SBO (k / 8);
//             P = 1: SBO m + 16 (k % 8) + LBO (k / 8);
//
// The swizzle permutes the chunks within each 128 bytes of shared memory. The permutation depends
// on the index of these 128 bytes minus the base offset of the descriptor. A chunk of a K-major
// matrix consists of 16 bytes along K: m is the index of its row (of A) or column (of B), and k is
// the index of the chunk along K. A chunk of an MN-major matrix consists of 16 bytes along M or N:
// m is the index of the chunk along M or N, and k is the index of its element of K.
//
// Registers contain A and D in the layout of mma (Matrices.cpp). Warp w has rows 16 w to 16 w + 15
// of A and D. If A is in shared memory, the emulator reads these rows as an access of warp w alone.
// A warp that has itself written these rows therefore needs no barrier before the product.
//
// Matrices.cpp describes the error model, which mma and wgmma share.
//
//===----------------------------------------------------------------------===//

#include "emulator/TensorMap.h"
#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Access.h"

using namespace fsdprt::emulate;

namespace {
constexpr unsigned warpRows = 16, groupWarps = 4, maxInner = 16, maxColumns = 256, chunkBytes = 16,
                   kBytes = 32;

struct Descriptor {
  uint64_t start, leading, stride, base;
  TensorSwizzle swizzle;
};

Descriptor decodeDescriptor(const Warp &warp, uint64_t bits, char matrix) {
  static const TensorSwizzle swizzles[] = {TensorSwizzle::None, TensorSwizzle::Bytes128,
                                           TensorSwizzle::Bytes64, TensorSwizzle::Bytes32};
  constexpr uint64_t unused =
      uint64_t(3) << 14 | uint64_t(3) << 30 | uint64_t(7) << 46 | uint64_t(0x3ff) << 52;
  if (bits & unused)
    warp.fail(allLanes, "the descriptor 0x%llx of %c has reserved bits set",
              static_cast<unsigned long long>(bits), matrix);
  return {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4,
          bits >> 49 & 7, swizzles[bits >> 62]};
}

/// Returns the address of a chunk, as the table at the beginning of this file defines it. `isMajor`
/// is true for MN-major matrices.
uint64_t chunkAddress(const Descriptor &d, bool isMajor, unsigned m, unsigned k) {
  uint64_t span = spanOf(d.swizzle), chunks = span / chunkBytes, address = d.start;
  bool isSwizzled = d.swizzle != TensorSwizzle::None;
  if (!isMajor)
    address += m % 8 * span + m / 8 * d.stride + k * (isSwizzled ? chunkBytes : d.leading);
  else if (isSwizzled)
    address += m % chunks * chunkBytes + m / chunks * d.leading + k % 8 * span + k / 8 * d.stride;
  else
    address += m * d.stride + k % 8 * chunkBytes + k / 8 * d.leading;
  return swizzled(address, d.swizzle, (address >> 7) - d.base);
}

/// Reads chunks of matrices in shared memory. The agent of a warpgroup makes these accesses.
class Reader {
public:
  Reader(Warp &warp, uint32_t agent) : warp(warp), agent(agent), access(warp, Touch::Reads) {
    access.isAsync = true;
  }

  const uint8_t *chunk(const Descriptor &d, bool isMajor, unsigned m, unsigned k) {
    Place place =
        access.resolve(Space::Shared, chunkAddress(d, isMajor, m, k), chunkBytes, 0, chunkBytes);
    access.check(place, chunkBytes, 0, agent);
    warp.block.cluster.grid.counters.sharedLoadBytes += chunkBytes;
    return place.bytes();
  }

private:
  Warp &warp;
  uint32_t agent;
  Access access;
};

template <WgmmaPlan::Kind kind>
struct Wgmma {
  static constexpr unsigned elementBytes = kind == WgmmaPlan::TF32 ? 4 : 2,
                            perChunk = chunkBytes / elementBytes;
  static constexpr unsigned inner = kBytes / elementBytes, perRegister = 4 / elementBytes;

  static FSDPRT_INLINE double element(const uint8_t *bytes, unsigned index) {
    if (kind == WgmmaPlan::TF32) {
      uint32_t bits;
      std::memcpy(&bits, bytes + 4 * index, 4);
      return bitsAs<float>(bits & ~0x1fffu);
    }
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * index, 2);
    return kind == WgmmaPlan::Half ? Half::widen(bits) : Brain::widen(bits);
  }

  /// Reads `count` rows of A or columns of B, beginning with row or column `first`. Stores element
  /// (m, k) at to[m * mStep + k * kStep].
  static FSDPRT_INLINE void read(Reader &reader, const Descriptor &d, bool isMajor, unsigned first,
                                 unsigned count, double *to, unsigned mStep, unsigned kStep,
                                 double sign) {
    if (!isMajor) {
      for (unsigned m = 0; m < count; ++m)
        for (unsigned k = 0; k < inner; k += perChunk) {
          const uint8_t *bytes = reader.chunk(d, false, first + m, k / perChunk);
          for (unsigned part = 0; part < perChunk; ++part)
            to[m * mStep + (k + part) * kStep] = sign * element(bytes, part);
        }
      return;
    }
    for (unsigned k = 0; k < inner; ++k)
      for (unsigned m = 0; m < count; m += perChunk) {
        const uint8_t *bytes = reader.chunk(d, true, (first + m) / perChunk, k);
        for (unsigned part = 0; part < perChunk; ++part)
          to[(m + part) * mStep + k * kStep] = sign * element(bytes, part);
      }
  }

  /// Reads A from registers, whose layout Matrices.cpp describes.
  static FSDPRT_INLINE void readFragment(Warp &warp, const Slot *slots,
                                         double (&a)[warpRows][maxInner], double sign) {
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned lane = 0; lane < warpSize; ++lane)
        for (unsigned part = 0; part < perRegister; ++part)
          a[lane / 4 + 8 * (r % 2)][perRegister * (lane % 4) + 4 * perRegister * (r / 2) + part] =
              sign *
              element(reinterpret_cast<const uint8_t *>(warp.at<uint32_t>(slots[r]) + lane), part);
  }
};

using Sums = double[warpRows][maxColumns];

/// Calls act(sum, pair, lane, part) for each element of those rows of D that belong to a warp. The
/// elements of a lane form pairs of adjacent elements of a row. `pair` is the index of the pair in
/// the lane, and `part` is the index of the element in the pair.
template <typename Action>
FSDPRT_INLINE void eachSum(const WgmmaPlan &plan, Sums &sums, Action act) {
  for (unsigned pair = 0; pair < plan.columns / 4u; ++pair)
    for (unsigned lane = 0; lane < warpSize; ++lane)
      for (unsigned part = 0; part < 2; ++part)
        act(sums[lane / 4 + 8 * (pair % 2)][8 * (pair / 2) + 2 * (lane % 4) + part], pair, lane,
            part);
}

FSDPRT_INLINE void loadSums(Warp &warp, const Instruction &i, const WgmmaPlan &plan, Sums &sums) {
  if (plan.sumsAreHalf)
    eachSum(plan, sums, [&](double &sum, unsigned pair, unsigned lane, unsigned part) {
      sum = Half::widen(warp.at<uint32_t>(i.out[pair])[lane] >> (16 * part));
    });
  else
    eachSum(plan, sums, [&](double &sum, unsigned pair, unsigned lane, unsigned part) {
      sum = warp.at<float>(i.out[2 * pair + part])[lane];
    });
}

FSDPRT_INLINE void storeSums(Warp &warp, const Instruction &i, const WgmmaPlan &plan, Sums &sums) {
  if (plan.sumsAreHalf)
    eachSum(plan, sums, [&](double sum, unsigned pair, unsigned lane, unsigned part) {
      uint16_t half = encode(sum, formatF16, Rounding::NearestEven, false);
      std::memcpy(reinterpret_cast<uint8_t *>(warp.at<uint32_t>(i.out[pair]) + lane) + 2 * part,
                  &half, 2);
    });
  else
    eachSum(plan, sums, [&](double sum, unsigned pair, unsigned lane, unsigned part) {
      warp.at<float>(i.out[2 * pair + part])[lane] = canonical(float(sum));
    });
}

/// Adds the product of `a` and `b` to `sums`. Computes eight columns at a time, so that their sums
/// stay in registers of the host.
FSDPRT_INLINE void multiply(const double (&a)[warpRows][maxInner],
                            const double (&b)[maxInner][maxColumns], unsigned inner,
                            unsigned columns, Sums &sums) {
  for (unsigned row = 0; row < warpRows; ++row)
    for (unsigned column = 0; column < columns; column += 8) {
      double part[8];
      for (unsigned n = 0; n < 8; ++n)
        part[n] = sums[row][column + n];
      for (unsigned k = 0; k < inner; ++k)
        for (unsigned n = 0; n < 8; ++n)
          part[n] += a[row][k] * b[k][column + n];
      for (unsigned n = 0; n < 8; ++n)
        sums[row][column + n] = part[n];
    }
}

template <WgmmaPlan::Kind kind>
struct Runner {
  static FSDPRT_INLINE void all(Warp &last, Warpgroup &group, const IssuedProduct &product,
                                const Instruction &i, const WgmmaPlan &plan) {
    VectorClocks &clocks = last.block.cluster.clocks;
    std::vector<uint32_t> firsts;
    Warp *warps[groupWarps];
    for (unsigned w = 0; w < groupWarps; ++w) {
      warps[w] = last.block.warps[last.index / groupWarps * groupWarps + w].get();
      firsts.push_back(warps[w]->firstThread);
    }
    clocks.gather(group.agent, firsts);
    double b[maxInner][maxColumns], a[warpRows][maxInner];
    Reader everybody(last, group.agent);
    Wgmma<kind>::read(everybody, decodeDescriptor(last, product.b, 'B'), plan.transposesB, 0,
                      plan.columns, b[0], 1, maxColumns, plan.negatesB ? -1 : 1);
    double sign = plan.negatesA ? -1 : 1;
    for (unsigned w = 0; w < groupWarps; ++w) {
      if (plan.aIsShared) {
        clocks.gather(group.agent, {firsts[w]});
        // gather() has changed the agent's row of the vector clocks. A new Reader is needed,
        // because a Reader stores results that depend on this row.
        Reader own(last, group.agent);
        Wgmma<kind>::read(own, decodeDescriptor(last, product.a, 'A'), plan.transposesA,
                          w * warpRows, warpRows, a[0], maxInner, 1, sign);
      } else {
        Wgmma<kind>::readFragment(*warps[w], i.in, a, sign);
      }
      Sums sums = {};
      if (product.adds)
        loadSums(*warps[w], i, plan, sums);
      multiply(a, b, plan.inner(), plan.columns, sums);
      storeSums(*warps[w], i, plan, sums);
    }
  }
  static void narrow(Warp &last, Warpgroup &group, const IssuedProduct &product,
                     const Instruction &i, const WgmmaPlan &plan) {
    all(last, group, product, i, plan);
  }
  FSDPRT_WIDE static void wide(Warp &last, Warpgroup &group, const IssuedProduct &product,
                               const Instruction &i, const WgmmaPlan &plan) {
    all(last, group, product, i, plan);
  }
  static void run(Warp &last, Warpgroup &group, const IssuedProduct &product, const Instruction &i,
                  const WgmmaPlan &plan) {
    (hostIsWide() ? wide : narrow)(last, group, product, i, plan);
  }
};
} // namespace

void fsdprt::emulate::runProduct(Warp &last, Warpgroup &group, const IssuedProduct &product) {
  const Instruction &i = last.program.code[product.instruction];
  const WgmmaPlan &plan = *static_cast<const WgmmaPlan *>(i.plan);
  last.block.cluster.grid.counters.multiplyAdds +=
      uint64_t(groupWarps) * warpRows * plan.columns * plan.inner();
  switch (plan.kind) {
  case WgmmaPlan::Half:
    return Runner<WgmmaPlan::Half>::run(last, group, product, i, plan);
  case WgmmaPlan::Brain:
    return Runner<WgmmaPlan::Brain>::run(last, group, product, i, plan);
  case WgmmaPlan::TF32:
    return Runner<WgmmaPlan::TF32>::run(last, group, product, i, plan);
  }
}
