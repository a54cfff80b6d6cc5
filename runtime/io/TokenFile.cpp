//===- TokenFile.cpp - Files of tokens --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "io/TokenFile.h"
#include "core/Error.h"
#include <algorithm>
#include <cstring>
#include <vector>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t headerBytes = 1024;

/// If the file has the header of llm.c, sets `begin`, `width` and `count`.
void TokenFile::readHeader(const std::string &path) {
  int32_t words[3];
  if (file.size() < headerBytes)
    return;
  file.read(0, words, sizeof words);
  if (words[0] != 20240520 && words[0] != 20240801)
    return;
  bool narrow = words[0] == 20240520;
  if (words[1] != (narrow ? 1 : 7))
    badInput("%s: expected version %d of the token file with magic %d, found %d", path.c_str(),
             narrow ? 1 : 7, words[0], words[1]);
  width = narrow ? 2 : 4;
  begin = headerBytes;
  uint64_t expected = headerBytes + static_cast<uint64_t>(static_cast<uint32_t>(words[2])) * width;
  if (words[2] < 0 || file.size() != expected)
    badInput("%s: its header says %d tokens of %u bytes, which makes %llu bytes, found %llu",
             path.c_str(), words[2], width, (ull)expected, (ull)file.size());
  count = words[2];
}

template <typename Id>
void TokenFile::checkIds(const std::string &path, uint64_t limit) const {
  if (limit == 0 || limit > static_cast<Id>(~Id(0)))
    return;
  Id most = static_cast<Id>(limit - 1);
  std::vector<Id> ids(std::min<uint64_t>(count, 1 << 18));
  for (uint64_t first = 0; first < count; first += ids.size()) {
    uint64_t part = std::min<uint64_t>(count - first, ids.size());
    Id largest = 0;
    file.read(begin + first * sizeof(Id), ids.data(), part * sizeof(Id));
    for (uint64_t i = 0; i < part; ++i)
      largest = std::max(largest, ids[i]);
    for (uint64_t i = 0; largest > most && i < part; ++i)
      if (ids[i] > most)
        badInput("%s: token %llu (byte offset %llu): expected an id in [0, %llu), found %llu",
                 path.c_str(), (ull)(first + i), (ull)(begin + (first + i) * sizeof(Id)),
                 (ull)limit, (ull)ids[i]);
  }
}

TokenFile::TokenFile(const std::string &path, TokenType type, uint64_t limit)
    : file(path, "the tokens") {
  if (file.size() == 0)
    badInput("%s: expected tokens, found an empty file", path.c_str());
  readHeader(path);
  uint32_t asked = type == TokenType::u8    ? 1
                   : type == TokenType::u16 ? 2
                   : type == TokenType::u32 ? 4
                                            : 0;
  if (begin != 0 && asked != 0 && asked != width)
    badInput("%s: its header says %s, --token-dtype says otherwise; omit the option", path.c_str(),
             typeName());
  if (begin == 0) {
    width = asked ? asked : limit == 0 || limit > 65536 ? 4 : limit > 256 ? 2 : 1;
    if (file.size() % width != 0)
      badInput("%s: expected a multiple of %u bytes, for ids of type %s, found %llu", path.c_str(),
               width, typeName(), (ull)file.size());
    count = file.size() / width;
  }
  if (width == 1)
    checkIds<uint8_t>(path, limit);
  else if (width == 2)
    checkIds<uint16_t>(path, limit);
  else
    checkIds<uint32_t>(path, limit);
  content = file.comparison();
}

std::string TokenFile::sha256() const {
  return file.isCompared() ? content.substr(content.rfind(' ') + 1) : file.sha256();
}

/// Reads the ids, each of `width` bytes, into the end of the buffer `ids`. Then converts them in
/// place to 4 bytes, from the first id to the last. The converted id i ends before the unconverted
/// id i + 1 begins, so that no unconverted id is overwritten.
void TokenFile::read(uint64_t first, uint64_t number, uint32_t *ids) const {
  auto *bytes = reinterpret_cast<std::byte *>(ids);
  const std::byte *from = bytes + number * (sizeof(uint32_t) - width);
  file.read(begin + first * width, bytes + (from - bytes), number * width);
  for (uint64_t i = 0; i < number && width < sizeof(uint32_t); ++i) {
    uint32_t id = 0;
    std::memcpy(&id, from + i * width, width);
    std::memcpy(bytes + i * sizeof id, &id, sizeof id);
  }
}

uint32_t TokenFile::operator[](uint64_t index) const {
  uint32_t id;
  read(index, 1, &id);
  return id;
}
