//===- SaveCallsTest.cpp - Faults at every call of a save -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each system call of a save, a test kills the process at this call. Another test simulates
// that the disk is full from this call on. The tests run both with saves that are complete before
// the next step and with saves that a thread writes while training continues.
//
//===----------------------------------------------------------------------===//

#include "test/run/RunFixture.h"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <regex>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
/// A test with two steps, each followed by a save. The parameter is the name of the artifact.
class SaveCalls : public Run, public testing::WithParamInterface<const char *> {
protected:
  SaveCalls() { useFastFiles(); }
  void SetUp() override {
    Run::SetUp();
    saves = at("saves");
    steps = std::string(GetParam()) + " --steps=2";
    options = " --save-every=1 --keep=1 --save=" + saves;
    expect(0, "saved step 2", steps + options);
    golden = readLatest();
    clear();
    Result result = run(steps + options, preload("", 0));
    ASSERT_EQ(result.code, 0) << result.output;
    std::ifstream log(at("log"));
    for (std::string line; std::getline(log, line);)
      calls.push_back(line);
    clear();
  }
  void clear() { ASSERT_EQ(std::system(("rm -rf " + saves).c_str()), 0); }
  std::string preload(const std::string &how, size_t number) const {
    std::string text = "LD_PRELOAD=" FSDPRT_FAILPOINT " FAIL_IN=" + saves;
    return how.empty() ? text + " FAIL_LOG=" + at("log")
                       : text + " FAIL_HOW=" + how + " FAIL_AT=" + std::to_string(number);
  }
  std::string readLatest() const {
    std::ifstream file(saves + "/latest");
    std::string line;
    std::getline(file, line);
    return line;
  }
  /// Resumes from the last save or, if there is no save, starts a new run, as a user would do.
  void goOn(const std::string &where) {
    bool any = !readLatest().empty();
    Result result = run(steps + " --resume=" + saves + options);
    if (result.code == 2 && !any)
      result = run(steps + options);
    EXPECT_EQ(result.code, 0) << where << "\n" << result.output;
    EXPECT_EQ(readLatest(), golden) << where;
    EXPECT_EQ(
        bash("[ \"$(ls -A " + saves + " | grep -v step-00000001)\" = \"latest\nstep-00000002\" ]"),
        0)
        << where;
  }

  std::string saves, steps, options, golden;
  std::vector<std::string> calls;
};
} // namespace

TEST_P(SaveCalls, AreInTheOrderThatSurvives) {
  // A save must be flushed before it is renamed to its final name. The save must be renamed before
  // the old save is removed.
  std::vector<std::string> words = {"fsync .step-00000002.tmp/index.json",
                                    "fsync .step-00000002.tmp",
                                    "rename step-00000002",
                                    "fsync ",
                                    "write latest.*.tmp",
                                    "fsync latest.*.tmp",
                                    "rename latest",
                                    "fsync ",
                                    "rename .step-00000001.tmp"};
  // The digits of a temporary name are random.
  for (std::string &line : calls)
    line = std::regex_replace(line, std::regex("latest\\.[0-9a-f]{16}\\.tmp"), "latest.*.tmp");
  auto at = calls.begin();
  for (const std::string &word : words) {
    size_t space = word.find(' ');
    std::string call = word.substr(0, space + 1) + saves + (space + 1 == word.size() ? "" : "/") +
                       word.substr(space + 1);
    auto found = std::find_if(at, calls.end(), [&](const std::string &line) {
      return line == call || line == call + "/";
    });
    ASSERT_NE(found, calls.end()) << call;
    at = found + 1;
  }
  for (std::string rank : {"0", "1"}) {
    auto flushed =
        std::find(calls.begin(), calls.end(),
                  "fsync " + saves + "/.step-00000002.tmp/rank-0000" + rank + ".safetensors");
    auto named = std::find(calls.begin(), calls.end(), "rename " + saves + "/step-00000002");
    EXPECT_LT(flushed, named);
  }
}

TEST_P(SaveCalls, MayBeTheLast) {
  ASSERT_GT(calls.size(), 30u);
  for (size_t k = 1; k <= calls.size(); ++k) {
    Result result = run(steps + options, preload("kill", k));
    EXPECT_EQ(result.code, 128 + SIGKILL) << calls[k - 1] << "\n" << result.output;
    goOn("killed before " + calls[k - 1]);
    clear();
  }
}

TEST_P(SaveCalls, MayFindTheDiskFull) {
  for (size_t k = 1; k <= calls.size(); ++k) {
    Result result = run(steps + options, preload("full", k));
    if (result.code == 0) {
      // The save is complete: only removals or the flush of a folder follow the failing call.
      EXPECT_EQ(readLatest(), golden) << calls[k - 1];
    } else {
      EXPECT_EQ(result.code, k == 1 ? 2 : 1) << calls[k - 1] << "\n"
                                             << result.output; // The first call of a save creates
                                                               // the folder.
      EXPECT_NE(result.output.find("No space left"), std::string::npos) << calls[k - 1] << "\n"
                                                                        << result.output;
      EXPECT_NE(result.output.find("error: " + std::string(k == 1 ? "" : "step ")),
                std::string::npos)
          << result.output;
    }
    if (k > 1)
      goOn("disk full from " + calls[k - 1]);
    clear();
  }
}

INSTANTIATE_TEST_SUITE_P(, SaveCalls, testing::Values("toy2.fsdp", "async2.fsdp"),
                         [](const auto &about) {
                           return std::string(about.param, std::strlen(about.param) - 6);
                         });
