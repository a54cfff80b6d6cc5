//===- SaveTest.cpp - Saving and resuming -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the index of a save, and how runs treat damaged saves. Compares a run of 10 steps with a
// run of 5 steps that is resumed for 5 more steps.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "io/Safetensors.h"
#include "test/run/RunFixture.h"
#include "train/SaveFolder.h"
#include "train/SaveIndex.h"
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::test;

static SaveIndex someIndex() {
  SaveIndex index;
  index.artifactHash = std::string(64, 'a');
  index.modelSource = "m\xff\"odel.mlir"; // not valid UTF-8
  index.run.step = 7;
  index.run.seed = UINT64_MAX;
  index.run.rate = {0.1, 1e-300, 3, 9};
  index.run.dataHash = std::string(64, 'b');
  index.run.dataType = "uint16";
  index.block[FSDPRT_BLOCK_LOSS] = NAN;
  index.block[FSDPRT_BLOCK_GRAD_NORM] = INFINITY;
  index.block[FSDPRT_BLOCK_LR] = 0.1f;
  index.mesh = {{"shard", 2}};
  index.units = {{"root", "F32", 2, 64, {{"w", "F32", 0, {13, 7}}, {"scalar", "F32", 91, {}}}}};
  index.states = {{"root/parameter", "parameter", "F32", 0, 64, {0, 1}}};
  index.files = {{"rank-00000.safetensors", std::string(64, 'c'), 400},
                 {"rank-00001.safetensors", "", 0}};
  return index;
}

static std::string refusal(const std::string &text) {
  try {
    readIndex("index.json", text);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT);
    return error.what();
  }
  return "";
}

TEST(SaveIndex, ComesBackAsItWas) {
  SaveIndex index = someIndex();
  std::string text = writeIndex(index);
  SaveIndex back = readIndex("index.json", text);
  EXPECT_EQ(back.sha256, index.sha256);
  EXPECT_EQ(back.run.seed, UINT64_MAX);
  EXPECT_EQ(back.run.rate.lr, 0.1);
  EXPECT_EQ(back.run.rate.minimum, 1e-300);
  EXPECT_TRUE(std::isnan(back.block[FSDPRT_BLOCK_LOSS]));
  EXPECT_EQ(back.block[FSDPRT_BLOCK_GRAD_NORM], INFINITY);
  EXPECT_EQ(back.block[FSDPRT_BLOCK_LR], 0.1f);
  EXPECT_EQ(back.meshText(), "shard=2");
  EXPECT_TRUE(back.hasLayoutOf(index));
  back.units[0].params[0].shape[0] = 14;
  EXPECT_FALSE(back.hasLayoutOf(index));
}

TEST(SaveIndex, IsRefusedWhenNestedTooDeep) {
  // Recursive code that copies, compares or prints so deeply nested JSON values would overflow the
  // stack.
  size_t levels = 200000;
  std::string deep = std::string(levels, '[') + std::string(levels, ']');
  for (std::string text : {"{\"version\":" + deep + "}", "{\"format\":" + deep + "}", deep})
    EXPECT_NE(refusal(text).find("nested more than 64 deep"), std::string::npos);
  // Brackets inside strings do not count as nesting.
  EXPECT_EQ(refusal("{\"a\": \"" + deep + "\"}").find("nested"), std::string::npos);
}

TEST(SaveIndex, IsRefusedWhenDamaged) {
  SaveIndex index = someIndex();
  std::string text = writeIndex(index);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(refusal(text.substr(0, size)), "") << "cut at " << size;
  for (size_t i = 0; i < text.size() * 8; ++i) {
    std::string damaged = text;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
    EXPECT_NE(refusal(damaged), "") << "bit " << i;
  }
  EXPECT_NE(refusal(text + "\n"), "");
  std::string later = text;
  later.replace(later.find("\"version\": 1"), 12, "\"version\": 3");
  EXPECT_NE(refusal(later).find("expected version 1 or 2 of the format, found the number 3"),
            std::string::npos)
      << refusal(later);
}

/// Each case creates an index with a correct hash but malformed contents.
TEST(SaveIndex, IsRefusedWhenMalformed) {
  SaveIndex index = someIndex();
  const std::string text = writeIndex(index);
  for (auto [from, to] :
       {std::pair("\"step\": 7", "\"step\": -7"), std::pair("\"step\": 7", "\"step\": \"7\""),
        std::pair("\"units\"", "\"onits\""), std::pair("\"size\":2", "\"size\":2.5"),
        std::pair("\"files\":[0,1]", "\"files\":{}"), std::pair("\"lr\":0.1", "\"lr\":null"),
        std::pair("\"overfit\":false", "\"overfit\":0"), std::pair("[13,7]", "[13,-7]"),
        std::pair("\"nan\"", "\"big\"")}) {
    std::string odd = text;
    ASSERT_NE(odd.find(from), std::string::npos) << from;
    odd.replace(odd.find(from), std::strlen(from), to);
    size_t at = odd.size() - 68;
    odd.replace(at, 64, std::string(64, '0'));
    odd.replace(at, 64, sha256Text(odd.data(), odd.size()));
    EXPECT_NE(refusal(odd).find("index.json: line "), std::string::npos) << to << refusal(odd);
  }
}

namespace {
class Save : public Run {
protected:
  Save() { useFastFiles(); }
  void expectSame(const std::string &a, const std::string &b) {
    EXPECT_TRUE(text(a) == text(b)) << a << " " << b;
  }
  std::string numbers(const std::string &file) {
    std::string lines = text(file), result;
    for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1)
      result += lines.substr(at, lines.find("\"tokens_per", at) - at) + "\n";
    return result;
  }
  void write(const std::string &name, const std::string &content) {
    writeFile(at(name), content.data(), content.size());
  }
};
} // namespace

TEST_F(Save, GoesOnBitForBit) {
  std::string book;
  for (int i = 0; i < 200; ++i)
    book += "line " + std::to_string(i * i) + "\n";
  write("book.txt", book);
  for (std::string ranks : {"1", "2", "3", "4"}) {
    std::string base =
        "toy" + ranks +
        ".fsdp --text=book.txt --val-every=3 --lr=0.2 --warmup=4 --seed=5 --assert-no-allocations";
    expect(0, "10 steps in",
           base +
               " --steps=10 --lr-decay-steps=9 --min-lr=0.01 --metrics=a --export=a.st --save=a" +
               ranks);
    expect(0, "saved step 5: b" + ranks + "/step-00000005",
           base + " --steps=5 --lr-decay-steps=9 --min-lr=0.01 --metrics=b --save=b" + ranks);
    // The command line of the resumed run lacks options of the first run. The run reads these
    // options from the save.
    expect(0, "resumed after step 5 of b" + ranks + "/step-00000005",
           "toy" + ranks +
               ".fsdp --text=book.txt --val-every=3 --steps=10 --metrics=b --export=b.st "
               "--threads-per-rank=2 --resume=b" +
               ranks + " --save=b" + ranks + " --check-against=unsharded");
    EXPECT_EQ(numbers("a"), numbers("b"));
    expectSame("a.st", "b.st");
    // 'latest' contains a hash of the index, and the index contains the hashes of all files of the
    // save.
    expectSame("a" + ranks + "/latest", "b" + ranks + "/latest");
    expectSame("a" + ranks + "/step-00000010/index.json",
               "b" + ranks + "/step-00000010/index.json");
    expect(0, "all steps of --steps=10 are done",
           "toy" + ranks + ".fsdp --text=book.txt --steps=10 --resume=b" + ranks);
  }
}

TEST_F(Save, KeepsWholeStatesOnce) {
  ToyOptions options;
  options.replicas = 2;
  auto file = pack(toyManifest(options));
  writeFile(at("hsdp.fsdp"), file.data(), file.size());
  expect(0, "saved step 2", "hsdp.fsdp --steps=2 --save=s");
  expect(0, "4 steps in", "hsdp.fsdp --steps=4 --save=t");
  for (int rank = 0; rank < 4; ++rank) {
    SafetensorsFile saved(at("s/step-00000002/" + rankFileName(rank)));
    EXPECT_EQ(saved.getTensors().size(), rank < 2 ? 3u : 1u)
        << rank; // Ranks of the second replica save only their step blocks.
  }
  expect(0, "resumed", "hsdp.fsdp --steps=4 --save=s --resume=s");
  expectSame("s/latest", "t/latest");
}

TEST_F(Save, KeepsTheNewest) {
  expect(0, "saved step 9", "toy2.fsdp --steps=9 --save=s --save-every=2 --keep=2");
  EXPECT_EQ(bash("[ \"$(ls -A s)\" = \"latest\nstep-00000008\nstep-00000009\" ]"), 0);
  expect(0, "saved step 12", "toy2.fsdp --steps=12 --save=s/ --resume=s/ --keep=1");
  EXPECT_EQ(bash("[ \"$(ls -A s)\" = \"latest\nstep-00000012\" ]"), 0);
}

TEST_F(Save, RefusesOtherRuns) {
  expect(0, "saved step 2", "toy2.fsdp --steps=2 --save=s --save-every=1");
  expect(2,
         "s: has saves of another run; resume from the last one with --resume=s, or save to "
         "another folder",
         "toy2.fsdp --steps=4 --save=s");
  expect(2,
         "s: its last save is s/step-00000002, but the run resumes from s/step-00000001; save "
         "to another folder",
         "toy2.fsdp --steps=4 --save=s --resume=s/step-00000001");
  expect(0, "saved step 4", "toy2.fsdp --steps=4 --save=t --resume=s/step-00000001");
  expect(2, "--steps: expected at least the 2 steps that s/step-00000002 has completed, found 1",
         "toy2.fsdp --resume=s --steps=1");
  expect(2, "--seed: s/step-00000002 has seed 0, found 3", "toy2.fsdp --resume=s --seed=3");
  expect(2, "--overfit: the run of s/step-00000002 used new samples",
         "toy2.fsdp --resume=s --overfit");
  expect(0, "resumed", "toy2.fsdp --resume=s --overfit --other-data --steps=3");
  expect(0,
         "note: the learning rate differs from the save's: expected 0.1, minimum 0, warm-up 0, "
         "decay to "
         "step 0; found 0.05,",
         "toy2.fsdp --resume=s --steps=3 --lr=0.05");
  write("a.txt", std::string(300, 'a'));
  write("b.txt", std::string(300, 'b'));
  expect(2, "s/step-00000002: its run trained on random ids; omit --text and --data",
         "toy2.fsdp --resume=s --text=a.txt");
  expect(0, "saved step 1", "toy2.fsdp --text=a.txt --steps=1 --save=u");
  expect(2, "u/step-00000001: its run trained on a file of tokens", "toy2.fsdp --resume=u");
  expect(2, "b.txt: not the tokens of u/step-00000001: expected 300 of type uint8 with SHA-256",
         "toy2.fsdp --resume=u --text=b.txt");
  expect(2, "--val-fraction: the run of u/step-00000001 trained on the first 270 tokens, found 150",
         "toy2.fsdp --resume=u --text=a.txt --val-fraction=0.5");
  expect(0, "resumed", "toy2.fsdp --resume=u --text=b.txt --other-data --steps=2");
}

TEST_F(Save, RefusesBadUsage) {
  expect(2, "--save-every requires --save", "toy2.fsdp --save-every=2");
  expect(2, "--keep requires --save", "toy2.fsdp --keep=2");
  expect(2, "--other-data requires --resume", "toy2.fsdp --other-data");
  expect(2, "--init excludes --resume", "toy2.fsdp --resume=s --init=w");
  expect(2, "cannot be combined with --save", "toy2.fsdp --only-kinds=row --save=s");
  expect(2, "no: expected a folder of saves, or a save: No such file", "toy2.fsdp --resume=no");
  expect(2, "toy2.fsdp: expected a folder of saves, or a save: not a folder",
         "toy2.fsdp --resume=toy2.fsdp");
  ASSERT_EQ(bash("mkdir empty"), 0);
  expect(2, "empty: has no save", "toy2.fsdp --resume=empty");
  expect(2, "toy2.fsdp: cannot write to the folder: Not a directory", "toy2.fsdp --save=toy2.fsdp");
  expect(2, "no/such/s: cannot create the folder for saves: No such file",
         "toy2.fsdp --save=no/such/s");
  expect(2, "compiled for 2 ranks", "toy2.fsdp --ranks=3 --save=new"); // does not create `new`
  EXPECT_EQ(bash("[ ! -e new ]"), 0);
  write("m", "not metrics\n");
  expect(0, "saved step 1", "toy2.fsdp --steps=1 --save=s");
  expect(2, "m: expected lines of metrics to append to, found other content at byte 0",
         "toy2.fsdp --steps=2 --resume=s --metrics=m");
  // Only one process may save to a folder at a time.
  EXPECT_EQ(bash("exec 9<s && flock -n 9 && " FSDP_RUN
                 " toy2.fsdp --steps=2 --save=s --resume=s 2>err; [ $? = 2 ]"),
            0);
  EXPECT_NE(text("err").find("s: another process saves to this folder"), std::string::npos)
      << text("err");
}

/// If --resume names a folder of saves, a run prints a warning about damaged saves and uses the
/// newest undamaged save. If --resume names a damaged save, the run fails.
TEST_F(Save, LeavesDamageOut) {
  expect(0, "saved step 4", "toy2.fsdp --steps=4 --save=s --save-every=2");
  const std::string folder = "s/step-00000004/", resume = "toy2.fsdp --steps=5 --resume=s";
  auto fallsBack = [&](const std::string &words, int step) {
    expect(0, "warning: " + words, resume);
    expect(0,
           "; resuming from s/step-0000000" + std::to_string(step) + ", the newest undamaged save",
           resume);
    expect(0, "resumed after step " + std::to_string(step), resume);
  };
  auto damaged = [&](const std::string &name, const std::string &words, auto change, int step = 2) {
    std::string whole = text(name), broken = whole;
    change(broken);
    write(name, broken);
    fallsBack(words, step);
    for (const std::string &told : {words, std::string("; other saves: s/step-00000002")})
      if (name.rfind(folder, 0) == 0)
        expect(2, told, "toy2.fsdp --steps=5 --resume=s/step-00000004");
    write(name, whole);
  };
  for (std::string name : {"rank-00000.safetensors", "rank-00001.safetensors"}) {
    size_t size = text(folder + name).size();
    damaged(folder + name,
            folder + name + ": expected " + std::to_string(size) + " bytes, found " +
                std::to_string(size - 1) + "; it is cut short or was replaced",
            [](std::string &text) { text.pop_back(); });
    for (size_t at : {size_t(0), size_t(9), size / 2, size - 1})
      damaged(folder + name, folder + name + ": expected SHA-256 ",
              [&](std::string &text) { text[at] ^= 4; });
    ASSERT_EQ(std::rename(this->at(folder + name).c_str(), this->at("away").c_str()), 0);
    fallsBack(folder + name + ": cannot open a file of the save: No such file", 2);
    ASSERT_EQ(std::rename(this->at("away").c_str(), this->at(folder + name).c_str()), 0);
  }
  damaged(folder + "index.json",
          folder + "index.json: its content does not match the SHA-256 at its end; it is damaged",
          [](std::string &text) { text[text.find("\"seed\":0") + 7] = '1'; });
  damaged(folder + "index.json",
          folder + "index.json: expected the JSON object of a save; it is cut short or damaged",
          [](std::string &text) { text.resize(200); });
  damaged(
      "s/latest", "s/latest: expected the name of a save",
      [](std::string &text) { text.resize(20); }, 4);
  const std::string nothing = "s/latest: expected the name of a save and the SHA-256 of its index, "
                              "as 64 digits and a newline, found ";
  damaged(
      "s/latest", nothing + "nothing; choose a save, such as s/step-00000004",
      [](std::string &text) { text.clear(); }, 4);
  damaged(
      "s/latest",
      nothing + "'no ?"
                "?'; choose a save, such as s/step-00000004",
      [](std::string &text) { text = "no \x01\xff"; }, 4);
  damaged("s/latest", "s/step-00000004: 'latest' in the same folder expects SHA-256 ",
          [](std::string &text) { text[20] = text[20] == 'a' ? 'b' : 'a'; });
  damaged(
      "s/latest", "s/step-00000002: 'latest' in the same folder expects SHA-256 ",
      [](std::string &text) { text[12] = '2'; }, 4);
  damaged(
      "s/latest", "s/step-00000009/index.json: cannot open the index of the save: No such file",
      [](std::string &text) { text[12] = '9'; }, 4);
  ASSERT_EQ(bash("mv s/latest away && mkfifo s/latest"), 0); // No process writes to the pipe.
  fallsBack("s/latest: expected the name of a save, found something that is not a file", 4);
  expect(2, "s/latest: expected the name of a save, found", "toy2.fsdp --steps=5 --save=s");
  ASSERT_EQ(bash("mv away s/latest"), 0);
  ASSERT_EQ(bash("mkdir t && cp -r s/step-00000002 s/step-00000004 t"),
            0); // Without 'latest', the newest save is used.
  expect(0, "resumed after step 4 of t/step-00000004", "toy2.fsdp --steps=5 --resume=t");
  ASSERT_EQ(bash("cp s/step-00000002/rank-00000.safetensors " + folder), 0); // of another step
  fallsBack(folder + "rank-00000.safetensors: expected SHA-256", 2);
  ASSERT_EQ(bash("for s in s/step-*; do echo >$s/index.json; done"), 0);
  expect(2, "s: all of its 2 saves are damaged: s/step-00000004/index.json: ", resume);
}

TEST_F(Save, FullDisk) {
  expect(0, "saved step 1", "toy2.fsdp --steps=1 --save=s");
  // The files of the second save are larger than the limit on file sizes.
  EXPECT_EQ(bash("ulimit -f 1; " FSDP_RUN
                 " toy2.fsdp --steps=3 --save=s --resume=s >log 2>&1; [ $? = 1 ]"),
            0)
      << text("log");
  EXPECT_NE(text("log").find("step 3 could not be saved: s/.step-00000003.tmp/index.json: cannot "
                             "write: File too large"),
            std::string::npos)
      << text("log");
  EXPECT_NE(text("log").find("earlier saves are untouched"), std::string::npos) << text("log");
  EXPECT_EQ(bash("[ \"$(ls -A s)\" = \"latest\nstep-00000001\" ]"), 0);
  expect(0, "saved step 3", "toy2.fsdp --steps=3 --save=s --resume=s");
}

TEST_F(Save, FlushesTheParentOfANewFolder) {
  // If a run did not flush the parent folder, a power failure could remove the folder of saves.
  ASSERT_EQ(bash("mkdir outer"), 0);
  std::string outer = at("outer");
  Result result =
      run("toy2.fsdp --steps=1 --save=" + outer + "/saves",
          "LD_PRELOAD=" FSDPRT_FAILPOINT " FAIL_IN=" + outer + " FAIL_LOG=" + at("log"));
  ASSERT_EQ(result.code, 0) << result.output;
  std::string calls = text("log");
  size_t flushed = calls.find("fsync " + outer + "\n");
  ASSERT_NE(flushed, std::string::npos) << calls;
  EXPECT_LT(flushed, calls.find("rename " + outer)) << calls;
}
