//===- FilesTest.cpp - Reading, writing and locking files -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "io/Batches.h"
#include "io/EventFile.h"
#include "io/InputFile.h"
#include "io/OutputFile.h"
#include "io/OutputLock.h"
#include "test/io/Scratch.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace fsdprt;
using namespace fsdprt::test;

/// Looks at all files in the folder of `path`. Returns the names that begin with the name of the
/// file at `path`, followed by a dot.
static std::vector<std::string> namesBeside(const std::string &path) {
  std::vector<std::string> names;
  size_t slash = path.rfind('/');
  std::string base = path.substr(slash + 1) + ".";
  for (const auto &entry : std::filesystem::directory_iterator(path.substr(0, slash)))
    if (std::string name = entry.path().filename(); name.compare(0, base.size(), base) == 0)
      names.push_back(name);
  return names;
}

static std::string contentOf(const std::string &path) {
  auto bytes = readFile(path);
  return std::string(reinterpret_cast<char *>(bytes.data()), bytes.size());
}

TEST(OutputFile, KnowsBeforehand) {
  Scratch folder, file(std::string("kept")), fresh;
  for (bool atomic : {false, true}) {
    for (const char *bad : {"/no/such/folder/file", "/proc/x", ".", "/", "/dev/full/x"})
      EXPECT_NE(refusal([&] { OutputFile::expectWritable(bad, atomic); }).find(": cannot write: "),
                std::string::npos)
          << bad;
    EXPECT_NE(refusal([&] {
                OutputFile::expectWritable(FSDPRT_SCRATCH "/" + std::string(300, 'a'), atomic);
              }).find("File name too long"),
              std::string::npos);
    for (const std::string &good :
         {std::string("/dev/null"), std::string("/dev/full"), file.path, fresh.path})
      EXPECT_EQ(refusal([&] { OutputFile::expectWritable(good, atomic); }), "");
  }
  EXPECT_NE(access(fresh.path.c_str(), F_OK), 0);
  EXPECT_EQ(namesBeside(file.path).size(), 0u);
  auto bytes = readFile(file.path);
  EXPECT_EQ(std::string(reinterpret_cast<char *>(bytes.data()), bytes.size()), "kept");
}

TEST(OutputFile, FullDiskAndMissingFolder) {
  OutputFile full("/dev/full", true);
  EXPECT_NE(refusal([&] { full.write("x", 1); }).find("No space left"), std::string::npos);
  EXPECT_NE(refusal([] { OutputFile("/no/such/folder/file", true); }).find("No such file"),
            std::string::npos);
  Scratch file;
  {
    OutputFile abandoned(file.path, true);
    EXPECT_EQ(namesBeside(file.path).size(), 1u);
  }
  EXPECT_EQ(namesBeside(file.path).size(), 0u);
}

TEST(OutputFile, EachHasATemporaryFileOfItsOwn) {
  Scratch victim(std::string("untouched")), file;
  ASSERT_EQ(symlink(victim.path.c_str(), (file.path + ".tmp").c_str()), 0);
  OutputFile first(file.path, true), second(file.path, true);
  EXPECT_EQ(namesBeside(file.path).size(), 3u);
  first.write("first", 5);
  second.write("second", 6);
  first.write("!", 1);
  first.commit();
  EXPECT_EQ(contentOf(file.path), "first!");
  second.commit();
  EXPECT_EQ(contentOf(file.path), "second");
  EXPECT_EQ(contentOf(victim.path), "untouched");
  ASSERT_EQ(unlink((file.path + ".tmp").c_str()), 0);
  // A symbolic link with the name of the output is replaced, and the link's target is not changed.
  ASSERT_EQ(unlink(file.path.c_str()), 0);
  ASSERT_EQ(symlink(victim.path.c_str(), file.path.c_str()), 0);
  OutputFile third(file.path, true);
  third.write("third", 5);
  third.commit();
  EXPECT_EQ(contentOf(file.path), "third");
  EXPECT_EQ(contentOf(victim.path), "untouched");
  ASSERT_EQ(unlink(file.path.c_str()), 0);
  ASSERT_EQ(symlink(victim.path.c_str(), file.path.c_str()), 0);
  EXPECT_NE(refusal([&] { OutputFile().openNew(file.path); }).find("File exists"),
            std::string::npos);
}

TEST(OutputFile, RemovesWhatADeadProcessHasLeft) {
  Scratch file;
  pid_t child = fork();
  if (child == 0) {
    OutputFile left(file.path, true);
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  std::vector<std::string> left = namesBeside(file.path);
  ASSERT_EQ(left.size(), 1u);
  OutputFile alive(file.path, true), next(file.path, true);
  std::vector<std::string> names = namesBeside(file.path);
  EXPECT_EQ(names.size(), 2u); // Temporary files of live processes are kept.
  EXPECT_EQ(std::count(names.begin(), names.end(), left[0]), 0);
}

TEST(OutputLock, IsOfOneAtATime) {
  Scratch file, other;
  auto claim = std::make_unique<OutputLock>(file.path, "--export");
  std::string told = refusal([&] { OutputLock(file.path, "--export"); });
  EXPECT_NE(told.find("another run (process " + std::to_string(getpid()) + ") writes this file"),
            std::string::npos)
      << told;
  size_t slash = file.path.rfind('/');
  std::string detour = file.path.substr(0, slash) + "/./" + file.path.substr(slash + 1);
  EXPECT_NE(refusal([&] { OutputLock(detour, "--export"); }), "");
  EXPECT_EQ(refusal([&] { OutputLock(other.path, "--export"); }), "");
  EXPECT_EQ(refusal([&] { OutputLock a("/dev/null", "--export"), b("/dev/null", "--export"); }),
            "");
  claim.reset();
  EXPECT_EQ(refusal([&] { OutputLock(file.path, "--export"); }), "");
}

TEST(InputFile, RefusesPipesAndDevicesAtOnce) {
  Scratch pipe;
  ASSERT_EQ(mkfifo(pipe.path.c_str(), 0600), 0);
  for (const std::string &bad : {pipe.path, std::string("/dev/zero"), std::string("/")})
    EXPECT_NE(refusal([&] {
                InputFile(bad, "the tokens");
              }).find("expected the tokens, found something that is not a file"),
              std::string::npos)
        << bad;
}

// readAll() must refuse a sparse file of 1 TiB without reading it.
TEST(InputFile, HasALimitForItsWholeContent) {
  Scratch file("abc");
  EXPECT_EQ(InputFile(file.path, "an index").readAll(3), "abc");
  ASSERT_EQ(truncate(file.path.c_str(), uint64_t(1) << 40), 0);
  EXPECT_EQ(refusal([&] { InputFile(file.path, "an index").readAll(1 << 20); }),
            file.path + ": expected a file of at most 1.0 MiB (1,048,576 bytes), found 1.0 TiB "
                        "(1,099,511,627,776 bytes)");
}

TEST(InputFile, NoticesChanges) {
  std::string text(10000, 'a');
  Scratch cut(text), written(text), replaced(text), touched(text);
  InputFile a(cut.path, "x"), b(written.path, "x"), c(replaced.path, "x"), d(touched.path, "x");
  // The resolution of file times is one clock tick. After the sleep, a change sets a different
  // time.
  usleep(20000);
  ASSERT_EQ(truncate(cut.path.c_str(), 100), 0);
  EXPECT_NE(refusal([&] { a.expectUnchanged(); }).find("expected 10000 bytes, found 100"),
            std::string::npos);
  char byte;
  EXPECT_NE(refusal([&] { a.read(9000, &byte, 1); }).find("expected 10000 bytes, found 100"),
            std::string::npos);
  std::string other(10000, 'b');
  writeFile(written.path, other.data(), other.size());
  EXPECT_NE(refusal([&] { b.expectUnchanged(); }).find("another process wrote to it"),
            std::string::npos);
  // A rename of another file to the name of an open file does not change the open file.
  writeFile(replaced.path + ".new", other.data(), other.size());
  ASSERT_EQ(rename((replaced.path + ".new").c_str(), replaced.path.c_str()), 0);
  EXPECT_EQ(refusal([&] { c.expectUnchanged(/*strictly=*/true); }), "");
  c.read(9999, &byte, 1);
  EXPECT_EQ(byte, 'a');
  ASSERT_EQ(chmod(touched.path.c_str(), 0600), 0);
  ASSERT_EQ(chmod(touched.path.c_str(), 0644), 0);
  EXPECT_EQ(refusal([&] { d.expectUnchanged(); }), "");
  EXPECT_NE(refusal([&] { d.expectUnchanged(/*strictly=*/true); }), "");
}

// If only the change time (ctime) of a file differs, the contents are compared. chmod does not
// change the contents. A rewrite that restores the modification time changes the contents and must
// be detected.
TEST(InputFile, LooksAtTheContentWhereOnlyTheChangeTimeIsAnother) {
  std::string text(10000, 'a');
  Scratch file(text);
  TokenFile tokens(file.path, TokenType::u8, 256);
  struct stat before;
  ASSERT_EQ(stat(file.path.c_str(), &before), 0);
  usleep(20000);
  ASSERT_EQ(chmod(file.path.c_str(), 0600), 0);
  EXPECT_EQ(refusal([&] { tokens.expectUnchanged(); }), "");
  usleep(20000);
  text[5000] = 'b';
  writeFile(file.path, text.data(), text.size());
  timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, file.path.c_str(), times, 0), 0);
  EXPECT_NE(refusal([&] { tokens.expectUnchanged(); }).find("another process wrote to it"),
            std::string::npos);
  ASSERT_EQ(unlink(file.path.c_str()), 0);
}

// Uses a sparse file that is too large to be compared as a whole. Changes at the file's end and
// inside of sampled blocks must be found.
TEST(InputFile, ComparesASampleOfLargeFiles) {
  Scratch file(std::string("x"));
  uint64_t size = InputFile::wholeLimit + 12345;
  ASSERT_EQ(truncate(file.path.c_str(), static_cast<off_t>(size)), 0);
  InputFile before(file.path, "x");
  EXPECT_FALSE(before.isCompared());
  std::string first = before.comparison();
  EXPECT_NE(first.find(std::to_string(size) + " bytes with SHA-256 of a sample "),
            std::string::npos)
      << first;
  auto poke = [&](uint64_t at) {
    int fd = open(file.path.c_str(), O_WRONLY);
    EXPECT_EQ(pwrite(fd, "y", 1, static_cast<off_t>(at)), 1);
    close(fd);
    return InputFile(file.path, "x").comparison();
  };
  std::string second = poke(size - 1), third = poke(0);
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
}

// The checksum of 32 bytes with the value 0xff is given in RFC 3720.
TEST(EventFile, Checksums) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c("", 0), 0u);
  std::vector<uint8_t> ones(32, 0xff);
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62a8ab43u);
  EXPECT_EQ(maskedCrc32c("123456789", 9), ((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u));
}

TEST(EventFile, RefusesTooManyScalars) {
  EventFile file;
  std::string folder = FSDPRT_SCRATCH "/events." + std::to_string(getpid());
  file.open(folder, 1);
  file.begin(1);
  EXPECT_THROW(
      {
        for (int i = 0; i < 1000; ++i)
          file.add("a/scalar", 1.0f);
      },
      Error);
  ASSERT_EQ(std::system(("rm -r " + folder).c_str()), 0);
}
