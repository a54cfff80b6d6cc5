//===- IoTest.cpp - Files in and out ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Token files, batches, the learning rate, safetensors with the mistakes that other readers made.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "io/Batches.h"
#include "io/EventFile.h"
#include "io/InputFile.h"
#include "io/OutputFile.h"
#include "io/OutputLock.h"
#include "io/Safetensors.h"
#include "testing/toy/ToyModel.h"
#include "train/LearningRate.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
/// A file of this test in the build folder, removed at the end.
struct Scratch {
  std::string path;
  Scratch()
      : path(FSDPRT_SCRATCH "/io." + std::to_string(getpid()) + "." + std::to_string(counter++)) {}
  Scratch(const void *data, size_t size) : Scratch() { writeFile(path, data, size); }
  explicit Scratch(const std::string &text) : Scratch(text.data(), text.size()) {}
  ~Scratch() { unlink(path.c_str()); }
  static int counter;
};
int Scratch::counter = 0;

std::string refusal(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.message;
  }
  return "";
}
} // namespace

//===- Token files --------------------------------------------------------===//

static std::string llmc(int32_t magic, int32_t version, int32_t count, const std::string &tokens) {
  std::string result(1024, '\0');
  int32_t words[] = {magic, version, count};
  std::memcpy(result.data(), words, sizeof words);
  return result + tokens;
}

TEST(TokenFile, Formats) {
  uint16_t narrow[] = {5, 50256, 7};
  uint32_t wide[] = {5, 128000, 7};
  std::string narrowText(reinterpret_cast<char *>(narrow), sizeof narrow),
      wideText(reinterpret_cast<char *>(wide), sizeof wide);
  struct {
    std::string content;
    TokenType type;
    uint64_t limit;
    const char *name;
    uint32_t second;
  } cases[] = {{narrowText, TokenType::automatic, 50257, "uint16", 50256},
               {wideText, TokenType::automatic, 128001, "uint32", 128000},
               {"abc", TokenType::automatic, 256, "uint8", 'b'},
               {narrowText, TokenType::u16, 0, "uint16", 50256},
               {llmc(20240520, 1, 3, narrowText), TokenType::automatic, 50257, "uint16", 50256},
               {llmc(20240801, 7, 3, wideText), TokenType::u32, 128256, "uint32", 128000}};
  for (const auto &c : cases) {
    Scratch file(c.content);
    TokenFile tokens(file.path, c.type, c.limit);
    EXPECT_EQ(tokens.size(), 3u);
    EXPECT_STREQ(tokens.typeName(), c.name);
    EXPECT_EQ(tokens[1], c.second);
  }
}

TEST(TokenFile, Refusals) {
  auto refuse = [](const std::string &content, TokenType type = TokenType::automatic,
                   uint64_t limit = 50257) {
    Scratch file(content);
    return refusal([&] { TokenFile(file.path, type, limit); });
  };
  uint16_t ids[] = {1, 2, 50257};
  std::string text(reinterpret_cast<char *>(ids), sizeof ids);
  EXPECT_NE(refuse(text).find("token 2 (byte offset 4): expected an id in [0, 50257), found 50257"),
            std::string::npos);
  EXPECT_NE(refuse(llmc(20240520, 1, 3, text)).find("token 2 (byte offset 1028)"),
            std::string::npos);
  EXPECT_NE(refuse("abc").find("expected a multiple of 2 bytes"), std::string::npos);
  EXPECT_NE(refuse("").find("found an empty file"), std::string::npos);
  EXPECT_NE(refuse(llmc(20240520, 2, 3, text)).find("expected version 1"), std::string::npos);
  EXPECT_NE(refuse(llmc(20240520, 1, 4, text)).find("which makes 1032 bytes, found 1030"),
            std::string::npos);
  EXPECT_NE(refuse(llmc(20240520, 1, -3, text)).find("its header says -3"), std::string::npos);
  EXPECT_NE(refuse(llmc(20240801, 7, 3, text)), "");
  EXPECT_NE(refuse(llmc(20240520, 1, 3, text), TokenType::u32).find("leave the option out"),
            std::string::npos);
  EXPECT_NE(
      refusal([] { TokenFile("/no/such/file", TokenType::automatic, 0); }).find("No such file"),
      std::string::npos);
  EXPECT_NE(refusal([] { TokenFile("/", TokenType::automatic, 0); }).find("not a file"),
            std::string::npos);
}

//===- Batches ------------------------------------------------------------===//

static fsdprt_input_info input(const char *name, fsdprt_input_role role, fsdprt_dtype dtype,
                               const std::vector<uint64_t> &shape, uint32_t microBatches = 1,
                               uint64_t limit = 256) {
  fsdprt_input_info info = {};
  info.struct_size = sizeof info;
  info.name = name;
  info.role = role;
  info.dtype = dtype;
  info.rank = static_cast<uint32_t>(shape.size());
  info.shape = shape.data();
  info.bytes = dtype == FSDPRT_I64 ? 8 : dtype == FSDPRT_I1 ? 1 : 4;
  for (uint64_t dim : shape)
    info.bytes *= dim;
  info.micro_batches = microBatches;
  info.limit = limit;
  return info;
}

static std::vector<int64_t> copy(Batches &batches, uint64_t step, uint64_t rank,
                                 uint32_t microBatch, size_t i, bool validation = false) {
  std::vector<int64_t> result(batches.bytes(i) / 8);
  const void *data = validation ? batches.validation(step, rank, microBatch, i)
                                : batches.train(step, rank, microBatch, i);
  std::memcpy(result.data(), data, batches.bytes(i));
  return result;
}

TEST(Batches, TheSameForAnyNumberOfRanks) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += static_cast<char>(i * i % 251);
  Scratch file(text);
  TokenFile tokens(file.path, TokenType::u8, 256);
  std::vector<uint64_t> one = {6, 8}, three = {2, 8}, micro = {3, 2, 8};
  for (const TokenFile *from :
       {static_cast<const TokenFile *>(&tokens), static_cast<const TokenFile *>(nullptr)}) {
    Batches a(
        {input("t", FSDPRT_TOKENS, FSDPRT_I64, one), input("y", FSDPRT_TARGETS, FSDPRT_I64, one)},
        from, 1, {});
    Batches b({input("t", FSDPRT_TOKENS, FSDPRT_I64, three),
               input("y", FSDPRT_TARGETS, FSDPRT_I64, three)},
              from, 3, {});
    Batches c({input("t", FSDPRT_TOKENS, FSDPRT_I64, micro, 3),
               input("y", FSDPRT_TARGETS, FSDPRT_I64, micro, 3)},
              from, 1, {});
    std::set<std::vector<int64_t>> different;
    for (uint64_t step = 0; step < 4; ++step)
      for (size_t i : {0u, 1u}) {
        std::vector<int64_t> whole = copy(a, step, 0, 0, i), ranks, micros;
        for (uint32_t r = 0; r < 3; ++r) {
          auto part = copy(b, step, r, 0, i), piece = copy(c, step, 0, r, i);
          ranks.insert(ranks.end(), part.begin(), part.end());
          micros.insert(micros.end(), piece.begin(), piece.end());
        }
        EXPECT_EQ(whole, ranks);
        EXPECT_EQ(whole, micros);
        different.insert(whole);
      }
    EXPECT_EQ(different.size(), 8u);
  }
}

TEST(Batches, TargetsAreShiftedByOne) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += static_cast<char>(i);
  Scratch file(text);
  TokenFile tokens(file.path, TokenType::u8, 256);
  std::vector<uint64_t> shape = {4, 8}, flat = {32};
  BatchOptions options;
  options.validationFraction = 0.25;
  Batches batches(
      {input("t", FSDPRT_TOKENS, FSDPRT_I64, shape), input("y", FSDPRT_TARGETS, FSDPRT_I64, flat)},
      &tokens, 1, options);
  EXPECT_EQ(batches.trainTokens(), 150u);
  EXPECT_EQ(batches.validationBatches(), 2u); // 6 windows, 4 in a batch
  for (uint64_t step = 0; step < 50; ++step) {
    auto x = copy(batches, step, 0, 0, 0), y = copy(batches, step, 0, 0, 1);
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(y[i], x[i] + 1);
      EXPECT_LT(y[i], 150);
      EXPECT_EQ(x[i], x[i / 8 * 8] + i % 8);
    }
  }
  EXPECT_EQ(copy(batches, 0, 0, 0, 0, true)[0], 150);
  EXPECT_EQ(copy(batches, 0, 0, 0, 0, true)[8], 158);
  EXPECT_EQ(copy(batches, 0, 0, 0, 1, true)[31], 182);
}

TEST(Batches, OverfitsOneBatchBelowTheLimit) {
  std::vector<uint64_t> shape = {2, 8}, features = {2, 3};
  BatchOptions options;
  options.overfit = true;
  Batches batches({input("t", FSDPRT_TOKENS, FSDPRT_I64, shape, 1, 10),
                   input("y", FSDPRT_TARGETS, FSDPRT_I64, shape, 1, 10),
                   input("x", FSDPRT_OTHER, FSDPRT_F32, features)},
                  nullptr, 2, options);
  EXPECT_EQ(copy(batches, 0, 1, 0, 0), copy(batches, 5, 1, 0, 0));
  EXPECT_NE(copy(batches, 0, 0, 0, 0), copy(batches, 0, 1, 0, 0));
  auto x = copy(batches, 0, 0, 0, 0), y = copy(batches, 0, 0, 0, 1);
  EXPECT_EQ(std::vector<int64_t>(x.begin() + 1, x.begin() + 8),
            std::vector<int64_t>(y.begin(), y.begin() + 7));
  for (int64_t id : x)
    EXPECT_TRUE(id >= 0 && id < 10);
  const float *values = static_cast<const float *>(batches.train(0, 0, 0, 2));
  EXPECT_NE(values[0], values[3]); // every sample its own
}

TEST(Batches, Refusals) {
  Scratch file("only nine");
  TokenFile tokens(file.path, TokenType::u8, 256);
  std::vector<uint64_t> shape = {1, 9}, other = {1, 3};
  EXPECT_NE(refusal([&] {
              Batches({input("t", FSDPRT_TOKENS, FSDPRT_I64, shape)}, &tokens, 1, {});
            }).find("expected at least 10 tokens"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              Batches({input("x", FSDPRT_OTHER, FSDPRT_F32, shape)}, &tokens, 1, {});
            }).find("takes no tokens"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              Batches({input("t", FSDPRT_TOKENS, FSDPRT_I64, other),
                       input("y", FSDPRT_TARGETS, FSDPRT_I64, shape)},
                      &tokens, 1, {});
            }).find("another shape than the tokens"),
            std::string::npos);
  for (double fraction : {std::nan(""), -0.5, 1.0, HUGE_VAL}) {
    BatchOptions options;
    options.validationFraction = fraction;
    EXPECT_NE(refusal([&] {
                Batches({input("t", FSDPRT_TOKENS, FSDPRT_I64, other)}, &tokens, 1, options);
              }).find("at least 0 and below 1"),
              std::string::npos);
  }
}

TEST(LearningRate, WarmUpAndDecay) {
  LearningRate rate{1.0, 0.1, 10, 110};
  EXPECT_DOUBLE_EQ(rate.at(1), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(10), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(60), 0.55);
  EXPECT_DOUBLE_EQ(rate.at(110), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(1000), 0.1);
  EXPECT_DOUBLE_EQ((LearningRate{1.0, 0, 0, 0}.at(1000)), 1.0);
}

//===- Safetensors --------------------------------------------------------===//

static std::string safetensors(const std::string &header, size_t dataBytes) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char *>(&length), 8) + header + std::string(dataBytes, 'x');
}

TEST(Safetensors, WritesWhatItReads) {
  Scratch file;
  std::vector<SafetensorsWriter::Entry> entries = {
      {"b", "BF16", {3}}, {"a", "F32", {2, 2}}, {"s", "F64", {}}, {"none", "F32", {0, 5}}};
  SafetensorsWriter writer(file.path, entries);
  EXPECT_EQ(entries[0].name, "s"); // wide ones first, then by name
  std::vector<char> data(8 + 16 + 6, 'd');
  writer.write(data.data(), data.size());
  EXPECT_THROW(SafetensorsFile(file.path), Error); // not there before it is whole
  writer.commit();
  SafetensorsFile read(file.path);
  EXPECT_EQ(read.getTensors().size(), 4u);
  const Tensor &a = read.getTensors().at("a");
  EXPECT_EQ(a.shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(a.begin, 8u);
  EXPECT_EQ(read.offsetOf(a) % 8, 0u);
  EXPECT_EQ(read.getTensors().at("none").begin, read.getTensors().at("none").end);
}

TEST(Safetensors, NegativeCorpus) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  struct {
    std::string header;
    size_t data;
    const char *words;
  } cases[] = {
      {R"( {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "begins with '{'"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 0, "non-negative"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "non-negative"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "expected an integer"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "8 bytes apart, found [0, 4]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
       "8 bytes apart, found [8, 0]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]}})", 8, "8 bytes apart"},
      {R"({"a":{"dtype":"F32","shape":[4194305,4194305,211106198978564],"data_offsets":[0,16]}})",
       16, "overflows"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999999],"data_offsets":[0,16]}})", 16,
       "expected an integer"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
       16, "each name once"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8,
       "expected 'dtype' once"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "holes or overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})",
       24, "holes or overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12,
       "overlaps: 'a' begins at 4, where 0 was due"},
      {good, 7, "cut short"},
      {good, 9, "cut short"},
      {R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8, "'F31' is not known"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8, "expected dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":"1"}})", 8, "found 'extra'"},
      {R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8,
       "expected a whole number in shape, found an array"},
      {R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", 8,
       "expected a text for dtype, found an array"},
      {R"({"a":{"dtype":{"b":"F32"},"shape":[2],"data_offsets":[0,8]}})", 8,
       "expected a text for dtype, found an object"},
      {R"({"a":"F32"})", 0,
       "expected an object with dtype, shape and data_offsets, found the text 'F32'"},
      {R"({"a":7})", 0, "data_offsets, found the number 7"},
      {R"({"a":null})", 0, "data_offsets, found null"},
      {R"({"__metadata__":{"format":7}})", 0, "expected a text for 'format', found the number 7"},
      {R"({"a":)", 0, "header: not JSON at byte 6: unexpected end of input"},
      {R"({"a":{"dtype":"F32","shape":true}})", 0,
       "'a': expected an array of whole numbers for shape, found true"},
      {R"({"a":{"dtype":"F32","shape":"2"}})", 0,
       "expected an array of whole numbers for shape, found the text '2'"},
      {R"({"a":{"dtype":"F32","shape":["2"]}})", 0,
       "expected a whole number in shape, found the text '2'"},
      {good + good, 8, "not JSON"},
      {"{\"a\xff\":{}}", 0, "not JSON"},
      {"{" + std::string(100000, '['), 0, "not JSON"},
      {"{\"a\":" + std::string(100000, '['), 0, "data_offsets, found an array"},
  };
  for (const auto &c : cases) {
    Scratch file(safetensors(c.header, c.data));
    std::string message = refusal([&] { SafetensorsFile read(file.path); });
    EXPECT_NE(message.find(c.words), std::string::npos) << c.header.substr(0, 200) << "\n"
                                                        << message;
  }
  Scratch fine(safetensors(good, 8)),
      metadata(safetensors(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
          4));
  EXPECT_EQ(refusal([&] { SafetensorsFile read(fine.path); }), "");
  EXPECT_EQ(refusal([&] { SafetensorsFile read(metadata.path); }), "");
  std::string longHeader = safetensors(good, 8);
  longHeader[5] = 1; // a length of 2^40
  Scratch tooLong(longHeader), empty(""), seven("1234567");
  for (const Scratch *file : {&tooLong, &empty, &seven})
    EXPECT_NE(refusal([&] { SafetensorsFile read(file->path); }), "");
}

TEST(Safetensors, CutAndChangedAnywhere) {
  std::string whole = safetensors(
      R"({"__metadata__":{"a":"b"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})",
      14);
  Scratch file;
  for (size_t size = 0; size < whole.size(); ++size) {
    writeFile(file.path, whole.data(), size);
    EXPECT_NE(refusal([&] { SafetensorsFile read(file.path); }), "") << size;
  }
  for (size_t at = 0; at < whole.size(); ++at)
    for (char change : {'\x01', '\x80', '\x10'}) {
      std::string changed = whole;
      changed[at] ^= change;
      writeFile(file.path, changed.data(), changed.size());
      refusal([&] { SafetensorsFile read(file.path); }); // comes back
    }
}

TEST(Safetensors, Index) {
  Scratch index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"x-00002.safetensors","b":"x-00001.safetensors","c":"x-00002.safetensors"}})");
  auto files = readSafetensorsIndex(index.path);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0], FSDPRT_SCRATCH "/x-00001.safetensors");
  for (const char *bad : {"[]", "{", R"({"weight_map":7})", R"({"weight_map":{"a":"../x"}})",
                          R"({"weight_map":{"a":7}})"}) {
    Scratch file{std::string(bad)};
    EXPECT_NE(refusal([&] { readSafetensorsIndex(file.path); }), "") << bad;
  }
}

/// The names beside a file that begin with its name.
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
  // A link with the name itself is replaced, and what it points to stays.
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
  EXPECT_EQ(names.size(), 2u); // those of processes that live are kept
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

//===- InputFile ----------------------------------------------------------===//

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

TEST(InputFile, NoticesChanges) {
  std::string text(10000, 'a');
  Scratch cut(text), written(text), replaced(text), touched(text);
  InputFile a(cut.path, "x"), b(written.path, "x"), c(replaced.path, "x"), d(touched.path, "x");
  usleep(20000); // times of files are as coarse as the system's clock ticks
  ASSERT_EQ(truncate(cut.path.c_str(), 100), 0);
  EXPECT_NE(refusal([&] { a.expectUnchanged(); }).find("expected 10000 bytes, found 100"),
            std::string::npos);
  char byte;
  EXPECT_NE(refusal([&] { a.read(9000, &byte, 1); }).find("expected 10000 bytes, found 100"),
            std::string::npos);
  std::string other(10000, 'b');
  writeFile(written.path, other.data(), other.size());
  EXPECT_NE(refusal([&] { b.expectUnchanged(); }).find("it was written to"), std::string::npos);
  // A file that takes the name later is another file.
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

// chmod changes no byte; a rewrite that sets the modification time back does.
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
  EXPECT_NE(refusal([&] { tokens.expectUnchanged(); }).find("it was written to"),
            std::string::npos);
  ASSERT_EQ(unlink(file.path.c_str()), 0);
}

// A file with holes: a byte at the end, and one in the middle of the sampled blocks, make another
// comparison.
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

TEST(EventFile, Checksums) { // of RFC 3720
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
