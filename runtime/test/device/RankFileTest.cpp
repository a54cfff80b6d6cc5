//===- RankFileTest.cpp - Offload files of ranks ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares a file with a copy in memory after reads and writes at every alignment. Also tests that
// the files have no name, and that a full disk causes an error. Some tests limit the size of files,
// so that a write is incomplete, or truncate the open file, so that a read is incomplete.
//
//===----------------------------------------------------------------------===//

#include "device/RankFile.h"
#include "core/Error.h"
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace fsdprt;

namespace {
constexpr uint64_t block = 4096, mebibyte = uint64_t(1) << 20;

class RankFiles : public testing::Test {
protected:
  void SetUp() override {
    folder = std::string(FSDPRT_SCRATCH) + "/files." + std::to_string(getpid());
    std::filesystem::create_directories(folder);
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  void TearDown() override {
    limit(before.rlim_cur);
    std::signal(SIGXFSZ, SIG_DFL);
    std::filesystem::remove_all(folder);
  }
  void limit(uint64_t bytes) {
    rlimit now = before;
    now.rlim_cur = bytes;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  /// Returns the path in /proc/self/fd of the unnamed file that this process has opened in the
  /// folder. Returns "" if there is no such file.
  std::string descriptor() const {
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      std::string target = std::filesystem::read_symlink(entry.path(), error).string();
      if (!error && target.rfind(std::filesystem::canonical(folder).string() + "/", 0) == 0)
        return entry.path().string();
    }
    return "";
  }
  template <typename Function>
  static Error refusal(Function function) {
    try {
      function();
    } catch (const Error &error) {
      return error;
    }
    return {FSDPRT_OK, "nothing was refused"};
  }
  static void expectRefused(const Error &error, fsdprt_status status, const std::string &message) {
    EXPECT_EQ(error.status, status) << error.message;
    EXPECT_EQ(error.message, message);
  }

  std::string folder;
  rlimit before = {};
};

std::vector<std::byte> noise(uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> values(bytes);
  for (std::byte &value : values)
    value = static_cast<std::byte>(random());
  return values;
}
} // namespace

TEST_F(RankFiles, AreZeroAndOfWholeBlocks) {
  for (uint64_t bytes : {uint64_t(1), block, block + 1, 3 * mebibyte + 5}) {
    RankFile file(folder, 0, bytes);
    EXPECT_EQ(file.bytes(), (bytes + block - 1) / block * block);
    std::vector<std::byte> content(bytes, std::byte{7});
    file.read(0, content.data(), bytes);
    EXPECT_EQ(content, std::vector<std::byte>(bytes));
  }
}

TEST_F(RankFiles, MoveBytesAtEveryAlignment) {
  constexpr uint64_t size = 3 * mebibyte;
  RankFile file(folder, 0, size);
  std::vector<std::byte> expected(size), source = noise(size + block, 1), back(size + block);
  const uint64_t edges[] = {
      0, 1, 64, block - 1, block, block + 1, 2 * block, 9 * block + 77, mebibyte, mebibyte + block};
  for (uint64_t offset : edges)
    for (uint64_t bytes :
         {uint64_t(0), uint64_t(1), block - 1, block, 3 * block + 5, mebibyte + block + 1})
      for (uint64_t shift : {uint64_t(0), uint64_t(1), uint64_t(64), block}) {
        file.write(offset, source.data() + shift, bytes);
        std::memcpy(expected.data() + offset, source.data() + shift, bytes);
        file.read(offset, back.data() + shift, bytes);
        ASSERT_EQ(std::memcmp(back.data() + shift, expected.data() + offset, bytes), 0)
            << offset << " " << bytes << " " << shift;
      }
  file.read(0, back.data(), size);
  EXPECT_EQ(std::memcmp(back.data(), expected.data(), size), 0);
}

TEST_F(RankFiles, MoveFromMemoryThatBeginsAtABlock) {
  constexpr uint64_t size = 2 * mebibyte;
  RankFile file(folder, 0, size);
  std::unique_ptr<std::byte, void (*)(void *)> memory(
      static_cast<std::byte *>(std::aligned_alloc(block, size)), std::free);
  std::vector<std::byte> values = noise(size, 2), back(size);
  std::memcpy(memory.get(), values.data(), size);
  file.write(0, memory.get(), size - 100); // The last block is written partially.
  file.write(size - 100, values.data() + size - 100, 100);
  file.read(0, back.data(), size);
  EXPECT_EQ(back, values);
  std::memset(memory.get(), 0, size);
  file.read(0, memory.get(), size);
  EXPECT_EQ(std::memcmp(memory.get(), values.data(), size), 0);
}

TEST_F(RankFiles, HaveNoName) {
  {
    RankFile one(folder, 0, block), other(folder, 1, block);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_NE(descriptor(), "");
    std::vector<std::byte> values = noise(block, 3), back(block);
    one.write(0, values.data(), block);
    other.read(0, back.data(), block);
    EXPECT_EQ(back, std::vector<std::byte>(block)); // The write to `one` did not change `other`.
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(descriptor(), "");
}

TEST_F(RankFiles, NeedAFolderThatCanBeWritten) {
  std::ofstream(folder + "/plain") << "x";
  expectRefused(refusal([&] { RankFile(folder + "/none", 3, block); }), FSDPRT_BAD_INPUT,
                folder + "/none: cannot create the file for the offloaded state of rank 3: No such "
                         "file or directory");
  expectRefused(
      refusal([&] { RankFile(folder + "/plain", 3, block); }), FSDPRT_BAD_INPUT,
      folder + "/plain: cannot create the file for the offloaded state of rank 3: Not a directory");
}

TEST_F(RankFiles, TakeTheirRoomWhenTheyAreMade) {
  limit(mebibyte);
  Error error = refusal([&] { RankFile(folder, 2, mebibyte + 1); });
  expectRefused(error, FSDPRT_FAILED,
                folder +
                    ": cannot allocate 1.0 MiB (1,052,672 bytes) for the offloaded state of rank "
                    "2: File too large");
  EXPECT_EQ(descriptor(), ""); // The file was closed.
  RankFile fits(folder, 2, mebibyte);
  EXPECT_EQ(std::filesystem::file_size(descriptor()), mebibyte);
}

TEST_F(RankFiles, FailWhereAWriteIsShort) {
  RankFile file(folder, 1, 4 * block);
  std::vector<std::byte> values = noise(4 * block, 4), back(4 * block);
  file.write(0, values.data(), 4 * block);
  // The next write writes two blocks and then fails.
  limit(2 * block);
  std::vector<std::byte> more = noise(4 * block, 5);
  Error error = refusal([&] { file.write(0, more.data(), 4 * block); });
  expectRefused(error, FSDPRT_FAILED,
                folder + ": cannot write [0, +16384) of the file for the offloaded state of rank "
                         "1: File too large");
  limit(before.rlim_cur);
  file.write(0, more.data(), 4 * block); // The file is still usable.
  file.read(0, back.data(), 4 * block);
  EXPECT_EQ(back, more);
}

TEST_F(RankFiles, FailWhereTheFileEndsEarly) {
  RankFile file(folder, 1, 4 * block);
  ASSERT_EQ(::truncate(descriptor().c_str(), static_cast<off_t>(2 * block)), 0);
  std::vector<std::byte> back(4 * block);
  file.read(0, back.data(), 2 * block);
  expectRefused(refusal([&] { file.read(block, back.data(), 3 * block); }), FSDPRT_FAILED,
                folder + ": cannot read [4096, +12288) of the file for the offloaded state of rank "
                         "1: unexpected end of file");
}

// A write must not extend a file that has been truncated, because the lost bytes would then be read
// as zeros.
TEST_F(RankFiles, AreNotMadeLongerAgain) {
  RankFile file(folder, 1, 4 * block);
  ASSERT_EQ(::truncate(descriptor().c_str(), 0), 0);
  std::vector<std::byte> values = noise(block, 6);
  expectRefused(refusal([&] { file.write(3 * block, values.data(), block); }), FSDPRT_FAILED,
                folder + ": cannot write [12288, +4096) of the file for the offloaded state of "
                         "rank 1: unexpected end of file");
}

TEST_F(RankFiles, LieInTheFolderForTemporaryFiles) {
  const char *given = std::getenv("TMPDIR");
  std::string kept = given ? given : "";
  setenv("TMPDIR", folder.c_str(), 1);
  EXPECT_EQ(temporaryDirectory(), folder);
  setenv("TMPDIR", "", 1);
  EXPECT_EQ(temporaryDirectory(), "/tmp");
  unsetenv("TMPDIR");
  EXPECT_EQ(temporaryDirectory(), "/tmp");
  if (given)
    setenv("TMPDIR", kept.c_str(), 1);
}
