//===- NullMemoryTest.cpp - Uninitialised reads and wrong ranges *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/null/HandMade.h"
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;
using Kind = fb::CollectiveKind;

TEST(Null, BytesThatNothingHasWritten) {
  HandMade hand = soundStep();
  hand.step()[2]->body.AsLaunch()->bindings[2] = fb::Slice(1024, 448, 0, 0, 0);
  hand.manifest.kernels[0]->binding_bytes[2] = 448;
  EXPECT_FOUND(hand, "uninitialised: step 1, ranks 0 to 1: command 3 (reduce_scatter 'u', "
                     "collective 8 on channel 1) "
                     "reads [1472, +64) of 'gradient' "
                     "as the source, which nothing has written");
}

TEST(Null, WhatABufferBeforeLeftIsWorthNothing) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 64, 0, 1);
  hand.launch(hand.step(), "make a", {}, {a});
  hand.launch(hand.step(), "read a", {a}, {}, {hand.parameter()});
  EXPECT_EQ(hand.findings(), "");
  auto b = std::make_unique<fb::BufferT>(*hand.layout().buffers.back());
  b->name = "b";
  b->first = b->last = 2;
  hand.layout().buffers.push_back(std::move(b));
  hand.launch(hand.step(), "read b", {a}, {}, {hand.parameter()});
  EXPECT_FOUND(
      hand,
      "command 2 (launch 'read b') reads [512, +64) of 'b' as binding 0, which nothing has written "
      "since its buffer's life "
      "began; it has what command 0 (launch 'make a') left there");
}

TEST(Null, AStepLeavesStatesToTheNextAndNothingElse) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 64, 0, 1);
  fb::LoopT loop;
  loop.count = 2;
  hand.launch(loop.body, "add", {}, {}, {a}); // The first iteration reads uninitialised bytes.
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(loop));
  hand.step().push_back(std::move(command));
  EXPECT_FOUND(hand, "uninitialised: step 1, ranks 0 to 1: command 1 (launch 'add') reads [512, "
                     "+64) of 'a' as binding "
                     "0, which nothing has written");
  NullResult result = hand.walk();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].times, 6u); // the finding occurs once in each step
}

TEST(Null, AResumedRunHasStatesAndBlocksAlone) {
  HandMade hand;
  fb::Slice kept(512, 64, 0, 0, 0);
  hand.layout().arena_bytes = 1024;
  auto buffer = std::make_unique<fb::BufferT>();
  buffer->name = "kept";
  buffer->offset = 512;
  buffer->bytes = 64;
  buffer->program = buffer->last = UINT32_MAX;
  hand.layout().buffers.push_back(std::move(buffer));
  hand.launch(hand.init(), "set", {}, {kept});
  hand.launch(hand.step(), "use", {}, {}, {kept});
  EXPECT_FOUND(hand, "uninitialised: step 1 of a resumed run, ranks 0 to 1: command 0 (launch "
                     "'use') reads [512, +64) of 'kept'");
}

TEST(Null, InitialValuesCoverTheStatesOfEveryRank) {
  HandMade hand = soundStep();
  hand.manifest.params[0]->shape = {100}; // part of rank 1's piece has no value
  EXPECT_FOUND(
      hand,
      "uninitialised: init, rank 1: the host reads [144, +112) of 'u parameter' as the host, which "
      "nothing has written");
  hand.fill(hand.init(), hand.parameter());
  std::swap(hand.init()[0], hand.init()[1]);
  EXPECT_EQ(hand.findings(), "");
}

TEST(Null, AKernelThatDoesNotSayWhatItReadsIsNotBlamed) {
  HandMade hand = soundStep();
  for (auto &kernel : hand.manifest.kernels)
    kernel->reads.clear();
  EXPECT_EQ(hand.findings(), "");
}

TEST(Null, ScratchIsWorthNothingBehindItsLaunch) {
  HandMade hand;
  hand.layout().workspace = std::make_unique<fb::Slice>(512, 128, 0, 0, 0);
  hand.layout().arena_bytes = 640;
  hand.layout().shared_bytes = hand.layout().worker_bytes = 64;
  hand.launch(hand.step(), "user", {}, {}, {hand.parameter()});
  hand.manifest.kernels[0]->shared_bytes = hand.manifest.kernels[0]->worker_bytes = 64;
  hand.launch(hand.step(), "thief", {fb::Slice(576, 64, 0, 0, 0)}, {}, {hand.parameter()});
  EXPECT_FOUND(hand, "command 1 (launch 'thief') reads [576, +64) of 'workspace'");
}

/// Returns a program with a GPU kernel that fetches rows of 64 bytes and has a workspace.
static HandMade onGpu() {
  HandMade hand;
  hand.manifest.gpu = std::make_unique<fb::GpuT>();
  hand.manifest.gpu->chip = "sm_90a";
  hand.layout().workspace = std::make_unique<fb::Slice>(768, 256, 0, 0, 0);
  hand.layout().arena_bytes = 1024;
  hand.layout().shared_bytes = 256;
  hand.launch(hand.step(), "user", {}, {}, {hand.parameter()});
  hand.manifest.kernels[0]->shared_bytes = 256;
  fb::PhaseT &phase = *hand.manifest.kernels[0]->phases[0];
  phase.grid = std::make_unique<fb::GridT>();
  phase.grid->blocks = static_cast<uint32_t>(phase.extent);
  phase.grid->threads = 32;
  phase.grid->maps.push_back(std::make_unique<fb::TensorMapT>());
  fb::TensorMapT &map = *phase.grid->maps[0];
  map.sizes = {32, 4};
  map.strides = {64};
  map.box = {32, 4};
  return hand;
}

TEST(Null, WhatTensorMapsFetchLiesInABinding) {
  HandMade hand = onGpu();
  EXPECT_EQ(hand.findings(), "");
  fb::TensorMapT &map = *hand.manifest.kernels[0]->phases[0]->grid->maps[0];
  map.sizes = {32, 5};
  EXPECT_FOUND(hand, "tensor map 0: expected an end within the 256 bytes of binding 0, found 320");
  map.dtype = fb::DType::f32;
  map.sizes = {32, 4};
  EXPECT_FOUND(hand, "tensor map 0: expected an end within the 256 bytes of binding 0, found 320");
  map.dtype = fb::DType::bf16;
  map.binding = 1;
  EXPECT_EQ(hand.findings(), "");
  map.offset = 32;
  EXPECT_FOUND(hand, "tensor map 0: expected an end within the 256 bytes of scratch, found 288");
  map.offset = 8;
  map.sizes = {28, 4};
  EXPECT_FOUND(hand, "tensor map 0: expected its offset and strides to be multiples of 16 bytes");
}

TEST(Null, ScratchOnAGpuIsAlignedTo256) {
  HandMade hand = onGpu();
  hand.layout().workspace = std::make_unique<fb::Slice>(704, 256, 0, 0, 0);
  EXPECT_FOUND(hand, "has scratch at [704, +256) of 'workspace': expected a multiple of 256");
}

TEST(Null, RangesLieInTheirArena) {
  HandMade hand = soundStep();
  hand.layout().arena_bytes = 1536 + 128;
  EXPECT_FOUND(
      hand,
      "bounds: layout 0: 'shard' at [1536, +256), which lives at commands 3 to 5 of 'step', is not "
      "within one of the arenas: of 1664 bytes");
  EXPECT_FOUND(hand, "bounds: step 1, ranks 0 to 1: command 3 (reduce_scatter 'u', collective 8 on "
                     "channel 1) has the "
                     "target at [1536, +256)");
}

TEST(Null, RangesLieInTheirArenaInEveryIterationOnEveryRank) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 64, 0, 1);
  fb::LoopT loop;
  loop.count = 3;
  hand.launch(loop.body, "sweep", {}, {fb::Slice(a.offset() - 64, 64, 64, 0, 0)});
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(loop));
  hand.step().push_back(std::move(command));
  EXPECT_FOUND(hand, "command 1 (launch 'sweep') has binding 0 at [576, +64), which is not within "
                     "one of the arenas");
  HandMade pieces;
  fb::Slice b = pieces.buffer("b", 64, 0, 0);
  pieces.launch(pieces.step(), "mine", {},
                {fb::Slice(b.offset(), 64, 0, 64, uint64_t(fb::Split::shard))});
  EXPECT_FOUND(pieces,
               "bounds: step 1, rank 1: command 0 (launch 'mine') has binding 0 at [576, +64)");
}

TEST(Null, BindingsAreAligned) {
  HandMade hand = soundStep();
  hand.step()[2]->body.AsLaunch()->bindings[1] =
      at(hand.step()[2]->body.AsLaunch()->bindings[1], 516);
  EXPECT_FOUND(hand, "alignment: step 1, ranks 0 to 1: command 2 (launch 'forward') has binding 1 "
                     "at [516, +512) of "
                     "'full': expected a multiple of 64");
}

TEST(Null, RangesLieInOneLiveBuffer) {
  HandMade hand = soundStep();
  hand.step()[2]->body.AsLaunch()->bindings[1] =
      at(hand.step()[2]->body.AsLaunch()->bindings[1], 576);
  EXPECT_FOUND(hand, "lifetime: step 1, ranks 0 to 1: command 2 (launch 'forward') has binding 1 "
                     "at [576, +512) of "
                     "'full': no live buffer covers the whole range");
  HandMade late = soundStep();
  late.step()[5]->body.AsLaunch()->bindings[0] = fb::Slice(512, 256, 0, 0, 0);
  EXPECT_FOUND(late, "command 5 (launch 'update') has binding 0 at [512, +256) of no live buffer");
}

TEST(Null, BuffersThatLiveAtOnceAreApart) {
  HandMade hand = soundStep();
  hand.layout().buffers[5]->offset = 512 + 448; // the gradient
  hand.step()[2]->body.AsLaunch()->bindings[2] =
      at(hand.step()[2]->body.AsLaunch()->bindings[2], 512 + 448);
  fb::Slice &source = *hand.step()[3]->body.AsCollective()->source;
  source = at(source, 512 + 448);
  EXPECT_FOUND(
      hand,
      "overlap: layout 0: 'full' at [512, +512), which lives at commands 0 to 2 of 'step', and "
      "'gradient' at [960, +512), which "
      "lives at commands 2 to 4 of 'step', share 64 bytes");
  EXPECT_FOUND(hand,
               "overlap: step 1, ranks 0 to 1: command 2 (launch 'forward') writes [960, +64)");
}

TEST(Null, SourcesAndTargetsAreApart) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 512, 0, 4);
  fb::Slice mine(a.offset(), 256, 0, 256, uint64_t(fb::Split::shard)),
      first(a.offset(), 256, 0, 0, 0);
  hand.fill(hand.step(), a);
  hand.gather(hand.step(), 1, mine, a, 0);
  hand.collective(hand.step(), Kind::all_reduce, 2, first, first, 64, 0);
  EXPECT_EQ(hand.findings(), "");
  hand.gather(hand.step(), 3, first, a, 0);
  EXPECT_FOUND(hand, "overlap: step 1, rank 1: command 3 (all_gather 'u', collective 3) writes "
                     "[512, +256) of 'a' as "
                     "the target, which is the source, too");
  hand.copy(hand.step(), 0, first, fb::Slice(a.offset() + 64, 256, 0, 0, 0));
  EXPECT_FOUND(hand, "overlap: step 1, rank 0: command 4 (copy 'c') writes [576, +192) of 'a' as "
                     "the target, which is "
                     "the source, too");
}

TEST(Null, KernelsAndCollectivesStayInOneArena) {
  HandMade hand = soundStep();
  hand.layout().host_bytes = hand.layout().file_bytes = 4096;
  std::shared_ptr<const Artifact> artifact = hand.artifact();
  const fb::Layout &layout = *artifact->manifest().layouts()->Get(0);
  uint64_t host = hostBegin(layout), file = fileBegin(layout);
  fb::Slice &binding = hand.step()[2]->body.AsLaunch()->bindings[0], good = binding;
  binding = at(binding, host);
  EXPECT_FOUND(
      hand,
      "bounds: step 1, ranks 0 to 1: command 2 (launch 'forward') has binding 1 at [512, +512) of "
      "'full' on the device, and binding 0 on the host");
  binding = at(binding, file);
  EXPECT_FOUND(hand, "has binding 0 at [8192, +64) of no live buffer in the file: expected it in "
                     "the arena of the device or the host");
  binding = good;
  makeGpu(hand.manifest);
  EXPECT_EQ(hand.findings(), "");
  std::vector<fb::Slice> &bindings = hand.step()[2]->body.AsLaunch()->bindings, device = bindings;
  for (uint64_t i = 0; i < bindings.size(); ++i)
    bindings[i] = at(bindings[i], host + 1024 * i);
  EXPECT_FOUND(
      hand, "of no live buffer on the host: expected it on the device, where kernels of a GPU run");
  bindings = device;
  fb::Slice &target = *hand.step()[3]->body.AsCollective()->target;
  target = at(target, host);
  EXPECT_FOUND(hand, "command 3 (reduce_scatter 'u', collective 8 on channel 1) has the target at "
                     "[4096, +256) of no "
                     "live buffer on the host: expected it on the device");
  hand.copy(hand.step(), 0, fb::Slice(file, 64, 0, 0, 0), fb::Slice(file + 64, 64, 0, 0, 0));
  EXPECT_FOUND(hand, "command 6 (copy 'c') has the source and the target in the file: expected one "
                     "of them in an arena");
}
