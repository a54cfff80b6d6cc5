//===- Layout.cpp - The flat buffer of a unit -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   flat   | w0   | w1     .| b0 .| b1 ........ |     '.' gap or padding
//          |<--- decay ---->|<- no decay ->|
//   rank   |      0      |      1      |    2   |     shard_size each
//
//  1. Put parameters with weight decay before parameters without it, so that the optimizer can
//     distinguish them by one comparison of an index. Do not change the order in any other way.
//  2. Put each parameter at the next multiple of 32 elements (64 for one-byte elements), so that
//     views are aligned.
//  3. shard_size = ceil(end / shards), rounded up to 64 elements, or to 1024 in units of more than
//     64 Ki elements. If a shard is divided into parts, each part is a multiple of 64 elements. If
//     lookups in the unit exchange rows, each shard consists of whole rows.
//
// The time is O(parameters). The boundary between two shards may be inside a parameter. Therefore
// no dimension of a parameter needs to be divisible by the number of shards.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir::fsdp;

UnitLayout mlir::fsdp::layOutUnit(llvm::ArrayRef<ParamExtent> params, int64_t shards, int64_t parts,
                                  int64_t offsetAlignment, int64_t rowSize) {
  UnitLayout layout;
  for (bool decay : {true, false})
    for (auto [index, param] : llvm::enumerate(params))
      if (param.decay == decay)
        layout.order.push_back(index);

  int64_t end = 0, used = 0;
  for (unsigned index : layout.order) {
    layout.offsets.push_back(llvm::alignTo(end, offsetAlignment));
    end = layout.offsets.back() + params[index].size;
    used += params[index].size;
  }

  int64_t alignment = end > kLargeUnit ? kLargeShardAlignment : kShardAlignment;
  int64_t part = llvm::divideCeil(std::max<int64_t>(end, 1), shards);
  layout.shardSize =
      llvm::alignTo(part, std::lcm(parts == 1 ? alignment : parts * kShardAlignment, rowSize));
  layout.padding = layout.shardSize * shards - used;
  return layout;
}
