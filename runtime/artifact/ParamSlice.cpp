//===- ParamSlice.cpp - The part of a parameter that a rank has -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "artifact/ParamSlice.h"

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
