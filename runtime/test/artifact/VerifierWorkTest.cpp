//===- VerifierWorkTest.cpp - The work of the verifier ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests that no small manifest keeps the verifier busy for hours. The verifier checks loops by
// arithmetic on offsets and strides. Its answer must be the same as if it checked each iteration.
//
//===----------------------------------------------------------------------===//

#include "test/artifact/Refusal.h"
#include "testing/toy/ToyModel.h"
#include <cstring>
#include <random>

using namespace fsdprt;
using namespace fsdprt::test;

TEST(OverlapInLoop, EqualsAWalkOverAllIterations) {
  std::mt19937 random(1);
  auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  int overlaps = 0;
  for (int round = 0; round < 200'000; ++round) {
    int64_t distance = upTo(80) - 40, step = upTo(20) - 10;
    uint64_t times = 1 + upTo(9), bytesA = 1 + upTo(9), bytesB = 1 + upTo(9);
    bool expected = false;
    for (uint64_t k = 0; k < times; ++k) {
      int64_t at = distance + static_cast<int64_t>(k) * step;
      expected |= at < static_cast<int64_t>(bytesB) && at > -static_cast<int64_t>(bytesA);
    }
    ASSERT_EQ(overlapInLoop(distance, step, times, bytesA, bytesB), expected)
        << distance << " " << step << " " << times << " " << bytesA << " " << bytesB;
    overlaps += expected;
  }
  EXPECT_GT(overlaps, 20'000);
  EXPECT_LT(overlaps, 180'000);
}

namespace {
std::unique_ptr<fb::CommandT> copy(uint32_t id, fb::Slice source, fb::Slice target) {
  fb::CopyT body;
  body.source = std::make_unique<fb::Slice>(source);
  body.target = std::make_unique<fb::Slice>(target);
  body.id = id;
  body.channel = 3;
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(body));
  return command;
}
std::unique_ptr<fb::CommandT> wait(uint32_t id) {
  fb::WaitT body;
  body.id = id;
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(body);
  return command;
}

/// Returns a loop that starts `count` copies and then waits for them. The offsets of the targets
/// grow by 64 * `stride` bytes per iteration.
std::unique_ptr<fb::CommandT> copiesInLoop(uint32_t count, uint32_t times, uint64_t stride) {
  fb::LoopT loop;
  loop.count = times;
  uint64_t each = 64 * std::max<uint64_t>(1, times * stride), targets = 64 * uint64_t(count);
  for (uint32_t i = 0; i < count; ++i)
    loop.body.push_back(copy(1000 + i, {64 * uint64_t(i), 64, 0, 0, 0},
                             {targets + each * i, 64, 64 * stride, 0, 0}));
  for (uint32_t i = 0; i < count; ++i)
    loop.body.push_back(wait(1000 + i));
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(loop));
  return command;
}

std::string refusalOfInit(std::unique_ptr<fb::CommandT> command) {
  auto manifest = toyManifest({});
  manifest.layouts[0]->arena_bytes = uint64_t(1) << 40;
  for (auto &program : manifest.programs)
    if (program->name == "init")
      program->commands.push_back(std::move(command));
  return refusal(pack(manifest));
}
} // namespace

// If the verifier checked each iteration, it would compare about 10^12 pairs of transfers.
TEST(VerifierWork, LongLoopsAreNotWalked) {
  EXPECT_EQ(refusalOfInit(copiesInLoop(1000, 1 << 20, 1)), "");
}

TEST(VerifierWork, TransfersInFlightAreLimited) {
  EXPECT_EQ(refusalOfInit(copiesInLoop(4000, 1, 0)), "");
  EXPECT_NE(refusalOfInit(copiesInLoop(20'000, 1, 0)).find("too many transfers are in flight"),
            std::string::npos);
}

// The location of every lookup is the same string of 1 MB in the file.
TEST(VerifierWork, SharedNamesAreLimited) {
  auto manifest = toyManifest({});
  for (int i = 0; i < 1000; ++i) {
    manifest.lookups.push_back(std::make_unique<fb::LookupT>());
    manifest.lookups.back()->location = i == 0 ? std::string(1'000'000, 'x') : "m.mlir:3:4";
    manifest.lookups.back()->extent = 8;
    manifest.lookups.back()->what = "rows of the table";
  }
  auto file = pack(manifest);
  EXPECT_EQ(refusal(file), "");
  fsdprt_artifact_header header;
  std::memcpy(&header, file.data(), sizeof header);
  const auto *lookups = fb::GetManifest(file.data() + header.manifest_offset)->lookups();
  auto *longest = reinterpret_cast<const uint8_t *>(lookups->Get(0)->location());
  for (uint32_t i = 1; i < lookups->size(); ++i) {
    auto *table = reinterpret_cast<flatbuffers::Table *>(const_cast<fb::Lookup *>(lookups->Get(i)));
    uint8_t *field = table->GetAddressOf(fb::Lookup::VT_LOCATION);
    ASSERT_GT(longest, field);
    flatbuffers::WriteScalar(field, static_cast<flatbuffers::uoffset_t>(longest - field));
  }
  seal(file);
  EXPECT_NE(refusal(file).find("its parts are referred to too often"), std::string::npos);
}

// All elements of the file's vector of lookups refer to the same table.
TEST(VerifierWork, SharedTablesAreRefused) {
  auto manifest = toyManifest({});
  for (int i = 0; i < 20'000; ++i) {
    manifest.lookups.push_back(std::make_unique<fb::LookupT>());
    manifest.lookups.back()->location = "m.mlir:3:4";
    manifest.lookups.back()->extent = 8;
    manifest.lookups.back()->what = "rows of the table";
  }
  auto file = pack(manifest);
  EXPECT_EQ(refusal(file), "");
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::Lookup>> same(
      20'000, fb::CreateLookup(builder, manifest.lookups[0].get()));
  auto lookups = builder.CreateVector(same);
  fb::ManifestBuilder root(builder);
  root.add_lookups(lookups);
  fb::FinishManifestBuffer(builder, root.Finish());
  fsdprt_artifact_header header;
  std::memcpy(&header, file.data(), sizeof header);
  ASSERT_GT(header.manifest_size, builder.GetSize());
  header.manifest_size = header.file_size = builder.GetSize();
  header.file_size += header.manifest_offset;
  header.image_offset = header.image_size = 0;
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + header.manifest_offset, builder.GetBufferPointer(), builder.GetSize());
  file.resize(header.file_size);
  seal(file);
  EXPECT_NE(refusal(file).find("not a well-formed FlatBuffer"), std::string::npos) << refusal(file);
}
