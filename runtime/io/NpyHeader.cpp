//===- NpyHeader.cpp - Headers of .npy files --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements NpyHeader.h. A recursive-descent parser reads the dictionary of the header.
//
//===----------------------------------------------------------------------===//

#include "io/NpyHeader.h"
#include "core/Error.h"
#include "io/Safetensors.h"
#include <cstring>
#include <set>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr char magic[] = "\x93NUMPY";
static constexpr uint64_t magicBytes = sizeof magic - 1, maxHeader = mostNpyHeaderBytes - 12,
                          maxRank = 32;

bool fsdprt::isNpy(const std::byte *data, uint64_t size) {
  return size >= magicBytes && std::memcmp(data, magic, magicBytes) == 0;
}

namespace {
class Dictionary {
public:
  Dictionary(const std::string &path, const char *text, uint64_t size)
      : path(path), at(text), end(text + size) {}

  std::string descr;
  std::vector<uint64_t> shape;

  void parse() {
    expect('{');
    std::set<std::string> keys;
    while (peek() != '}') {
      std::string key = parseString();
      if (!keys.insert(key).second)
        refuse("expected '" + printable(key) + "' once");
      expect(':');
      parseValue(key);
      if (peek() != '}')
        expect(',');
    }
    expect('}');
    if (peek() != '\0' || at != end)
      refuse("expected nothing after the dictionary");
    if (keys.size() != 3)
      refuse("expected descr, fortran_order and shape");
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    badInput("%s: header of the .npy file: %s", path.c_str(), why.c_str());
  }

  /// Returns the next character that is not white space, or 0 at the end.
  char peek() {
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
      ++at;
    return at == end ? '\0' : *at;
  }

  void expect(char c) {
    char found = peek();
    if (found != c || at == end)
      refuse(format("expected '%c', found %s", c,
                    at == end ? "its end" : ("'" + printable({at, 1}) + "'").c_str()));
    ++at;
  }

  std::string parseString() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      refuse("expected a text in quotes");
    const char *begin = ++at;
    while (at != end && *at != quote)
      ++at;
    if (at == end)
      refuse("expected a closing quote, found the header's end");
    return std::string(begin, at++);
  }

  uint64_t parseNumber() {
    if (char c = peek(); c < '0' || c > '9')
      refuse("expected a whole number in shape");
    uint64_t value = 0;
    for (; at != end && *at >= '0' && *at <= '9'; ++at)
      if (__builtin_mul_overflow(value, uint64_t(10), &value) ||
          __builtin_add_overflow(value, uint64_t(*at - '0'), &value))
        refuse("a number in shape does not fit 64 bits");
    return value;
  }

  void parseShape() {
    expect('(');
    while (peek() != ')') {
      if (shape.size() == maxRank)
        refuse(format("expected at most %llu dimensions", (ull)maxRank));
      shape.push_back(parseNumber());
      if (peek() != ')')
        expect(',');
    }
    expect(')');
  }

  void parseValue(const std::string &key) {
    if (key == "shape")
      return parseShape();
    if (key == "descr") {
      if (peek() == '[')
        refuse("expected elements of a number type, found records");
      descr = parseString();
      return;
    }
    if (key != "fortran_order")
      refuse("expected descr, fortran_order and shape, found '" + printable(key) + "'");
    peek();
    std::string word(at, std::min<size_t>(end - at, 5));
    if (word.rfind("True", 0) == 0)
      refuse("expected elements in C order, found Fortran order; save it with "
             "numpy.ascontiguousarray");
    if (word != "False")
      refuse("expected True or False for fortran_order");
    at += 5;
  }

  const std::string &path;
  const char *at, *end;
};
} // namespace

/// Returns the name that safetensors uses for a numpy type such as '<f4', or an empty text for an
/// unsupported type.
static std::string dtypeOf(const std::string &descr) {
  if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '|' && descr[0] != '='))
    return "";
  static constexpr std::pair<const char *, const char *> known[] = {
      {"f8", "F64"}, {"f4", "F32"}, {"f2", "F16"}, {"i8", "I64"}, {"i4", "I32"}, {"i2", "I16"},
      {"i1", "I8"},  {"u8", "U64"}, {"u4", "U32"}, {"u2", "U16"}, {"u1", "U8"},  {"b1", "BOOL"}};
  for (auto [numpy, name] : known)
    if (descr.compare(1, 2, numpy) == 0)
      return name;
  return "";
}

StoredArray fsdprt::readNpyHeader(const std::string &path, const std::byte *data, uint64_t size) {
  uint64_t at = magicBytes + 2, length = 0;
  if (size < at + 4)
    badInput("%s: expected an .npy file, found one that is cut short after %llu bytes",
             path.c_str(), (ull)size);
  unsigned major = std::to_integer<unsigned>(data[magicBytes]);
  if (major < 1 || major > 3)
    badInput("%s: expected an .npy file of version 1, 2 or 3, found version %u", path.c_str(),
             major);
  unsigned width = major == 1 ? 2 : 4;
  std::memcpy(&length, data + at, width);
  at += width;
  if (length > maxHeader || length > size - at)
    badInput("%s: its header says it has %llu bytes: expected at most %llu, within the %llu bytes "
             "of the file",
             path.c_str(), (ull)length, (ull)maxHeader, (ull)size);
  Dictionary header(path, reinterpret_cast<const char *>(data) + at, length);
  header.parse();
  StoredArray array{dtypeOf(header.descr), header.shape, at + length};
  if (array.dtype.empty())
    badInput("%s: expected little-endian numbers, such as '<f4', '<i8' or '|b1', found '%s'",
             path.c_str(), printable(header.descr).c_str());
  uint64_t bytes = safetensorsSize(array.dtype);
  for (uint64_t dim : array.shape)
    if (__builtin_mul_overflow(bytes, dim, &bytes))
      badInput("%s: header of the .npy file: its shape overflows", path.c_str());
  if (bytes != size - array.begin)
    badInput("%s: its header says %llu bytes of elements, found %llu; the file is cut short or "
             "longer than its header says",
             path.c_str(), (ull)bytes, (ull)(size - array.begin));
  return array;
}
