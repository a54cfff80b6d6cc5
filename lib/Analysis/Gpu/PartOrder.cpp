//===- PartOrder.cpp - Unequal parts of a reduced dimension -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/PartOrder.h"

using namespace mlir::fsdp;

int64_t PartOrder::leastParts() const {
  Integers m;
  int64_t least = partsOf(m, INT64_C(0));
  for (int64_t tile = 1; tile < tiles; ++tile)
    least = std::min(least, partsOf(m, tile));
  return least;
}

int64_t PartOrder::mostParts() const {
  Integers m;
  int64_t most = 0;
  for (int64_t tile = 0; tile < tiles; ++tile)
    most = std::max(most, partsOf(m, tile));
  return most;
}

int64_t PartOrder::allParts() const {
  Integers m;
  int64_t all = 0;
  for (int64_t tile = 0; tile < tiles; ++tile)
    all += partsOf(m, tile);
  return all;
}
