//===- ParamSlice.h - The part of a parameter that a rank has ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A parameter of shape outer x D x inner that is split along its dimension of size D consists of
// `outer` rows. A row consists of blocks, and each block consists of T parts, for T ranks on the
// axis "tensor":
//
//     whole row    | block 0: part 0 | part 1 | block 1: part 0 | part 1 |
//     slice 1                        | part 1 |                 | part 1 |
//
// The slice of the rank with coordinate t consists of parts t of all blocks. It is dense and
// row-major. A parameter without a split has one slice, which is the whole parameter.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_PARAMSLICE_H
#define FSDPRT_ARTIFACT_PARAMSLICE_H

#include "artifact/Mesh.h"
#include "fsdprt/artifact_generated.h"
#include <algorithm>

namespace fsdprt {

class ParamSlice {
public:
  /// `param` must have passed the verifier of the artifact for `mesh`.
  ParamSlice(const fb::Param &param, const Mesh &mesh);

  /// Returns the coordinate of a rank that selects its slice.
  static uint64_t coordinateOf(const Mesh &mesh, uint64_t rank) {
    return mesh.indexOn("tensor", rank);
  }

  uint64_t wholeElements() const { return whole; }
  uint64_t elements() const { return whole / ranks; } ///< number of elements of a slice

  /// Divides elements [first, first + count) of the whole parameter into runs of consecutive
  /// elements of one slice. Calls each(coordinate, index in the slice, index in the parameter,
  /// number of elements) for each run, in order.
  template <typename Each>
  void forWhole(uint64_t first, uint64_t count, Each each) const {
    for (uint64_t at = first, end = first + count; at < end;) {
      uint64_t row = at / rowElements, place = at % rowElements;
      const Block &block = blockAt(place, 1);
      uint64_t offset = place - block.begin, part = block.size / ranks;
      uint64_t length = std::min(part - offset % part, end - at);
      each(offset / part, row * (rowElements / ranks) + block.begin / ranks + offset % part, at,
           length);
      at += length;
    }
  }

  /// Divides elements [first, first + count) of a slice into runs of consecutive elements of the
  /// parameter. Calls each(index in the parameter, index in the slice, number of elements) for each
  /// run, in order.
  template <typename Each>
  void forSlice(uint64_t coordinate, uint64_t first, uint64_t count, Each each) const {
    uint64_t sliceRow = rowElements / ranks;
    coordinate = ranks == 1 ? 0 : coordinate; // every rank has the same whole parameter
    for (uint64_t at = first, end = first + count; at < end;) {
      uint64_t row = at / sliceRow, place = at % sliceRow;
      const Block &block = blockAt(place, ranks);
      uint64_t part = block.size / ranks, offset = place - block.begin / ranks;
      uint64_t length = std::min(part - offset, end - at);
      each(row * rowElements + block.begin + coordinate * part + offset, at, length);
      at += length;
    }
  }

private:
  struct Block {
    uint64_t begin, size; ///< in elements of a row
  };
  /// Returns the block that contains element `place` of a row, or of the row of a slice if
  /// `divisor` is the number of ranks.
  const Block &blockAt(uint64_t place, uint64_t divisor) const {
    return *std::prev(std::upper_bound(
        blocks.begin(), blocks.end(), place,
        [divisor](uint64_t index, const Block &block) { return index < block.begin / divisor; }));
  }

  uint64_t whole = 1, ranks = 1;
  uint64_t rowElements = 1; ///< number of elements of a row of the whole parameter
  std::vector<Block> blocks;
};

/// Describes why the split of `param` is invalid for `mesh`: it must be a dimension of the shape,
/// of which the blocks consist, and the ranks of the axis "tensor" must divide each block. Returns
/// an empty text if the split is valid.
std::string problemOfSplit(const fb::Param &param, const Mesh &mesh);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_PARAMSLICE_H
