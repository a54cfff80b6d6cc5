//===- ParamSliceTest.cpp - The part of a parameter a rank has --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares ParamSlice with a slow definition that goes through all elements of a parameter.
//
//===----------------------------------------------------------------------===//

#include "artifact/ParamSlice.h"
#include <gtest/gtest.h>

using namespace fsdprt;

namespace {
/// A parameter in a buffer of its own.
class OwnedParam {
public:
  OwnedParam(std::vector<uint64_t> shape, uint32_t dim, std::vector<uint64_t> blocks) {
    flatbuffers::Offset<fb::ParamSplit> split;
    if (!blocks.empty())
      split = fb::CreateParamSplitDirect(builder, dim, &blocks);
    auto vector = builder.CreateVector(shape);
    fb::ParamBuilder param(builder);
    param.add_shape(vector);
    if (!blocks.empty())
      param.add_split(split);
    builder.Finish(param.Finish());
  }
  const fb::Param &get() const {
    return *flatbuffers::GetRoot<fb::Param>(builder.GetBufferPointer());
  }

private:
  flatbuffers::FlatBufferBuilder builder;
};

struct Place {
  uint64_t coordinate, index;
  bool operator==(const Place &other) const {
    return coordinate == other.coordinate && index == other.index;
  }
};

/// Returns the coordinate and the index in the slice of each element, by the definition: the slice
/// of a coordinate consists of its parts of all blocks, in the order of the elements.
std::vector<Place> placesOf(const std::vector<uint64_t> &shape, uint32_t dim,
                            const std::vector<uint64_t> &blocks, uint64_t ranks) {
  uint64_t elements = 1, inner = 1;
  for (uint32_t i = 0; i < shape.size(); ++i) {
    elements *= shape[i];
    inner *= i > dim ? shape[i] : 1;
  }
  std::vector<uint64_t> used(ranks);
  std::vector<Place> places;
  for (uint64_t e = 0; e < elements; ++e) {
    uint64_t at = e / inner % shape[dim], coordinate = 0;
    for (uint64_t block : blocks) {
      if (at < block) {
        coordinate = at / (block / ranks);
        break;
      }
      at -= block;
    }
    places.push_back({coordinate, used[coordinate]++});
  }
  return places;
}

void expectSlices(std::vector<uint64_t> shape, uint32_t dim, std::vector<uint64_t> blocks,
                  uint64_t ranks) {
  OwnedParam param(shape, dim, blocks);
  ParamSlice slice(param.get(), Mesh({{"shard", 3}, {"tensor", ranks}}));
  std::vector<Place> expected = placesOf(shape, dim, blocks, ranks);
  ASSERT_EQ(slice.wholeElements(), expected.size());
  ASSERT_EQ(slice.elements() * ranks, expected.size());
  for (uint64_t first = 0; first < expected.size(); ++first)
    for (uint64_t count : {uint64_t(1), uint64_t(5), expected.size() - first}) {
      if (first + count > expected.size())
        continue;
      uint64_t next = first;
      slice.forWhole(first, count,
                     [&](uint64_t coordinate, uint64_t held, uint64_t index, uint64_t length) {
                       ASSERT_EQ(index, next);
                       for (uint64_t i = 0; i < length; ++i)
                         ASSERT_EQ(expected[index + i], (Place{coordinate, held + i}));
                       next += length;
                     });
      ASSERT_EQ(next, first + count);
    }
  for (uint64_t coordinate = 0; coordinate < ranks; ++coordinate)
    for (uint64_t first = 0; first < slice.elements(); ++first) {
      uint64_t next = first;
      slice.forSlice(coordinate, first, slice.elements() - first,
                     [&](uint64_t index, uint64_t held, uint64_t length) {
                       ASSERT_EQ(held, next);
                       for (uint64_t i = 0; i < length; ++i)
                         ASSERT_EQ(expected[index + i], (Place{coordinate, held + i}));
                       next += length;
                     });
      ASSERT_EQ(next, slice.elements());
    }
}
} // namespace

TEST(ParamSliceTest, Slices) {
  expectSlices({6}, 0, {6}, 2);
  expectSlices({6, 4}, 0, {6}, 3);
  expectSlices({3, 8}, 1, {8}, 2);
  expectSlices({3, 12}, 1, {4, 4, 4}, 2);
  expectSlices({2, 12, 3}, 1, {8, 4}, 4);
  expectSlices({4, 2, 5}, 0, {2, 2}, 2);
}

TEST(ParamSliceTest, WholeParameter) {
  OwnedParam param({3, 4}, 0, {});
  ParamSlice slice(param.get(), Mesh({{"tensor", 4}}));
  EXPECT_EQ(slice.elements(), 12u);
  int runs = 0;
  slice.forWhole(2, 7, [&](uint64_t coordinate, uint64_t held, uint64_t index, uint64_t length) {
    EXPECT_EQ(std::vector<uint64_t>({coordinate, held, index, length}),
              std::vector<uint64_t>({0, 2, 2, 7}));
    ++runs;
  });
  slice.forSlice(3, 2, 7, [&](uint64_t index, uint64_t held, uint64_t length) {
    EXPECT_EQ(std::vector<uint64_t>({index, held, length}), std::vector<uint64_t>({2, 2, 7}));
    ++runs;
  });
  EXPECT_EQ(runs, 2);
}

TEST(ParamSliceTest, Problems) {
  Mesh mesh({{"shard", 2}, {"tensor", 2}});
  auto problem = [&](std::vector<uint64_t> shape, uint32_t dim, std::vector<uint64_t> blocks,
                     const Mesh &on) {
    OwnedParam param(shape, dim, blocks);
    return problemOfSplit(param.get(), on);
  };
  EXPECT_EQ(problem({4, 6}, 1, {4, 2}, mesh), "");
  EXPECT_EQ(problem({4, 6}, 2, {6}, mesh),
            "expected the split of one of 2 dimensions over an axis 'tensor', found dimension 2 "
            "and 2 ranks");
  EXPECT_EQ(problem({4, 6}, 1, {6}, Mesh({{"shard", 2}})),
            "expected the split of one of 2 dimensions over an axis 'tensor', found dimension 1 "
            "and 1 ranks");
  EXPECT_EQ(problem({4, 6}, 1, {3, 3}, mesh),
            "expected blocks of 6 elements in all, each divided by 2 ranks, found a block of 3 "
            "after 0 elements");
  EXPECT_EQ(problem({4, 6}, 1, {4, 4}, mesh),
            "expected blocks of 6 elements in all, each divided by 2 ranks, found a block of 4 "
            "after 4 elements");
  EXPECT_EQ(problem({4, 6}, 1, {4}, mesh), "expected blocks of 6 elements in all, found 4");
}

TEST(ParamSliceTest, RanksWithTheSameSamples) {
  Mesh mesh({{"replicate", 2}, {"shard", 3}, {"tensor", 4}});
  EXPECT_EQ(mesh.dataRanks(), 6u);
  EXPECT_EQ(ParamSlice::coordinateOf(mesh, 7), 3u);
  EXPECT_EQ(Mesh({{"shard", 3}}).dataRanks(), 3u);
  Mesh parts({{"replicate", 2}, {"shard", 6}, {"tensor", 2}}, {}, /*context=*/3);
  EXPECT_EQ(parts.dataRanks(), 4u);
  EXPECT_EQ(parts.text(), "replicate=2,shard=2,context=3,tensor=2");
  EXPECT_EQ(parts.solo().dataRanks(), 1u);
}
