//===- Safetensors.cpp - Weights in the safetensors format ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A SAX handler reads the header without building a tree of values. From the depth of the current
// value, the handler derives which types of values are allowed.
//
//===----------------------------------------------------------------------===//

#include "io/Safetensors.h"
#include "core/Error.h"
#include "fsdpcommon/LocatedJson.h"
#include "fsdpcommon/ShortText.h"
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t maxHeader = 100'000'000;

uint32_t fsdprt::safetensorsSize(const std::string &dtype) {
  static const std::map<std::string, uint32_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

namespace {
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
public:
  HeaderHandler(const std::string &path, std::map<std::string, Tensor> &tensors)
      : path(path), tensors(tensors) {}

  bool start_object(size_t) override {
    if (depth == 1 && metadata) {
      ++depth;
      return true;
    }
    if (depth > 1 || inArray)
      refuseFound("an object");
    ++depth;
    return true;
  }
  bool end_object() override {
    if (depth == 2 && !metadata)
      finishTensor();
    if (depth == 2)
      metadata = false;
    --depth;
    return true;
  }
  bool key(string_t &name) override {
    if (depth == 1) {
      if (!names.insert(name).second)
        refuse("expected each name once");
      current = name;
      metadata = name == "__metadata__";
      tensor = {};
      fields.clear();
    } else {
      field = name;
      if (!fields.insert(name).second)
        refuse("expected '" + printable(name) + "' once");
      if (!metadata && name != "dtype" && name != "shape" && name != "data_offsets")
        refuse("expected dtype, shape and data_offsets, found '" + printable(name) + "'");
    }
    return true;
  }
  bool start_array(size_t) override {
    if (depth != 2 || metadata || inArray || (field != "shape" && field != "data_offsets"))
      refuseFound("an array");
    inArray = true;
    return true;
  }
  bool end_array() override {
    inArray = false;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!inArray)
      refuseFound("the number " + std::to_string(value));
    (field == "shape" ? tensor.shape : offsets).push_back(value);
    return true;
  }
  bool string(string_t &value) override {
    if (depth != 2 || inArray || (!metadata && field != "dtype"))
      refuseFound("the text '" + printable(value) + "'");
    if (!metadata)
      tensor.dtype = value;
    return true;
  }
  bool number_integer(number_integer_t value) override {
    refuse(format("expected a non-negative number, found %lld", (long long)value));
  }
  bool number_float(number_float_t, const string_t &text) override {
    refuse("expected an integer, found " + printable(text));
  }
  bool null() override { refuseFound("null"); }
  bool boolean(bool value) override { refuseFound(value ? "true" : "false"); }
  bool binary(binary_t &) override { refuse("expected text"); }
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    // error.what() is for example "[json.exception...] parse error at line 1, column 7: ...".
    std::string why = error.what();
    size_t begin = why.rfind(" - "), colon = why.find(": ");
    why = begin != std::string::npos   ? why.substr(begin + 3)
          : colon != std::string::npos ? why.substr(colon + 2)
                                       : why;
    // refuse() writes the name in `current` to the message. Clear `current`, because the error may
    // be outside of the tensor with this name.
    current.clear();
    refuse(format("not JSON at byte %zu: %s", position, printable(why).c_str()));
  }

private:
  [[noreturn]] void refuse(const std::string &why) {
    badInput("%s: header%s%s%s: %s", path.c_str(), current.empty() ? "" : ", '",
             printable(current).c_str(), current.empty() ? "" : "'", why.c_str());
  }

  /// Returns a description of the values that are allowed at the current position.
  std::string expected() const {
    if (depth == 0)
      return "an object of tensors";
    if (depth == 1)
      return "an object with dtype, shape and data_offsets";
    if (metadata)
      return "a text for '" + printable(field) + "'";
    if (inArray)
      return "a whole number in " + field;
    return field == "dtype" ? "a text for dtype" : "an array of whole numbers for " + field;
  }
  [[noreturn]] void refuseFound(const std::string &found) {
    refuse("expected " + expected() + ", found " + found);
  }

  static std::string join(const std::vector<uint64_t> &numbers) {
    std::string text;
    for (uint64_t number : numbers)
      text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text;
  }

  void finishTensor() {
    if (fields.size() != 3)
      refuse("expected dtype, shape and data_offsets");
    uint64_t bytes = safetensorsSize(tensor.dtype);
    if (bytes == 0)
      refuse("dtype '" + printable(tensor.dtype) + "' is unknown");
    for (uint64_t dim : tensor.shape)
      if (__builtin_mul_overflow(bytes, dim, &bytes))
        refuse("its shape overflows");
    if (offsets.size() != 2 || offsets[1] < offsets[0] || offsets[1] - offsets[0] != bytes)
      refuse(format("expected data_offsets [begin, end] %llu bytes apart, found [%s]", (ull)bytes,
                    join(offsets).c_str()));
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    offsets.clear();
    tensors.emplace(current, tensor);
  }

  const std::string &path;
  std::map<std::string, Tensor> &tensors;
  std::set<std::string> names, fields;
  std::string current, field;
  Tensor tensor;
  std::vector<uint64_t> offsets;
  int depth = 0;
  bool metadata = false, inArray = false;
};
} // namespace

SafetensorsFile::SafetensorsFile(InputFile opened)
    : path(opened.getPath()), file(std::move(opened)) {
  uint64_t length;
  if (file.size() < sizeof length)
    badInput("%s: expected a safetensors file, found %llu bytes", path.c_str(), (ull)file.size());
  file.read(0, &length, sizeof length);
  if (length > maxHeader)
    badInput("%s: expected a safetensors file, which begins with the length of its header, at most "
             "%llu; found %llu",
             path.c_str(), (ull)maxHeader, (ull)length);
  if (length > file.size() - sizeof length)
    badInput("%s: its header says it has %llu bytes, but %llu follow: not a safetensors file, or "
             "cut short",
             path.c_str(), (ull)length, (ull)(file.size() - sizeof length));
  std::string text(length, '\0');
  file.read(sizeof length, text.data(), length);
  if (length == 0 || text[0] != '{')
    badInput("%s: expected a safetensors header, which begins with '{'", path.c_str());
  dataBegin = sizeof length + length;
  HeaderHandler handler(path, tensors);
  nlohmann::json::sax_parse(text, &handler);
  checkTiling();
}

void SafetensorsFile::checkTiling() const {
  std::vector<std::tuple<uint64_t, uint64_t, std::string>> ranges;
  for (const auto &[name, tensor] : tensors)
    ranges.push_back({tensor.begin, tensor.end, name});
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto &[begin, end, name] : ranges) {
    if (begin != at)
      badInput("%s: expected tensors without gaps or overlaps: '%s' begins at %llu, expected %llu",
               path.c_str(), printable(name).c_str(), (ull)begin, (ull)at);
    at = end;
  }
  if (at != file.size() - dataBegin)
    badInput("%s: expected %llu bytes of tensors, found %llu; the file is cut short or longer "
             "than its header says",
             path.c_str(), (ull)at, (ull)(file.size() - dataBegin));
}

std::vector<std::string> fsdprt::readSafetensorsIndex(const std::string &path) {
  using Kind = fsdpcommon::JsonValue::Kind;
  constexpr uint64_t mostBytes = 256 << 20;
  std::string text = InputFile(path, "the index of weights").readAll(mostBytes);
  fsdpcommon::JsonProblem problem;
  std::optional<fsdpcommon::JsonValue> index = fsdpcommon::parseJson(text, problem);
  if (!index)
    badInput("%s:%u:%u: %s", path.c_str(), problem.line, problem.column, problem.message.c_str());
  const fsdpcommon::JsonMember *files = index->find("weight_map");
  if (!files || !files->value.is(Kind::object))
    badInput("%s: expected a JSON object with a weight_map from names to files", path.c_str());
  std::set<std::string> names;
  for (const auto &[weight, line, column, file] : files->value.members) {
    if (!file.is(Kind::string) || !fsdpcommon::isPrintable(file.text) || file.text.empty() ||
        file.text.find('/') != std::string::npos)
      badInput("%s:%u:%u: expected the name of a file in the same folder, found %s", path.c_str(),
               file.line, file.column, file.describe().c_str());
    names.insert(file.text);
  }
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::vector<std::string> result;
  for (const std::string &name : names)
    result.push_back(directory + name);
  return result;
}

std::string fsdprt::safetensorsHeader(std::vector<TensorEntry> &entries,
                                      const std::map<std::string, std::string> &metadata) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry &a, const TensorEntry &b) {
    uint32_t wideA = safetensorsSize(a.dtype), wideB = safetensorsSize(b.dtype);
    return wideA != wideB ? wideA > wideB : std::tie(a.dtype, a.name) < std::tie(b.dtype, b.name);
  });
  nlohmann::ordered_json header = {{"__metadata__", metadata}};
  uint64_t at = 0;
  for (const TensorEntry &entry : entries) {
    uint64_t bytes = safetensorsSize(entry.dtype);
    for (uint64_t dim : entry.shape)
      bytes *= dim;
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) + text;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path, std::vector<Entry> &entries)
    : file(path, true) {
  std::string header = safetensorsHeader(entries, {{"format", "pt"}});
  file.write(header.data(), header.size());
}
