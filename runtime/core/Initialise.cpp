//===- Initialise.cpp - Initial values of parameters ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Elements 2k and 2k + 1 of a parameter are computed from block k of the parameter's Philox stream.
// The block yields two uniformly distributed numbers. For a normal distribution, the Box-Muller
// transform converts them to two normally distributed numbers. The numbers are computed in f64 and
// then rounded to the type of the parameter.
//
//===----------------------------------------------------------------------===//

#include "core/Initialise.h"
#include "core/Philox.h"
#include <cmath>
#include <cstring>

using namespace fsdprt;

static void pairOf(const Distribution &distribution, const PhiloxBlock &block, double pair[2]) {
  double u = unitInterval(firstWord(block)), v = unitInterval(secondWord(block));
  if (distribution.kind == fb::InitKind::uniform) {
    pair[0] = distribution.a + (distribution.b - distribution.a) * u;
    pair[1] = distribution.a + (distribution.b - distribution.a) * v;
    return;
  }
  double radius = std::sqrt(-2.0 * std::log(u + 0x1p-53)); // The argument of log() is in (0, 1].
  double angle = 6.283185307179586 * v;
  pair[0] = distribution.a + distribution.b * (radius * std::cos(angle));
  pair[1] = distribution.a + distribution.b * (radius * std::sin(angle));
}

void fsdprt::initialValues(const Distribution &distribution, uint64_t seed, uint64_t stream,
                           uint64_t first, uint64_t count, DType type, void *to) {
  auto *target = static_cast<std::byte *>(to);
  uint64_t size = sizeOf(type);
  double pair[2] = {distribution.a, distribution.a};
  for (uint64_t i = first; i < first + count; ++i, target += size) {
    bool fresh = i == first || i % 2 == 0;
    if (fresh && distribution.kind != fb::InitKind::constant)
      pairOf(distribution, philox(seed, stream, i / 2), pair);
    storeElement(type, pair[i % 2], target);
  }
}

void fsdprt::storedValues(const StoredValues &values, uint64_t first, uint64_t count, DType type,
                          void *to) {
  uint64_t from = sizeOf(values.type), size = sizeOf(type);
  if (values.type == type && !values.same) {
    std::memcpy(to, values.data + first * from, count * size);
    return;
  }
  auto *target = static_cast<std::byte *>(to);
  for (uint64_t i = 0; i < count; ++i, target += size) {
    const std::byte *source = values.data + (values.same ? 0 : first + i) * from;
    if (values.type == type)
      std::memcpy(target, source, size);
    else
      storeElement(type, loadElement(values.type, source), target);
  }
}
