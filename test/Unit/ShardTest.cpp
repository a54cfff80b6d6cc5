//===- ShardTest.cpp - Layouts, layers and meshes ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/Layout.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Shard/WrapPolicy.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// Returns parameters of random sizes: small, large, empty and odd ones.
static std::vector<ParamExtent> makeRandom(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<ParamExtent> params(below(12) + 1);
  for (ParamExtent &param : params) {
    int64_t limits[] = {1, 17, 300, 200000};
    param = {below(limits[below(4)]), below(2) == 0};
  }
  return params;
}

/// Expects that parameters do not overlap, are aligned and ordered by decay, and that padding is
/// minimal.
static void expectValid(const std::vector<ParamExtent> &params, const UnitLayout &layout,
                        int64_t shards) {
  ASSERT_EQ(layout.order.size(), params.size());
  ASSERT_EQ(layout.offsets.size(), params.size());
  std::vector<unsigned> sorted(layout.order.begin(), layout.order.end());
  llvm::sort(sorted);
  for (unsigned i = 0; i < sorted.size(); ++i)
    EXPECT_EQ(sorted[i], i) << "every parameter once";

  int64_t end = 0, used = 0;
  bool decay = true;
  for (auto [index, offset] : llvm::zip_equal(layout.order, layout.offsets)) {
    EXPECT_EQ(offset % kOffsetAlignment, 0);
    EXPECT_GE(offset, end) << "no overlap";
    EXPECT_LT(offset - end, kOffsetAlignment) << "no gap except for alignment";
    EXPECT_TRUE(decay || !params[index].decay) << "decay first";
    decay = params[index].decay;
    end = offset + params[index].size;
    used += params[index].size;
  }
  int64_t flat = layout.shardSize * shards;
  EXPECT_GE(flat, end);
  EXPECT_EQ(layout.padding, flat - used);
  EXPECT_GE(layout.shardSize, kShardAlignment);
  int64_t alignment = end > kLargeUnit ? kLargeShardAlignment : kShardAlignment;
  EXPECT_EQ(layout.shardSize % alignment, 0);
  EXPECT_LE(flat - end, shards * alignment) << "no more padding than rounding needs";
}

TEST(Layout, IsValidForRandomParametersAndAnyShards) {
  for (unsigned seed = 0; seed < 200; ++seed)
    for (int64_t shards = 1; shards <= 9; ++shards) {
      std::vector<ParamExtent> params = makeRandom(seed);
      SCOPED_TRACE("seed " + std::to_string(seed) + ", shards " + std::to_string(shards));
      expectValid(params, layOutUnit(params, shards), shards);
    }
}

TEST(Layout, KeepsTheOrderWithinAGroup) {
  UnitLayout layout = layOutUnit({{3, false}, {20, true}, {5, false}, {7, true}}, 2);
  EXPECT_EQ(layout.order, (SmallVector<unsigned>{1, 3, 0, 2}));
  EXPECT_EQ(layout.offsets, (SmallVector<int64_t>{0, 32, 64, 96}));
  EXPECT_EQ(layout.shardSize, 64);
  EXPECT_EQ(layout.padding, 128 - 35);
}

TEST(Layout, HasAShardWithoutParameters) {
  for (const std::vector<ParamExtent> &params :
       {std::vector<ParamExtent>{}, {{0, true}, {0, false}}}) {
    UnitLayout layout = layOutUnit(params, 3);
    EXPECT_EQ(layout.shardSize, kShardAlignment);
    EXPECT_EQ(layout.padding, 3 * kShardAlignment);
  }
}

/// Tests shards that are split into parts over a second axis, and shards of whole rows of a table.
TEST(Layout, IsAMultipleOfPartsAndRows) {
  for (unsigned seed = 0; seed < 40; ++seed)
    for (int64_t parts : {1, 2, 3, 8})
      for (int64_t rowSize : {1, 7, 48, 64, 96, 768, 1000}) {
        std::vector<ParamExtent> params = makeRandom(seed);
        int64_t shards = 1 + seed % 5;
        UnitLayout layout = layOutUnit(params, shards, parts, kOffsetAlignment, rowSize);
        EXPECT_EQ(layout.shardSize % rowSize, 0) << "seed " << seed << ", rows of " << rowSize;
        EXPECT_EQ(layout.shardSize % (parts * kShardAlignment), 0)
            << "seed " << seed << ", parts " << parts;
        int64_t end = layout.offsets.back() + params[layout.order.back()].size;
        EXPECT_GE(layout.shardSize * shards, end);
        EXPECT_LT(layout.shardSize * shards - end, shards * parts * kLargeShardAlignment * rowSize);
      }
}

TEST(Layout, DoesNotOverflowAtTheLargestUnit) {
  std::vector<ParamExtent> params = {{kMaxUnitSize, true}};
  expectValid(params, layOutUnit(params, kMaxRanks), kMaxRanks);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

static std::vector<std::string> layersOf(ArrayRef<NamedParam> params) {
  SmallVector<StringRef> layers = findLayers(params);
  return std::vector<std::string>(layers.begin(), layers.end());
}

using Names = std::vector<std::string>;

TEST(WrapPolicy, FindsTheFirstNumber) {
  EXPECT_EQ(layersOf({{"transformer.wte.weight", 2},
                      {"transformer.h.0.attn.c_attn.weight", 2},
                      {"transformer.h.11.mlp.c_fc.bias", 1},
                      {"model.layers.7.experts.3.w1", 2},
                      {"encoder.layer.2.0.weight", 2},
                      {"blocks/4/norm/scale", 1}}),
            (Names{"", "transformer.h.0", "transformer.h.11", "model.layers.7", "encoder.layer.2",
                   "blocks/4"}));
}

TEST(WrapPolicy, IgnoresANumberInTheLastComponent) {
  EXPECT_EQ(layersOf({{"param.12", 2}, {"cst_48", 2}, {"3", 1}, {"", 1}, {"...", 1}}),
            (Names{"", "", "", "", ""}));
}

TEST(WrapPolicy, SkipsANumberThatAllNamesShare) {
  EXPECT_EQ(layersOf({{"0.h.0.w", 2}, {"0.h.1.w", 2}, {"0.wte", 2}}),
            (Names{"0.h.0", "0.h.1", ""}));
  EXPECT_EQ(layersOf({{"0.w", 2}, {"0.b", 1}}), (Names{"0", "0"})) << "a single layer stays one";
}

TEST(WrapPolicy, TakesNumberedStemsThatHoldMatrices) {
  EXPECT_EQ(layersOf({{"h_0/attn/kernel", 2},
                      {"h_0/ln_1/scale", 1},
                      {"h_1/attn/kernel", 2},
                      {"ln_f/scale", 1}}),
            (Names{"h_0", "h_0", "h_1", ""}));
  EXPECT_EQ(layersOf({{"fc1.weight", 2}, {"fc1.bias", 1}, {"fc2.weight", 2}}),
            (Names{"fc1", "fc1", "fc2"}));
  EXPECT_EQ(layersOf({{"ln_1.weight", 1}, {"ln_2.weight", 1}, {"proj.weight", 2}}),
            (Names{"", "", ""}));
  EXPECT_EQ(layersOf({{"conv1.weight", 4}, {"proj.weight", 2}}), (Names{"", ""}))
      << "one layer of a stem is not enough";
}

TEST(WrapPolicy, HasNoLayersWithoutParameters) { EXPECT_TRUE(findLayers({}).empty()); }

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

/// Parses a mesh. Expects one error on failure and none on success.
static FailureOr<MeshSpec> parse(StringRef text) {
  MLIRContext context;
  unsigned errors = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
    ++errors;
    return success();
  });
  auto mesh = parseMeshSpec(text, [&] { return emitError(UnknownLoc::get(&context)); });
  EXPECT_EQ(errors, failed(mesh) ? 1u : 0u) << text.str();
  return mesh;
}

TEST(MeshSpec, ReadsAxesInAnyOrder) {
  FailureOr<MeshSpec> mesh = parse("shard=2x4,replicate=3");
  ASSERT_TRUE(succeeded(mesh));
  EXPECT_EQ(mesh->shard, (SmallVector<int64_t>{2, 4}));
  EXPECT_EQ(mesh->replicate, (SmallVector<int64_t>{3}));
  ASSERT_TRUE(succeeded(parse("replicate=2")));
  mesh = parse("tensor=2,shard=3");
  ASSERT_TRUE(succeeded(mesh));
  EXPECT_EQ(mesh->tensor, (SmallVector<int64_t>{2}));
  mesh = parse("tensor=2,context=4,shard=3");
  ASSERT_TRUE(succeeded(mesh));
  EXPECT_EQ(mesh->getShards(), 12) << "units are sharded over both axes";
  EXPECT_EQ(mesh->getReaders(), 8);
}

TEST(MeshSpec, ReportsOneErrorForInvalidText) {
  for (StringRef text : {"",
                         ",",
                         "shard",
                         "shard=",
                         "shard=0",
                         "shard=-2",
                         "shard=1.5",
                         "shard=x",
                         "shard=2x",
                         "shard=2xx2",
                         "shard= 2",
                         "Shard=2",
                         "shard=2,",
                         "shard=2,shard=2",
                         "shard==2",
                         "shard=99999999999999999999",
                         "shard=65537",
                         "replicate=65536,shard=2",
                         "shard=1024x1024x2",
                         "shard=1024,tensor=128",
                         "tensor=0",
                         "tensor=2,tensor=2",
                         "context=0",
                         "shard=1024,context=128"})
    EXPECT_TRUE(failed(parse(text))) << text.str();
}
