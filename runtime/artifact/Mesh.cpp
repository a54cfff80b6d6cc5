//===- Mesh.cpp - Ranks on a grid -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "artifact/Mesh.h"
#include "core/Error.h"

using namespace fsdprt;

std::string Mesh::text() const {
  std::string result;
  auto add = [&](const std::string &name, uint64_t size) {
    result += (result.empty() ? "" : ",") + printable(name) + "=" + std::to_string(size);
  };
  for (const Axis &axis : axes) {
    bool isSplit = context > 1 && axis.name == "shard";
    add(axis.name, isSplit ? axis.size / context : axis.size);
    if (isSplit)
      add("context", context);
  }
  return result.empty() ? "one rank" : result;
}

Mesh Mesh::solo() const {
  Mesh result = *this;
  for (Axis &axis : result.axes)
    axis.size = 1;
  for (Neighbours &some : result.neighbours)
    some.size = 1;
  result.context = 1;
  return result;
}

uint64_t Mesh::sizeOf(const std::string &name) const {
  for (const Axis &axis : axes)
    if (axis.name == name)
      return axis.size;
  return 1;
}

uint64_t Mesh::indexOn(const std::string &name, uint64_t rank) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name)
      return coordinate(i, rank);
  return 0;
}

// Values of `split` below `firstNeighbours` are values of fb::Split.
static constexpr uint64_t firstNeighbours = 4;

uint64_t Mesh::pieces(uint64_t split) const {
  if (split >= firstNeighbours)
    return neighbours[split - firstNeighbours].size;
  return (split == 1 || split == 2 ? sizeOf("shard") : 1) *
         (split == 2 || split == 3 ? sizeOf("replicate") : 1);
}

uint64_t Mesh::pieceOf(uint64_t split, uint64_t rank) const {
  if (split >= firstNeighbours)
    return coordinate(axes.size() + split - firstNeighbours, rank);
  uint64_t shard = split == 1 || split == 2 ? indexOn("shard", rank) : 0;
  return split == 2 || split == 3 ? shard * sizeOf("replicate") + indexOn("replicate", rank)
                                  : shard;
}

uint64_t Mesh::groupSize(const std::vector<uint32_t> &along) const {
  uint64_t product = 1;
  for (uint32_t axis : along)
    product *= sizeAt(axis);
  return product;
}

std::vector<uint32_t> Mesh::group(uint64_t rank, const std::vector<uint32_t> &along) const {
  uint64_t first = rank;
  for (uint32_t axis : along)
    first -= coordinate(axis, rank) * strideOf(axis);
  std::vector<uint32_t> members{static_cast<uint32_t>(first)};
  for (uint32_t axis : along) {
    std::vector<uint32_t> wider;
    for (uint32_t member : members)
      for (uint64_t i = 0; i < sizeAt(axis); ++i)
        wider.push_back(static_cast<uint32_t>(member + i * strideOf(axis)));
    members = std::move(wider);
  }
  return members;
}
