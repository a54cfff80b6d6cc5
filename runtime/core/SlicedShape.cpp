//===- SlicedShape.cpp - A tensor that is split over ranks ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/SlicedShape.h"
#include "core/Error.h"

using namespace fsdprt;

SlicedShape::SlicedShape(const std::vector<uint64_t> &shape, uint64_t dim,
                         const std::vector<uint64_t> &sizes, uint64_t splitOver) {
  for (uint64_t size : shape)
    whole *= size;
  if (sizes.empty()) {
    rowElements = std::max<uint64_t>(whole, 1);
    blocks.push_back({0, rowElements});
    return;
  }
  ranks = splitOver;
  uint64_t inner = 1, begin = 0;
  for (uint64_t i = dim + 1; i < shape.size(); ++i)
    inner *= shape[i];
  rowElements = shape[dim] * inner;
  for (uint64_t size : sizes) {
    blocks.push_back({begin * inner, size * inner});
    begin += size;
  }
}

std::string SlicedShape::problemOf(const std::vector<uint64_t> &shape, uint64_t dim,
                                   const std::vector<uint64_t> &blocks, uint64_t ranks) {
  using ull = unsigned long long;
  if (ranks < 2 || dim >= shape.size())
    return format("expected the split of one of %zu dimensions over an axis 'tensor', found "
                  "dimension %llu and %llu ranks",
                  shape.size(), (ull)dim, (ull)ranks);
  uint64_t size = 0;
  for (uint64_t block : blocks) {
    if (block == 0 || block > shape[dim] - size || block % ranks != 0)
      return format("expected blocks of %llu elements in all, each divided by %llu ranks, found a "
                    "block of %llu after %llu elements",
                    (ull)shape[dim], (ull)ranks, (ull)block, (ull)size);
    size += block;
  }
  if (size != shape[dim] || blocks.empty())
    return format("expected blocks of %llu elements in all, found %llu", (ull)shape[dim],
                  (ull)size);
  return "";
}
