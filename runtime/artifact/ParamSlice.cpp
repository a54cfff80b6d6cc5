//===- ParamSlice.cpp - The part of a parameter that a rank has -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "artifact/ParamSlice.h"
#include "artifact/Verifier.h"
#include "core/Error.h"

using namespace fsdprt;

ParamSlice::ParamSlice(const fb::Param &param, const Mesh &mesh) {
  const fb::ParamSplit *split = param.split();
  uint32_t rank = param.shape() ? param.shape()->size() : 0;
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t size = param.shape()->Get(i);
    whole *= size;
    if (split && i >= split->dim())
      rowElements *= size;
  }
  if (!split) {
    rowElements = std::max<uint64_t>(whole, 1);
    blocks.push_back({0, rowElements});
    return;
  }
  ranks = mesh.sizeOf("tensor");
  uint64_t inner = rowElements / param.shape()->Get(split->dim()), begin = 0;
  for (uint64_t size : *split->blocks()) {
    blocks.push_back({begin * inner, size * inner});
    begin += size;
  }
}

std::string fsdprt::problemOfSplit(const fb::Param &param, const Mesh &mesh) {
  using ull = unsigned long long;
  const fb::ParamSplit &split = *param.split();
  uint64_t ranks = mesh.sizeOf("tensor"), size = 0;
  uint32_t rank = param.shape() ? param.shape()->size() : 0;
  if (ranks < 2 || split.dim() >= rank || !isAligned(split.blocks()))
    return format("expected the split of one of %u dimensions over an axis 'tensor', found "
                  "dimension %u and %llu ranks",
                  rank, split.dim(), (ull)ranks);
  uint64_t expected = param.shape()->Get(split.dim());
  for (uint32_t i = 0; split.blocks() && i < split.blocks()->size(); ++i) {
    uint64_t block = split.blocks()->Get(i);
    if (block == 0 || block > expected - size || block % ranks != 0)
      return format("expected blocks of %llu elements in all, each divided by %llu ranks, found a "
                    "block of %llu after %llu elements",
                    (ull)expected, (ull)ranks, (ull)block, (ull)size);
    size += block;
  }
  if (size != expected)
    return format("expected blocks of %llu elements in all, found %llu", (ull)expected, (ull)size);
  return "";
}
