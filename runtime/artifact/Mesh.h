//===- Mesh.h - Ranks on a grid ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rank = row-major index over the mesh's axes, the last one fastest. A group is the
// ranks that differ only on some axes, in row-major order over those:
//
//     mesh [replicate = 2, shard = 3]      axis shard:      {0 1 2} {3 4 5}
//     rank 4 = (1, 1)                      axis replicate:  {0 3} {1 4} {2 5}
//
// After the axes, numbers name groups of neighbours on one: 2 on [shard = 6] are {0 1} {2 3} {4
// 5}.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_MESH_H
#define FSDPRT_ARTIFACT_MESH_H

#include <cstdint>
#include <string>
#include <vector>

namespace fsdprt {

class Mesh {
public:
  struct Axis {
    std::string name;
    uint64_t size;
  };

  struct Neighbours {
    uint32_t axis;
    uint64_t size; // divides that of the axis
  };

  Mesh() = default;
  explicit Mesh(std::vector<Axis> axes, std::vector<Neighbours> neighbours = {})
      : axes(std::move(axes)), neighbours(std::move(neighbours)) {}

  const std::vector<Axis> &getAxes() const { return axes; }
  const std::vector<Neighbours> &getNeighbours() const { return neighbours; }
  uint64_t ranks() const {
    uint64_t product = 1;
    for (const Axis &axis : axes)
      product *= axis.size;
    return product;
  }
  /// "replicate=2,shard=3"; "one rank" without axes.
  std::string text() const;
  /// The same axes with one rank each: where the unsharded reference runs.
  Mesh solo() const;

  uint64_t sizeOf(const std::string &axis) const;                 // 1 when there is none
  uint64_t indexOn(const std::string &axis, uint64_t rank) const; // 0 when there is none
  uint64_t coordinate(size_t axis, uint64_t rank) const {
    return rank / strideOf(axis) % sizeAt(axis);
  }

  /// Of how many pieces, and which one, something is on this rank that is in pieces over the axes
  /// shard, shard and replicate, or replicate, or over neighbours. (The numbers of the schema's
  /// Split.)
  uint64_t pieces(uint64_t split) const;
  uint64_t pieceOf(uint64_t split, uint64_t rank) const;

  /// The members of the group of `rank` over `along` (strictly ascending), in order.
  std::vector<uint32_t> group(uint64_t rank, const std::vector<uint32_t> &along) const;
  uint64_t groupSize(const std::vector<uint32_t> &along) const;

private:
  /// Of an axis, or of neighbours after the axes.
  uint64_t sizeAt(size_t axis) const {
    return axis < axes.size() ? axes[axis].size : neighbours[axis - axes.size()].size;
  }
  uint64_t strideOf(size_t axis) const {
    axis = axis < axes.size() ? axis : neighbours[axis - axes.size()].axis;
    uint64_t stride = 1;
    for (size_t i = axis + 1; i < axes.size(); ++i)
      stride *= axes[i].size;
    return stride;
  }
  std::vector<Axis> axes;
  std::vector<Neighbours> neighbours;
};

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_MESH_H
