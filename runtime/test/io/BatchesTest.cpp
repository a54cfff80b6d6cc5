//===- BatchesTest.cpp - Batches of tokens ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests token files, batches and the learning rate.
//
//===----------------------------------------------------------------------===//

#include "io/Batches.h"
#include "test/io/Scratch.h"
#include "train/LearningRate.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <set>

using namespace fsdprt;
using namespace fsdprt::test;

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
  EXPECT_NE(refuse(llmc(20240520, 1, 3, text), TokenType::u32).find("omit the option"),
            std::string::npos);
  EXPECT_NE(
      refusal([] { TokenFile("/no/such/file", TokenType::automatic, 0); }).find("No such file"),
      std::string::npos);
  EXPECT_NE(refusal([] { TokenFile("/", TokenType::automatic, 0); }).find("not a file"),
            std::string::npos);
}

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
  EXPECT_EQ(batches.validationBatches(), 2u); // 6 windows, 4 of them per batch
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
  EXPECT_NE(values[0], values[3]); // the two samples differ
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
            }).find("has no input 'tokens'"),
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
