//===- ReshardTest.cpp - Resuming from a save of another layout -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the mapping between two layouts of saves, and runs of the toy model that resume on another
// number of ranks. Also tests which files of a large save a rank reads, and that a run refuses
// saves of other models.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "io/Safetensors.h"
#include "test/run/RunFixture.h"
#include "train/Handles.h"
#include "train/SavedRun.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::test;

/// Returns the index of a save with one unit, which is divided into two pieces of 8 elements.
/// Parameter 'a' has 2 x 3 elements and begins at element 0 of the unit. Parameter 'b' has 5
/// elements and begins at element 7, so that it is in both pieces.
static SaveIndex oneUnit() {
  SaveIndex index;
  index.modelSource = "m.mlir";
  index.mesh = {{"shard", 2}};
  index.units = {{"model", "F32", 2, 8, {{"a", "F32", 0, {2, 3}}, {"b", "F32", 7, {5}}}}};
  index.states = {{"model/parameter", "parameter", "F32", 0, 8, {0, 1}},
                  {"model/momentum", "momentum", "F32", 0, 16, {0}}};
  index.files = {{"rank-00000.safetensors", "", 0}, {"rank-00001.safetensors", "", 0}};
  return index;
}

/// Returns the index of a save with two units, each of which has one piece. Parameter 'b' begins at
/// element 0 of unit 'one', and parameter 'a' at element 2 of unit 'two'.
static SaveIndex twoUnits() {
  SaveIndex index;
  index.mesh = {{"shard", 1}};
  index.units = {{"one", "BF16", 1, 8, {{"b", "BF16", 0, {5}}}},
                 {"two", "F32", 1, 8, {{"a", "F32", 2, {2, 3}}}}};
  index.states = {{"one/parameter", "parameter", "BF16", 0, 8, {0}},
                  {"one/master", "master", "F32", 0, 8, {0}},
                  {"one/momentum", "momentum", "BF16", 0, 8, {0}},
                  {"two/parameter", "parameter", "F32", 1, 8, {0}},
                  {"two/momentum", "momentum", "F32", 1, 8, {0}}};
  index.files = {{"rank-00000.safetensors", "", 0}};
  return index;
}

static std::string problemOf(const SaveIndex &saved, const SaveIndex &wanted) {
  try {
    SaveMapping(saved, wanted, "s/step-00000001", "m.fsdp");
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT);
    return error.what();
  }
  return "";
}

static bool has(const std::string &text, const std::string &words) {
  return text.find(words) != std::string::npos;
}

static std::vector<StateRange> rangesOf(const SaveMapping &mapping, const SaveIndex &wanted,
                                        uint64_t state) {
  const SaveIndex::State &of = wanted.states[state];
  std::vector<StateRange> ranges;
  mapping.forRanges(state, 0, of.elements * of.files.size(),
                    [&](const StateRange &range) { ranges.push_back(range); });
  return ranges;
}

TEST(SaveMapping, FindsParametersByName) {
  SaveIndex saved = oneUnit(), wanted = twoUnits();
  SaveMapping mapping(saved, wanted, "s", "m.fsdp");
  EXPECT_FALSE(mapping.isSameLayout());
  struct Expected {
    uint64_t state, begin, end, from, fromBegin;
  };
  for (Expected e : {Expected{0, 0, 5, 0, 7},
                     {1, 0, 5, 0, 7},
                     {2, 0, 5, 1, 7},
                     {3, 2, 8, 0, 0},
                     {4, 2, 8, 1, 0}}) {
    std::vector<StateRange> ranges = rangesOf(mapping, wanted, e.state);
    ASSERT_EQ(ranges.size(), 1u);
    const StateRange &range = ranges[0];
    EXPECT_EQ(range.begin, e.begin) << e.state;
    EXPECT_EQ(range.end, e.end) << e.state;
    EXPECT_EQ(range.from, e.from) << e.state;
    EXPECT_EQ(range.fromBegin, e.fromBegin) << e.state;
  }
  // 'b' begins in the last element of piece 0 and continues in piece 1. Padding needs no file.
  EXPECT_EQ(mapping.filesOf(saved, 0, 0, 8), (std::set<uint64_t>{0, 1}));
  EXPECT_EQ(mapping.filesOf(saved, 0, 0, 1), (std::set<uint64_t>{0}));
  EXPECT_EQ(mapping.filesOf(saved, 0, 1, 8), (std::set<uint64_t>{1}));
  EXPECT_EQ(mapping.filesOf(saved, 0, 5, 8), std::set<uint64_t>{});
  EXPECT_EQ(mapping.filesOf(saved, 4, 0, 8), (std::set<uint64_t>{0}));
  // The conversion of the parameter of unit 'one' is not reported, because each step computes this
  // parameter by rounding its master.
  EXPECT_EQ(mapping.conversions(), "momentum rounded from F32 to BF16");
}

/// Parameter 'a' of shape 2 x 4 consists of two blocks of columns. In the save, it is split over
/// two ranks, which have columns 0, 2 and 1, 3. Here it is whole, or also split but at another
/// offset.
TEST(SaveMapping, MovesSlices) {
  SaveIndex saved, whole;
  saved.mesh = {{"tensor", 2}};
  saved.units = {{"model.tensor", "F32", 1, 5, {{"a", "F32", 1, {2, 4}, 1, {2, 2}}}, 2}};
  saved.states = {{"model.tensor/parameter", "parameter", "F32", 0, 5, {0, 1}}};
  whole.mesh = {{"shard", 2}};
  whole.units = {{"model", "F32", 2, 5, {{"a", "F32", 2, {2, 4}}}}};
  whole.states = {{"model/parameter", "parameter", "F32", 0, 5, {0, 1}}};
  saved.files =
      whole.files = {{"rank-00000.safetensors", "", 0}, {"rank-00001.safetensors", "", 0}};
  EXPECT_EQ(saved.versionOf(), 2u);
  EXPECT_EQ(whole.versionOf(), 1u);
  EXPECT_TRUE(readIndex("index.json", writeIndex(saved)).hasLayoutOf(saved));
  EXPECT_FALSE(saved.hasLayoutOf(whole));
  auto places = [](const SaveMapping &mapping, uint64_t begin, uint64_t end) {
    std::vector<std::vector<uint64_t>> all; // first element here, in the save, in 'a', and number
    mapping.forRanges(0, begin, end, [&](const StateRange &range) {
      all.push_back({range.begin, range.fromBegin, range.index, range.end - range.begin});
    });
    return all;
  };
  using Places = std::vector<std::vector<uint64_t>>;
  SaveMapping gather(saved, whole, "s", "m.fsdp");
  EXPECT_EQ(places(gather, 0, 5), (Places{{2, 1, 0, 1}, {3, 6, 1, 1}, {4, 2, 2, 1}}));
  EXPECT_EQ(places(gather, 5, 10),
            (Places{{5, 7, 3, 1}, {6, 3, 4, 1}, {7, 8, 5, 1}, {8, 4, 6, 1}, {9, 9, 7, 1}}));
  EXPECT_EQ(gather.filesOf(saved, 0, 2, 3), (std::set<uint64_t>{0}));
  SaveMapping scatter(whole, saved, "s", "m.fsdp");
  EXPECT_EQ(places(scatter, 5, 10),
            (Places{{6, 3, 1, 1}, {7, 5, 3, 1}, {8, 7, 5, 1}, {9, 9, 7, 1}}));
  // Slices of the same ranks have one range, although the rows of a slice are not consecutive.
  SaveIndex moved = saved;
  moved.units[0].params[0].offset = 0;
  EXPECT_EQ(places(SaveMapping(saved, moved, "s", "m.fsdp"), 5, 10), (Places{{5, 6, 1, 4}}));
}

TEST(SaveMapping, PrefersTheRoleThenTheMaster) {
  SaveIndex saved = twoUnits(), wanted = oneUnit();
  SaveMapping mapping(saved, wanted, "s", "m.fsdp");
  ASSERT_EQ(rangesOf(mapping, wanted, 0).size(), 2u); // 'a', then 'b'
  EXPECT_EQ(rangesOf(mapping, wanted, 0)[0].from, 3u);
  EXPECT_EQ(rangesOf(mapping, wanted, 0)[1].from, 1u); // read from the master, not the bf16 value
  EXPECT_EQ(rangesOf(mapping, wanted, 1)[1].from, 2u);
  EXPECT_EQ(mapping.conversions(), "momentum widened from BF16 to F32");
  wanted.units[0].dtype = wanted.units[0].params[1].dtype = wanted.states[0].dtype = "BF16";
  EXPECT_EQ(rangesOf(SaveMapping(saved, wanted, "s", "m.fsdp"), wanted, 0)[1].from, 0u);
  wanted.states[0].dtype = "F16";
  mapping = SaveMapping(saved, wanted, "s", "m.fsdp");
  EXPECT_EQ(rangesOf(mapping, wanted, 0)[1].from, 1u);
  EXPECT_EQ(mapping.conversions(),
            "momentum widened from BF16 to F32; parameter rounded from F32 to F16");
}

TEST(SaveMapping, TakesEqualLayoutsWhole) {
  SaveIndex saved = oneUnit(), wanted = oneUnit();
  SaveMapping mapping(saved, wanted, "s", "m.fsdp");
  EXPECT_TRUE(mapping.isSameLayout());
  EXPECT_EQ(rangesOf(mapping, wanted, 0)[0].end, 16u);
  EXPECT_EQ(mapping.filesOf(saved, 0, 8, 16), (std::set<uint64_t>{1}));
  EXPECT_EQ(mapping.conversions(), "");
  wanted.mesh[0].size = 1;
  EXPECT_FALSE(SaveMapping(saved, wanted, "s", "m.fsdp").isSameLayout());
}

TEST(SaveMapping, RefusesOtherModels) {
  SaveIndex wanted = twoUnits();
  wanted.units[0].params[0].shape = {5, 1};
  wanted.units[1].params[0].name = "c";
  std::string problem = problemOf(oneUnit(), wanted);
  EXPECT_EQ(problem,
            "s/step-00000001: not a save of the model and optimizer in m.fsdp:\n"
            "  'b': expected shape 5x1, found 5\n"
            "  missing from the save: 'c' (2x3)\n"
            "  not a parameter of m.fsdp: 'a' (2x3)\n"
            "note: resume with an artifact of the model that was saved, from 'm.mlir', or load an "
            "--export of that run with --init");
  wanted = twoUnits();
  wanted.states[4].role = "first_moment";
  problem = problemOf(oneUnit(), wanted);
  EXPECT_TRUE(has(problem, "\n  m.fsdp keeps no momentum: 'a'\n")) << problem;
  EXPECT_TRUE(has(problem, "\n  the save has no first_moment: 'a'\n")) << problem;
  SaveIndex saved = oneUnit();
  saved.units[0].params[1].dtype = "I32";
  EXPECT_TRUE(has(problemOf(saved, twoUnits()), "'b': expected a float dtype, found I32"));
  saved = oneUnit();
  saved.states[0].dtype = "I32";
  problem = problemOf(saved, twoUnits());
  EXPECT_TRUE(has(problem, "expected parameter of BF16, found I32: 'b'\n")) << problem;
  EXPECT_TRUE(has(problem, "expected parameter of F32, found I32: 'a'\n")) << problem;
  wanted = twoUnits();
  for (int i = 0; i < 20; ++i)
    wanted.units[0].params.push_back({"p" + std::to_string(i), "BF16", 0, {1}});
  EXPECT_TRUE(has(problemOf(oneUnit(), wanted), "\n  and 10 more\nnote: "));
}

TEST(SaveMapping, RefusesContradictoryIndexes) {
  auto refuses = [](const std::string &words, auto change) {
    SaveIndex saved = oneUnit();
    change(saved);
    std::string problem = problemOf(saved, twoUnits());
    EXPECT_TRUE(has(problem, "s/step-00000001/index.json: " + words)) << words << "\n" << problem;
  };
  const std::string state = "state 'model/parameter': expected a unit and files of the index";
  refuses(state, [](SaveIndex &index) { index.states[0].unit = 1; });
  refuses(state, [](SaveIndex &index) { index.states[0].files[1] = 2; });
  refuses(state, [](SaveIndex &index) { index.states[0].dtype = "F31"; });
  refuses("state 'model/momentum': expected a unit",
          [](SaveIndex &index) { index.states[1].role = "parameter"; });
  refuses("parameter 'b' is not in the 16 elements of its unit",
          [](SaveIndex &index) { index.units[0].params[1].offset = 12; });
  refuses("parameter 'b' is not in the 16 elements",
          [](SaveIndex &index) { index.units[0].params[1].offset = UINT64_MAX; });
  refuses("parameter 'a' is not in the 16 elements", [](SaveIndex &index) {
    index.units[0].params[0].shape = {uint64_t(1) << 32, uint64_t(1) << 32};
  });
  refuses("parameter 'b' is not in the 8 elements",
          [](SaveIndex &index) { index.states[1].elements = 8; });
  refuses("parameter 'a' is not in the 0 elements",
          [](SaveIndex &index) { index.states[0].files.clear(); });
  refuses("parameter 'a' is listed twice",
          [](SaveIndex &index) { index.units[0].params.push_back({"a", "F32", 0, {2, 3}}); });
  refuses(state, [](SaveIndex &index) { index.units[0].slices = 0; });
  refuses("state 'model/momentum': expected a unit",
          [](SaveIndex &index) { index.units[0].slices = 2; });
  refuses("parameter 'a': expected the split of one of 2 dimensions over an axis 'tensor', found "
          "dimension 1 and 1 ranks",
          [](SaveIndex &index) {
            index.units[0].params[0].splitDim = 1;
            index.units[0].params[0].blocks = {3};
          });
  refuses("expected sizes whose product fits 64 bits",
          [](SaveIndex &index) { index.states[0].elements = UINT64_MAX; });
}

namespace {
class Reshard : public Run {
protected:
  Reshard() {
    // Flushing files is fast in /dev/shm.
    if (access("/dev/shm", W_OK) == 0)
      root = "/dev/shm";
  }
  void SetUp() override {
    Run::SetUp();
    ToyOptions options;
    options.replicas = options.shards = 2;
    add("toy2x2.fsdp", toyManifest(options));
  }
  void add(const std::string &name, const fb::ManifestT &manifest) {
    auto file = pack(manifest);
    writeFile(at(name), file.data(), file.size());
  }

  std::string blocksOf(const std::string &save) {
    std::string blocks;
    for (uint64_t rank = 0; access((at(save) + "/" + rankFileName(rank)).c_str(), R_OK) == 0;
         ++rank) {
      SafetensorsFile file(at(save) + "/" + rankFileName(rank));
      std::string block(FSDPRT_BLOCK_SIZE * sizeof(float), '\0');
      file.read(file.getTensors().at(saveBlockName), 0, block.data(), block.size());
      blocks += block;
    }
    return blocks;
  }

  /// Returns the bytes of the states of a save. The key names the parameter and the role.
  std::map<std::string, std::string> statesOf(const std::string &save) {
    std::string path = at(save) + "/index.json";
    SaveIndex index = readIndex(path, InputFile(path, "the index").readAll(SIZE_MAX));
    std::map<std::string, std::string> states;
    for (const SaveIndex::State &state : index.states) {
      std::string flat;
      for (uint64_t number : state.files) {
        SafetensorsFile file(at(save) + "/" + index.files[number].name);
        const Tensor &tensor = file.getTensors().at(state.tensor);
        std::string piece(tensor.end - tensor.begin, '\0');
        file.read(tensor, 0, piece.data(), piece.size());
        flat += piece;
      }
      for (const SaveIndex::Param &param : index.units[state.unit].params) {
        uint64_t elements = 1;
        for (uint64_t size : param.shape)
          elements *= size;
        uint64_t width = safetensorsSize(state.dtype);
        states[param.name + " " + state.role] = flat.substr(param.offset * width, elements * width);
      }
    }
    return states;
  }
};
} // namespace

/// If a run resumes from a save and has no step left to run, --save writes the states of this save
/// in the layout of the run's artifact.
TEST_F(Reshard, KeepsEveryElement) {
  expect(0, "saved step 5", "toy4.fsdp --steps=5 --save=s --lr=0.2 --seed=3");
  auto states = statesOf("s/step-00000005");
  ASSERT_EQ(states.size(), 4u);
  for (std::string other : {"toy1", "toy2", "toy3", "toy2x2"}) {
    std::string note = "note: the save is of another artifact, for mesh replicate=1,shard=4: "
                       "states are equal element for element; a step has ";
    bool sameBatch = other == "toy2x2";
    if (sameBatch)
      note = "states are equal element for element; sums over ranks are in another order, so the "
             "last digits of losses differ";
    expect(0, note, other + ".fsdp --steps=5 --resume=s --save=" + other);
    EXPECT_TRUE(statesOf(other + "/step-00000005") == states) << other;
    // The toy artifact also saves padding, but a resumed run does not load this padding.
    expect(0, "saved step 5",
           "toy4.fsdp --steps=5 --resume=" + other + " --save=back-" + other + " --processes");
    EXPECT_TRUE(statesOf("back-" + other + "/step-00000005") == states) << other;
    EXPECT_TRUE(blocksOf("back-" + other + "/step-00000005") == blocksOf("s/step-00000005"));
  }
}

TEST_F(Reshard, GoesOn) {
  expect(0, "saved step 5", "toy4.fsdp --steps=5 --save=s --seed=3");
  for (std::string other : {"toy1", "toy3", "toy2x2"}) {
    std::string resume = other + ".fsdp --steps=9 --resume=s --export=" + other;
    // The unsharded reference adds in another order than 2 x 2 ranks do, so that the results
    // differ.
    expect(0, other == "toy2x2" ? "resumed" : "check against unsharded passed",
           resume + ".a" + (other == "toy2x2" ? "" : " --check-against=unsharded"));
    expect(0, "resumed after step 5", resume + ".b --processes --save=" + other);
    EXPECT_TRUE(text(other + ".a") == text(other + ".b")) << other;
    expect(0, "resumed after step 9", other + ".fsdp --steps=10 --resume=" + other);
  }
}

TEST_F(Reshard, SavesBesideTheResumedSave) {
  expect(0, "saved step 2", "toy2.fsdp --steps=2 --save=s");
  // The folder already has a save of step 2, so that no further save is written.
  Result result = run("toy3.fsdp --steps=2 --resume=s --save=s");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_FALSE(has(result.output, "saved step")) << result.output;
  expect(0, "saved step 3", "toy3.fsdp --steps=3 --resume=s --save=s");
  expect(0, "saved step 4", "toy2.fsdp --steps=4 --resume=s --save=s");
}

TEST_F(Reshard, SaysWhatDiffers) {
  expect(0, "saved step 2", "toy2.fsdp --steps=2 --save=s");
  expect(0, "a step has 6 samples of 'ids', in the saved run 4, so steps differ",
         "toy3.fsdp --steps=3 --resume=s");
  ToyOptions options;
  options.workers = 3;
  add("other.fsdp", toyManifest(options));
  expect(0,
         "note: the save is of another artifact: states are equal element for element; losses "
         "have equal bits if both artifacts compute in equal types and order",
         "other.fsdp --steps=3 --resume=s");
  EXPECT_FALSE(has(run("toy2.fsdp --steps=3 --resume=s").output, "another artifact"));
}

TEST_F(Reshard, RefusesOtherModels) {
  expect(0, "saved step 2", "toy2.fsdp --steps=2 --save=s");
  ToyOptions options;
  auto manifest = toyManifest(options);
  manifest.params[0]->shape = {7, 13};
  add("shape.fsdp", manifest);
  expect(2, "\n  'w': expected shape 7x13, found 13x7\nnote: resume with an artifact of the model",
         "shape.fsdp --resume=s");
  manifest = toyManifest(options);
  manifest.params[1]->name = "c";
  add("name.fsdp", manifest);
  expect(2, "\n  missing from the save: 'c' (11)\n  not a parameter of name.fsdp: 'b' (11)\n",
         "name.fsdp --resume=s");
  // With several processes, the run reports the problem in one line.
  expect(2, "not a parameter of name.fsdp: 'b' (11)", "name.fsdp --resume=s --processes");
}

/// If a save is larger than `limit`, a process with one rank opens only the files that contain
/// elements of this rank.
TEST_F(Reshard, ReadsOnlyTheFilesItNeeds) {
  expect(0, "saved step 2", "toy4.fsdp --steps=2 --save=s");
  ASSERT_EQ(bash("rm s/step-00000002/rank-00003.safetensors"), 0);
  fsdprt_artifact *opened = nullptr;
  call(fsdprt_artifact_open, at("toy2.fsdp").c_str(), &opened);
  ArtifactHandle artifact(opened);
  auto problem = [&](uint64_t limit, std::optional<uint32_t> rank) -> std::string {
    try {
      SavedRun save(limit);
      save.open(at("s/step-00000002"), "toy2.fsdp", artifact.get(), rank);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  const std::string lost = "rank-00003.safetensors: cannot open a file of the save";
  EXPECT_EQ(problem(0, 0), "");
  EXPECT_TRUE(has(problem(0, 1), lost)) << problem(0, 1);
  EXPECT_TRUE(has(problem(SavedRun::wholeLimit, 0), lost));
  EXPECT_TRUE(has(problem(0, std::nullopt), lost));
}
