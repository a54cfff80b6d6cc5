//===- SafetensorsTest.cpp - Safetensors files ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests valid files, and malformed files that other programs have accepted.
//
//===----------------------------------------------------------------------===//

#include "io/Safetensors.h"
#include "test/io/Scratch.h"
#include <cstring>
#include <gtest/gtest.h>
#include <memory>

using namespace fsdprt;
using namespace fsdprt::test;

static std::string safetensors(const std::string &header, size_t dataBytes) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char *>(&length), 8) + header + std::string(dataBytes, 'x');
}

TEST(Safetensors, WritesWhatItReads) {
  Scratch file;
  std::vector<SafetensorsWriter::Entry> entries = {
      {"b", "BF16", {3}}, {"a", "F32", {2, 2}}, {"s", "F64", {}}, {"none", "F32", {0, 5}}};
  SafetensorsWriter writer(file.path, entries);
  EXPECT_EQ(entries[0].name, "s"); // sorted by descending width of elements, then by name
  std::vector<char> data(8 + 16 + 6, 'd');
  writer.write(data.data(), data.size());
  EXPECT_THROW(SafetensorsFile(file.path), Error); // only commit() creates the file
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
       12, "gaps or overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})",
       24, "gaps or overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12,
       "overlaps: 'a' begins at 4, expected 0"},
      {good, 7, "cut short"},
      {good, 9, "cut short"},
      {R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8, "'F31' is unknown"},
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
  longHeader[5] = 1; // the header's length is now 2^40
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
      // The reader may refuse or accept the file, but must return.
      refusal([&] { SafetensorsFile read(file.path); });
    }
}

TEST(Safetensors, Index) {
  Scratch index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"x-00002.safetensors","b":"x-00001.safetensors","c":"x-00002.safetensors"}})");
  auto files = readSafetensorsIndex(index.path);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0], FSDPRT_SCRATCH "/x-00001.safetensors");
  for (const char *bad : {"[]", "{", R"({"weight_map":7})", R"({"weight_map":{"a":"../x"}})",
                          R"({"weight_map":{"a":7}})", R"({"weight_map":{"a":"\u001b[31m"}})"}) {
    Scratch file{std::string(bad)};
    EXPECT_NE(refusal([&] { readSafetensorsIndex(file.path); }), "") << bad;
  }
}
