//===- SessionTest.cpp - Training the toy model -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the results of sharded training on 1 to 5 ranks bit for bit with the results of
// unsharded training. Also tests that the caller can read and write states, and tests error
// messages and a kernel that hangs.
//
//===----------------------------------------------------------------------===//

#include "execute/Session.h"
#include "core/Error.h"
#include "core/Initialise.h"
#include "core/Philox.h"
#include "test/Sanitized.h"
#include "testing/faults/FaultInjection.h"
#include "testing/toy/ToyModel.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
std::shared_ptr<const Artifact> toy(const ToyOptions &options) {
  auto file = pack(toyManifest(options));
  return Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
}

fsdprt_session_options sessionOptions(uint32_t threads = 1, bool reference = true) {
  fsdprt_session_options options = {};
  options.struct_size = sizeof options;
  options.threads_per_rank = threads;
  options.with_reference = reference;
  options.seed = 3;
  return options;
}

void writeInputs(Session &session, uint32_t ranks, int step, bool reference) {
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (uint64_t input : {0u, 1u}) {
      int64_t ids[8];
      for (int i = 0; i < 8; ++i)
        ids[i] = static_cast<int64_t>((step * 31 + rank * 17 + i * 7 + input * 5) % 256);
      session.writeInput(rank, input, 0, ids, sizeof ids);
      if (reference)
        session.writeInput(FSDPRT_REFERENCE, input, rank, ids, sizeof ids);
    }
}

float blockAt(const Session &session, uint32_t rank, int slot) {
  float block[FSDPRT_BLOCK_SIZE];
  session.readBlock(rank, block);
  return block[slot];
}

void setBlock(Session &session, uint32_t rank, int slot, float value) {
  float block[FSDPRT_BLOCK_SIZE];
  session.readBlock(rank, block);
  block[slot] = value;
  session.writeBlock(rank, block);
}

/// Trains for `steps` steps and returns the parameters of all ranks.
std::vector<float> train(Session &session, uint32_t ranks, int steps, bool reference) {
  session.run("init");
  if (reference)
    session.run("reference_init");
  for (int step = 0; step < steps; ++step) {
    writeInputs(session, ranks, step, reference);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      setBlock(session, rank, FSDPRT_BLOCK_LR, 0.1f);
    session.run("step");
    if (!reference)
      continue;
    setBlock(session, FSDPRT_REFERENCE, FSDPRT_BLOCK_LR, 0.1f);
    session.run("reference");
    for (int i : {FSDPRT_BLOCK_LOSS, FSDPRT_BLOCK_GRAD_NORM, FSDPRT_BLOCK_STEP})
      EXPECT_EQ(blockAt(session, ranks - 1, i), blockAt(session, FSDPRT_REFERENCE, i))
          << step << " " << i;
  }
  std::vector<float> result(102);
  session.readParam(0, 0, fb::StateRole::parameter, 0, 91, result.data(), 91 * 4);
  session.readParam(0, 1, fb::StateRole::parameter, 0, 11, result.data() + 91, 11 * 4);
  return result;
}
} // namespace

class ToyTraining : public testing::TestWithParam<int> {};

TEST_P(ToyTraining, ShardedIsUnsharded) {
  ToyOptions options;
  options.shards = GetParam();
  auto artifact = toy(options);
  std::vector<float> first;
  for (uint32_t threads : {1u, 2u, 3u}) {
    Session session(artifact, sessionOptions(threads));
    std::vector<float> values = train(session, GetParam(), 10, true);
    fsdprt_comparison result = {};
    session.compare(result);
    EXPECT_TRUE(result.equal);
    EXPECT_EQ(result.parameter_elements, 102u);
    EXPECT_EQ(result.optimizer_elements, 102u);
    first = threads == 1 ? values : first;
    EXPECT_EQ(values, first) << "with " << threads << " threads";
  }
}

TEST_P(ToyTraining, SynchronousIsAsynchronous) {
  ToyOptions options;
  options.shards = GetParam();
  auto artifact = toy(options);
  options.asynchronous = false;
  auto synchronous = toy(options);
  Session a(artifact, sessionOptions(1, false)), b(synchronous, sessionOptions(2, false));
  EXPECT_EQ(train(a, GetParam(), 5, false), train(b, GetParam(), 5, false));
}
INSTANTIATE_TEST_SUITE_P(Ranks, ToyTraining, testing::Range(1, 6));

TEST(Session, ReplicasStayEqual) {
  ToyOptions options;
  options.replicas = 2;
  options.shards = 3;
  auto artifact = toy(options);
  Session session(artifact, sessionOptions(1, false));
  train(session, 6, 5, false);
  const fb::State &state = *session.state(session.getRanks(), 0, fb::StateRole::parameter);
  for (uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(std::memcmp(session.getRanks().executor(rank).memoryOf(state),
                          session.getRanks().executor(rank + 3).memoryOf(state), 192),
              0);
  int64_t place[3];
  session.getRanks().executor(5).read(session.getRanks().getLayout().rank()->offset(), place,
                                      sizeof place);
  EXPECT_EQ(place[0], 5);
  EXPECT_EQ(place[1], 2);
  EXPECT_EQ(place[2], 1);
}

TEST(Session, InitialValuesDoNotDependOnTheRanks) {
  std::vector<float> first;
  for (uint64_t shards = 1; shards <= 5; ++shards) {
    ToyOptions options;
    options.shards = shards;
    auto artifact = toy(options);
    Session session(artifact, sessionOptions(2, false));
    std::vector<float> values = train(session, static_cast<uint32_t>(shards), 0, false);
    first = shards == 1 ? values : first;
    EXPECT_EQ(values, first);
  }
  for (size_t i = 0; i < 91; ++i)
    EXPECT_NE(first[i], 0);
}

TEST(Session, ValuesOfTheFileForAnyNumberOfRanks) {
  std::vector<float> expected(91, static_cast<float>(toyValue)); // w has one f64 value
  for (uint16_t i = 0; i < 11; ++i)
    expected.push_back(bf16ToF32(static_cast<uint16_t>(0x3f80 + i)));
  for (uint64_t shards = 1; shards <= 5; ++shards) {
    ToyOptions options;
    options.shards = shards;
    options.values = true;
    Session session(toy(options), sessionOptions(2));
    EXPECT_EQ(train(session, shards, 0, true), expected) << shards;
    fsdprt_comparison result = {};
    session.compare(result);
    EXPECT_TRUE(result.equal);
  }
}

TEST(Session, ExtraIds) {
  ToyOptions options;
  int64_t ids[8] = {1, 2, -100, 4, 5, 6, 7, 8};
  auto write = [&](uint64_t input) -> std::string {
    Session session(toy(options), sessionOptions());
    try {
      session.writeInput(0, input, 0, ids, sizeof ids);
    } catch (const Error &error) {
      return error.message;
    }
    return "";
  };
  EXPECT_NE(write(1).find("expected ids in [0, 256), found -100 at element 2"), std::string::npos);
  options.values = true; // This artifact allows the id -100 in targets.
  EXPECT_EQ(write(1), "");
  EXPECT_NE(write(0).find("expected ids in [0, 256), found -100 at element 2"), std::string::npos);
  ids[2] = -99;
  EXPECT_NE(write(1).find("expected ids in [0, 256) or -100, found -99 at element 2"),
            std::string::npos);
}

TEST(Session, EvaluationChangesNoParameter) {
  auto artifact = toy({});
  Session session(artifact, sessionOptions(1, false));
  std::vector<float> before = train(session, 2, 2, false), after(102);
  session.run("eval");
  session.readParam(0, 0, fb::StateRole::parameter, 0, 91, after.data(), 91 * 4);
  session.readParam(0, 1, fb::StateRole::parameter, 0, 11, after.data() + 91, 11 * 4);
  EXPECT_EQ(before, after);
}

TEST(Session, ParametersInAndOut) {
  auto artifact = toy({});
  Session session(artifact, sessionOptions());
  session.run("init");
  session.run("reference_init");
  std::vector<double> values(91);
  for (int i = 0; i < 91; ++i)
    values[i] = i * 0.125;
  session.writeParam(0, fb::StateRole::parameter, 0, 91, values.data(), DType::f64);
  for (uint32_t from : {0u, FSDPRT_REFERENCE}) {
    float read[10];
    session.readParam(from, 0, fb::StateRole::parameter, 60, 10, read, sizeof read);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(read[i], (60 + i) * 0.125f);
  }
  fsdprt_comparison result = {};
  session.compare(result);
  EXPECT_TRUE(result.equal);
  float wrong[3];
  EXPECT_THROW(session.readParam(0, 0, fb::StateRole::parameter, 90, 2, wrong, 8), Error);
  EXPECT_THROW(session.readParam(0, 0, fb::StateRole::master, 0, 2, wrong, 8), Error);
  EXPECT_THROW(session.readParam(0, 0, fb::StateRole::parameter, 0, 2, wrong, 12), Error);
  EXPECT_THROW(session.readParam(2, 0, fb::StateRole::parameter, 0, 2, wrong, 8), Error);
  EXPECT_THROW(session.readParam(0, 2, fb::StateRole::parameter, 0, 2, wrong, 8), Error);
}

TEST(Session, ComparisonFindsOneElement) {
  auto artifact = toy({});
  Session session(artifact, sessionOptions());
  train(session, 2, 3, true);
  session.pokeShard(
      1, 1, [](void *, void *element, size_t) { *static_cast<float *>(element) += 1; }, nullptr);
  fsdprt_comparison result = {};
  session.compare(result);
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.param, 1u);
  EXPECT_EQ(result.element, 0u);
  EXPECT_EQ(result.rank, 1u);
  EXPECT_NE(result.sharded, result.unsharded);
}

TEST(Session, ADroppedGradientIsSeen) {
  auto artifact = toy({});
  fsdprt_session_options options = sessionOptions();
  InjectedFaults faults;
  faults.dropGradientOfRank = 2;
  injectFaults(faults);
  Session session(artifact, options);
  session.run("init");
  session.run("reference_init");
  writeInputs(session, 2, 0, true);
  for (uint32_t rank : {0u, 1u, FSDPRT_REFERENCE})
    setBlock(session, rank, FSDPRT_BLOCK_LR, 0.1f);
  session.run("step");
  session.run("reference");
  fsdprt_comparison result = {};
  session.compare(result);
  EXPECT_FALSE(result.equal);
}

static std::string refusal(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.message;
  }
  return "";
}

TEST(Session, Refusals) {
  auto artifact = toy({});
  fsdprt_session_options options = sessionOptions();
  options.ranks = 3;
  EXPECT_NE(refusal([&] {
              Session(artifact, options);
            }).find("compiled for 2 ranks (mesh replicate=1,shard=2), asked to run on 3"),
            std::string::npos);
  options = sessionOptions(9);
  EXPECT_NE(refusal([&] { Session(artifact, options); }).find("scratch memory for 4 threads"),
            std::string::npos);
  options = sessionOptions();
  options.backend = "ring";
  EXPECT_NE(refusal([&] { Session(artifact, options); }).find("found 'ring'"), std::string::npos);
  Session session(artifact, sessionOptions(1, false));
  EXPECT_NE(refusal([&] { session.run("reference"); }).find("without the reference"),
            std::string::npos);
  EXPECT_NE(refusal([&] { session.run("nothing"); }).find("has no program 'nothing'"),
            std::string::npos);
  int64_t ids[8] = {1, 2, 3, 256};
  EXPECT_EQ(refusal([&] { session.writeInput(0, 0, 0, ids, sizeof ids); }),
            "input 'ids': expected ids in [0, 256), found 256 at element 3");
  ids[3] = -1;
  EXPECT_NE(refusal([&] { session.writeInput(0, 0, 0, ids, sizeof ids); }), "");
  EXPECT_NE(refusal([&] { session.writeInput(0, 0, 1, ids, sizeof ids); }).find("micro-batches"),
            std::string::npos);
  EXPECT_NE(refusal([&] { session.writeInput(0, 2, 0, ids, sizeof ids); }), "");
}

TEST(Session, ArenaLargerThanTheMachine) {
  auto manifest = toyManifest({});
  manifest.layouts[0]->arena_bytes = uint64_t(1) << 47;
  auto file = pack(manifest);
  std::shared_ptr<const Artifact> artifact =
      Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
  std::string message = refusal([&] { Session(artifact, sessionOptions(1, false)); });
  EXPECT_NE(message.find("the plan needs 256.0 TiB"), std::string::npos) << message;
}

/// Returns a toy artifact in which the kernel `symbol` replaces the update of the parameters.
static std::shared_ptr<const Artifact> toyWithUpdate(const char *symbol) {
  auto manifest = toyManifest({});
  for (auto &program : manifest.programs)
    if (program->name == "step") {
      // The update is the last launch of the step, and no collective follows it.
      fb::LaunchT &update = *program->commands[13]->body.AsLaunch();
      update.bindings = {*manifest.layouts[0]->block};
      auto kernel = std::make_unique<fb::KernelT>();
      kernel->name = symbol;
      kernel->binding_bytes = {64};
      kernel->writes = {true};
      kernel->phases.push_back(std::make_unique<fb::PhaseT>());
      kernel->phases[0]->symbol = symbol;
      kernel->phases[0]->extent = kernel->phases[0]->tile = 1;
      update.kernel = static_cast<uint32_t>(manifest.kernels.size());
      manifest.kernels.push_back(std::move(kernel));
    }
  auto file = pack(manifest);
  return Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
}

TEST(Session, RefusesSystemCallsOfKernels) {
  if (isSanitized)
    GTEST_SKIP() << "sanitizers make system calls of their own";
  auto run = [](const char *symbol, bool restricts) {
    fsdprt_session_options options = sessionOptions(2, false);
    options.restrict_calls = restricts;
    Session session(toyWithUpdate(symbol), options);
    session.run("init");
    writeInputs(session, 2, 0, false);
    session.run("step");
  };
  EXPECT_EXIT(run("toy_call", true), testing::ExitedWithCode(FSDPRT_FAILED),
              "refused the system call 'socket'");
  auto passes = [&](const char *symbol, bool restricts) {
    run(symbol, restricts);
    std::exit(0);
  };
  EXPECT_EXIT(passes("toy_call", false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(passes("toy_hang", true), testing::ExitedWithCode(0), ""); // this kernel returns in
                                                                         // step 1
}

// In step 2, the kernel of rank 1 hangs.
TEST(Session, NamesTheRankThatHangs) {
  std::shared_ptr<const Artifact> artifact = toyWithUpdate("toy_hang");
  fsdprt_session_options options = sessionOptions(1, false);
  options.timeout_seconds = 0.3;
  auto session = std::make_unique<Session>(artifact, options);
  session->run("init");
  writeInputs(*session, 2, 0, false);
  session->run("step"); // the kernel returns, because block[9] is now 1
  setBlock(*session, 0, 9, 0);
  setBlock(*session, 1, 9, 5);
  std::string message = refusal([&] { session->run("step"); });
  EXPECT_NE(message.find("step 2: no rank made progress"), std::string::npos) << message;
  EXPECT_NE(message.find("rank 1 (last seen in step 2 at command 13, 'update')"), std::string::npos)
      << message;
  setBlock(*session, 1, 9, 0); // 0 in block[9] ends the kernel of rank 1
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// The expected blocks are from the known-answer tests of the Random123 library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t(0)),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Initialise, AnyPartIsThePart) {
  for (fb::InitKind kind : {fb::InitKind::normal, fb::InitKind::uniform, fb::InitKind::constant}) {
    std::vector<float> whole(1001), part(300);
    initialValues({kind, -1, 2}, 5, streamOf("h.0.w"), 0, 1001, DType::f32, whole.data());
    for (uint64_t first : {0u, 1u, 37u, 701u}) {
      initialValues({kind, -1, 2}, 5, streamOf("h.0.w"), first, 300, DType::f32, part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, 300 * 4), 0);
    }
  }
}

TEST(Initialise, HasTheMomentsItShould) {
  std::vector<double> values(200000);
  initialValues({fb::InitKind::normal, 1, 0.5}, 1, 2, 0, values.size(), DType::f64, values.data());
  double sum = 0, squares = 0, fourths = 0;
  for (double x : values) {
    double z = (x - 1) / 0.5;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  EXPECT_NEAR(sum / values.size(), 0, 0.01);
  EXPECT_NEAR(squares / values.size(), 1, 0.02);
  EXPECT_NEAR(fourths / values.size(), 3, 0.1);
  initialValues({fb::InitKind::uniform, -2, 3}, 1, 2, 0, values.size(), DType::f64, values.data());
  sum = 0;
  for (double x : values) {
    EXPECT_GE(x, -2);
    EXPECT_LT(x, 3);
    sum += x;
  }
  EXPECT_NEAR(sum / values.size(), 0.5, 0.02);
}

TEST(Initialise, NarrowTypesAreRoundedMasters) {
  std::vector<float> wide(64);
  std::vector<uint16_t> narrow(64);
  initialValues({fb::InitKind::normal, 0, 1}, 9, 4, 0, 64, DType::f32, wide.data());
  initialValues({fb::InitKind::normal, 0, 1}, 9, 4, 0, 64, DType::bf16, narrow.data());
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(narrow[i], f32ToBf16(wide[i]));
}

TEST(Initialise, StoredValuesAreConverted) {
  const double wide[3] = {0.1, -1.0 - 0x1p-9, 3e300};
  auto convert = [&](DType to, void *into, uint64_t first = 0, uint64_t count = 3,
                     bool same = false) {
    storedValues({reinterpret_cast<const std::byte *>(wide), DType::f64, same}, first, count, to,
                 into);
  };
  float narrow[3];
  convert(DType::f32, narrow);
  EXPECT_EQ(narrow[0], 0.1f);
  EXPECT_TRUE(std::isinf(narrow[2]));
  convert(DType::f32, narrow, 1, 1);
  EXPECT_EQ(narrow[0], -1.0f - 0x1p-9f);
  convert(DType::f32, narrow, 7, 3, /*same=*/true);
  EXPECT_EQ(narrow[2], 0.1f);
  uint16_t bits[3];
  convert(DType::bf16, bits);
  EXPECT_EQ(bits[0], 0x3dcd); // rounded to nearest
  EXPECT_EQ(bits[1], 0xbf80); // midpoint, rounded to even
  double back[3];
  convert(DType::f64, back);
  EXPECT_EQ(std::memcmp(back, wide, sizeof wide), 0);
  storedValues({reinterpret_cast<const std::byte *>(bits), DType::bf16, false}, 0, 2, DType::f64,
               back);
  EXPECT_EQ(back[1], -1.0);
}

TEST(DType, Rounding) {
  EXPECT_EQ(f32ToBf16(1.0f), 0x3f80);
  EXPECT_EQ(f32ToBf16(1.00390625f), 0x3f80);     // midpoint, rounded down to even
  EXPECT_EQ(f32ToBf16(1.01171875f), 0x3f82);     // midpoint, rounded up to even
  EXPECT_EQ(f32ToBf16(3.4e38f), 0x7f80);         // overflow to infinity
  EXPECT_NE(f32ToBf16(std::nanf("")) & 0x7f, 0); // NaN remains NaN
  EXPECT_EQ(f32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(f16ToF32(0x3c00), 1.0f);
  EXPECT_EQ(f16ToF32(0x0001), 0x1p-24f);
}
