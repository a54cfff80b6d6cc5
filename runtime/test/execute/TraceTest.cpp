//===- TraceTest.cpp - Traces of commands -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the events that a trace contains for instructions with known times. Tests that the ring
// buffer contains the events of the last runs. Also tests the events of a session: waits and
// launches of a rank must not overlap.
//
//===----------------------------------------------------------------------===//

#include "execute/Trace.h"
#include "core/Error.h"
#include "execute/Profile.h"
#include "execute/Session.h"
#include "testing/toy/ToyModel.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;

static std::shared_ptr<const Artifact> toy(const ToyOptions &options) {
  auto file = pack(toyManifest(options));
  return Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
}

namespace {
/// Returns instructions for those commands of the program 'step' that have the type `kind`.
std::vector<Instruction> commandsOf(const Artifact &artifact, fb::Body kind) {
  std::vector<Instruction> found;
  for (const fb::Command *command : *artifact.program("step")->commands())
    if (command->body_type() == kind)
      found.push_back(
          {kind, command->body(), command->label() ? command->label()->c_str() : "", 0});
  return found;
}
} // namespace

TEST(Trace, CollectivesInFlight) {
  auto artifact = toy({});
  std::vector<Instruction> instructions;
  for (const Instruction &start : commandsOf(*artifact, fb::Body::Collective))
    if (static_cast<const fb::Collective *>(start.body)->channel() > 0 && instructions.empty())
      instructions.push_back(start);
  ASSERT_EQ(instructions.size(), 1u);
  for (int i = 0; i < 2; ++i)
    instructions.push_back(commandsOf(*artifact, fb::Body::Launch).at(0));
  for (const Instruction &wait : commandsOf(*artifact, fb::Body::Wait))
    if (static_cast<const fb::Wait *>(wait.body)->id() ==
        static_cast<const fb::Collective *>(instructions[0].body)->id())
      instructions.push_back(wait);
  ASSERT_EQ(instructions.size(), 4u);
  Trace trace(artifact->manifest(), instructions, 5, 2, 3);
  EXPECT_EQ(trace.bytes(), 2u * 3 * 4 * 40);
  for (uint64_t run = 0; run < 4; ++run) {
    trace.begin(5);
    for (size_t i = 0; i < 4; ++i)
      trace.add(5, i, run * 1000 + i * 100, run * 1000 + i * 100 + 50);
    trace.add(5, 0, 0, 0); // ignored, since no instruction of the program is left
  }
  std::vector<fsdprt_trace_event> events;
  trace.visit([&](const fsdprt_trace_event &event) {
    events.push_back(event);
    return true;
  });
  // Each of the runs 2 to 4 has four events: two launches, the collective and its wait.
  ASSERT_EQ(events.size(), 3u * 4);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].rank, 5u);
    EXPECT_EQ(events[i].run, 2 + i / 4);
  }
  const fsdprt_trace_event &gather = events[2], &wait = events[3];
  EXPECT_EQ(gather.lane, FSDPRT_LANE_GATHER);
  EXPECT_STREQ(gather.name, "all_gather");
  EXPECT_EQ(gather.begin, 1000u);
  EXPECT_EQ(gather.end, 1350u);
  EXPECT_EQ(gather.waited, 50u);
  EXPECT_EQ(gather.ahead, 2u);
  EXPECT_EQ(wait.lane, FSDPRT_LANE_COMPUTE);
  EXPECT_EQ(wait.begin, 1300u);
  EXPECT_EQ(wait.end, 1350u);
  int seen = 0;
  trace.visit([&](const fsdprt_trace_event &) { return ++seen < 3; });
  EXPECT_EQ(seen, 3);
}

TEST(Trace, CopiesInFlight) {
  auto artifact = toy({});
  flatbuffers::FlatBufferBuilder builder;
  fb::Slice source(0, 4096, 0, 0, 0), target(8192, 4096, 0, 0, 0);
  builder.Finish(fb::CreateCopy(builder, &source, &target, 9, 3));
  flatbuffers::FlatBufferBuilder waits;
  waits.Finish(fb::CreateWait(waits, 9));
  std::vector<Instruction> instructions = {
      {fb::Body::Copy, flatbuffers::GetRoot<fb::Copy>(builder.GetBufferPointer()), "to the host: x",
       0},
      commandsOf(*artifact, fb::Body::Launch).at(0),
      {fb::Body::Wait, flatbuffers::GetRoot<fb::Wait>(waits.GetBufferPointer()), "", 2}};
  Trace trace(artifact->manifest(), instructions, 0, 1, 1);
  trace.begin(0);
  trace.add(0, 0, 100, 110);
  trace.add(0, 1, 110, 200);
  trace.add(0, 2, 200, 260, 120, 250); // The copy runs from 120 to 250.
  std::vector<fsdprt_trace_event> events;
  trace.visit([&](const fsdprt_trace_event &event) {
    events.push_back(event);
    return true;
  });
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].lane, FSDPRT_LANE_COMPUTE);
  EXPECT_EQ(events[1].lane, FSDPRT_LANE_COPY);
  EXPECT_STREQ(events[1].kind, "host copy");
  EXPECT_STREQ(events[1].label, "to the host: x");
  EXPECT_EQ(events[1].begin, 120u);
  EXPECT_EQ(events[1].end, 250u);
  EXPECT_EQ(events[1].waited, 60u);
  EXPECT_EQ(events[1].ahead, 1u);
  EXPECT_EQ(events[1].bytes, 8192u);
  EXPECT_EQ(events[2].lane, FSDPRT_LANE_COMPUTE);
  EXPECT_EQ(events[2].waited, 60u);
  // The profile has one entry for the copy and its wait.
  Profile profile(artifact->manifest(), instructions);
  for (size_t i = 0; i < 3; ++i)
    profile.add(i, 10);
  uint64_t copies = 0;
  for (const fsdprt_profile_entry &entry : profile.entries())
    if (std::string(entry.name) == "copy") {
      ++copies;
      EXPECT_EQ(entry.runs, 1u);
      EXPECT_EQ(entry.nanoseconds, 20u);
      EXPECT_EQ(entry.bytes, 8192u);
    }
  EXPECT_EQ(copies, 1u);
}

TEST(Trace, OfASession) {
  for (bool asynchronous : {true, false}) {
    ToyOptions toyOptions;
    toyOptions.asynchronous = asynchronous;
    toyOptions.shards = 3;
    auto artifact = toy(toyOptions);
    fsdprt_session_options options = {};
    options.struct_size = sizeof options;
    options.with_reference = 1;
    options.trace_runs = 2;
    Session session(artifact, options);
    for (const char *program :
         {"init", "reference_init", "step", "eval", "step", "reference", "step"})
      session.run(program);
    uint64_t last[3] = {}, launches[3][4] = {};
    session.trace().visit([&](const fsdprt_trace_event &event) {
      EXPECT_LE(event.begin, event.end);
      EXPECT_TRUE(event.run == 2 || event.run == 3);
      if (event.lane == FSDPRT_LANE_COMPUTE) {
        EXPECT_GE(event.begin, last[event.rank]) << event.label;
        last[event.rank] = event.end;
        launches[event.rank][event.run] += std::strcmp(event.kind, "collective") != 0;
      }
      return true;
    });
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_GT(launches[rank][2], 3u);
      EXPECT_EQ(launches[rank][2], launches[0][3]);
    }
  }
  fsdprt_session_options options = {};
  options.struct_size = sizeof options;
  Session without(toy({}), options);
  EXPECT_THROW(without.trace(), Error);
}
