//===- SlicedShape.h - A tensor that is split over ranks --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tensor of shape outer x D x inner that is split along its dimension of size D consists of
// `outer` rows. A row consists of blocks, and each block consists of T parts, for T ranks on the
// axis "tensor":
//
//     whole row    | block 0: part 0 | part 1 | block 1: part 0 | part 1 |
//     slice 1                        | part 1 |                 | part 1 |
//
// The slice of the rank with coordinate t consists of parts t of all blocks. It is dense and
// row-major. A tensor without a split has one slice, which is the whole tensor.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_SLICEDSHAPE_H
#define FSDPRT_CORE_SLICEDSHAPE_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdprt {

class SlicedShape {
public:
  /// Dimension `dim` of `shape` is split over `ranks` ranks, and problemOf() has found no problem.
  /// The tensor is not split if `blocks` is empty.
  SlicedShape(const std::vector<uint64_t> &shape, uint64_t dim, const std::vector<uint64_t> &sizes,
              uint64_t ranks);

  /// Describes why the split is invalid: `dim` must be a dimension of `shape`, of which the blocks
  /// consist, and the ranks must divide each block. Returns an empty text if the split is valid.
  static std::string problemOf(const std::vector<uint64_t> &shape, uint64_t dim,
                               const std::vector<uint64_t> &blocks, uint64_t ranks);

  uint64_t wholeElements() const { return whole; }
  uint64_t elements() const { return whole / ranks; } ///< number of elements of a slice

  /// Divides elements [first, first + count) of the whole tensor into runs of consecutive
  /// elements of one slice. Calls each(coordinate, index in the slice, index in the tensor,
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
  /// tensor. Calls each(index in the tensor, index in the slice, number of elements) for each
  /// run, in order.
  template <typename Each>
  void forSlice(uint64_t coordinate, uint64_t first, uint64_t count, Each each) const {
    uint64_t sliceRow = rowElements / ranks;
    coordinate = ranks == 1 ? 0 : coordinate; // every rank has the whole tensor
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
  uint64_t rowElements = 1; ///< number of elements of a row of the whole tensor
  std::vector<Block> blocks;
};

} // namespace fsdprt

#endif // FSDPRT_CORE_SLICEDSHAPE_H
