//===- RunFixture.h - fsdp-run as a process ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares a fixture that writes artifacts to a temporary folder, and runs fsdp-run and scripts in
// this folder.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_RUN_RUNFIXTURE_H
#define FSDPRT_TEST_RUN_RUNFIXTURE_H

#include "testing/toy/ToyModel.h"
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fsdprt::test {

struct Result {
  int code;
  std::string output;
};

/// A test with a folder that contains toy artifacts for N = 1 to 4 ranks. toyN.fsdp is the plain
/// artifact, and asyncN.fsdp also has memory for asynchronous saves.
class Run : public testing::Test {
protected:
  void SetUp() override {
    folder = root + "/run." + std::to_string(getpid());
    ASSERT_EQ(std::system(("mkdir -p " + folder).c_str()), 0);
    for (int shards : {1, 2, 3, 4})
      for (bool snapshot : {false, true}) {
        ToyOptions options;
        options.shards = shards;
        options.snapshot = snapshot;
        auto file = pack(toyManifest(options));
        writeFile(at((snapshot ? "async" : "toy") + std::to_string(shards) + ".fsdp"), file.data(),
                  file.size());
      }
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf " + folder).c_str()), 0); }

  /// Puts the folder on /dev/shm, where flushing files is fast, if this file system exists. Must be
  /// called before SetUp().
  void useFastFiles() {
    if (access("/dev/shm", W_OK) == 0)
      root = "/dev/shm";
  }

  std::string at(const std::string &name) const { return folder + "/" + name; }

  /// Writes two artifacts for 3 ranks: `other` has another seed, and `damaged` has one flipped bit.
  void writeOtherArtifacts(const std::string &other, const std::string &damaged) {
    ToyOptions options;
    options.shards = 3;
    options.replicas = 1;
    auto manifest = toyManifest(options);
    manifest.seed = 99;
    auto first = pack(manifest), second = pack(toyManifest(options));
    second[second.size() / 2] ^= std::byte{4};
    writeFile(at(other), first.data(), first.size());
    writeFile(at(damaged), second.data(), second.size());
  }

  Result run(const std::string &arguments, const std::string &environment = "") {
    std::string command = "cd " + folder + " && " + environment + " " FSDP_RUN " 2>&1 " + arguments;
    std::FILE *pipe = popen(command.c_str(), "r");
    Result result = {-1, ""};
    char buffer[4096];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      result.output.append(buffer, got);
    int status = pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

  /// Runs a script in the folder for at most ten minutes. Returns the exit code of the script.
  int bash(const std::string &script) {
    writeFile(at("script"), script.data(), script.size());
    return WEXITSTATUS(
        std::system(("cd " + folder + " && timeout --foreground -k 5 600 bash script").c_str()));
  }

  void expect(int code, const std::string &words, const std::string &arguments) {
    Result result = run(arguments);
    EXPECT_EQ(result.code, code) << arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(words), std::string::npos) << arguments << "\n" << result.output;
  }

  std::string text(const std::string &name) {
    auto bytes = readFile(at(name));
    return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }

  std::string root = FSDPRT_SCRATCH, folder;
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_RUN_RUNFIXTURE_H
