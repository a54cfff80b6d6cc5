//===- Mesh.h - Ranks on a grid ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The number of a rank is the row-major index of the rank's coordinates on the axes of the mesh, so
// the coordinate on the last axis varies fastest. The members of a group along some axes have equal
// coordinates on all other axes, and are in row-major order:
//
//     mesh [replicate = 2, shard = 3]      axis shard:      {0 1 2} {3 4 5}
//     rank 4 = (1, 1)                      axis replicate:  {0 3} {1 4} {2 5}
//
// A group may also consist of neighbours on one axis. In the mesh [shard = 6], for example, the
// groups of 2 neighbours are {0 1} {2 3} {4 5}. In a mesh with n axes, an axis index n + i denotes
// these groups for the axis and the size in getNeighbours()[i].
//
// Ranks that differ only on the axis "tensor", which is the last axis, read the same samples. So do
// groups of getContext() neighbours on the axis "shard", whose ranks have parts of the sequence.
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
    uint64_t size; ///< number of ranks of a group; divides the size of the axis
  };

  Mesh() = default;
  explicit Mesh(std::vector<Axis> axes, std::vector<Neighbours> neighbours = {},
                uint64_t context = 1)
      : axes(std::move(axes)), neighbours(std::move(neighbours)), context(context) {}

  const std::vector<Axis> &getAxes() const { return axes; }
  const std::vector<Neighbours> &getNeighbours() const { return neighbours; }
  uint64_t getContext() const { return context; }
  uint64_t ranks() const {
    uint64_t product = 1;
    for (const Axis &axis : axes)
      product *= axis.size;
    return product;
  }
  /// Returns the number of ranks that read different samples.
  uint64_t dataRanks() const { return ranks() / sizeOf("tensor") / context; }
  /// Returns a text such as "replicate=2,shard=3", or "one rank" if the mesh has no axes. The text
  /// names the axis "context", as the option --mesh of the compiler does.
  std::string text() const;
  /// Returns the mesh of the unsharded reference. Its axes have the names of the axes of this mesh,
  /// and the size 1.
  Mesh solo() const;

  /// Returns the size of the axis `axis`, or 1 if the mesh has no such axis.
  uint64_t sizeOf(const std::string &axis) const;
  /// Returns the coordinate of `rank` on the axis `axis`, or 0 if the mesh has no such axis.
  uint64_t indexOn(const std::string &axis, uint64_t rank) const;
  uint64_t coordinate(size_t axis, uint64_t rank) const {
    return rank / strideOf(axis) % sizeAt(axis);
  }

  /// pieces() returns the number of shards of a buffer, and pieceOf() returns the index of the
  /// shard that `rank` has. `split` selects how the buffer is divided: it is a value of fb::Split,
  /// or 4 + i if the buffer is divided among the ranks of each group of getNeighbours()[i].
  uint64_t pieces(uint64_t split) const;
  uint64_t pieceOf(uint64_t split, uint64_t rank) const;

  /// Returns the group along the axes `along` that contains `rank`, as a list of ranks in row-major
  /// order. `along` must be strictly ascending.
  std::vector<uint32_t> group(uint64_t rank, const std::vector<uint32_t> &along) const;
  uint64_t groupSize(const std::vector<uint32_t> &along) const;

private:
  /// Returns the size of the axis `axis`, or the size of one group if `axis` denotes groups of
  /// neighbours.
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
  uint64_t context = 1; ///< number of neighbours on the axis "shard" that read the same samples
};

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_MESH_H
