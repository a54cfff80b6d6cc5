//===- TensorArguments.cpp - Tensor maps as arguments -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses a text such as "bf16[64,128]:box=64,32:swizzle=128:random". Colons separate the parts of
// the text. The first part is a type with sizes, the next parts are settings, and the last part
// names the method by which the memory is filled, such as "random".
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "emulator/TensorMap.h"
#include <charconv>
#include <iterator>
#include <set>

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr uint64_t maxElements = uint64_t(1) << 30;

[[noreturn]] static void wrong(const std::string &text, const std::string &what) {
  badInput("--arg=map:%s: %s", printable(text).c_str(), what.c_str());
}

static std::vector<uint64_t> numbers(const std::string &list, const std::string &text) {
  std::vector<uint64_t> result;
  for (size_t at = 0; at <= list.size();) {
    size_t end = std::min(list.find(',', at), list.size());
    uint64_t value = 0;
    auto [stop, error] = std::from_chars(list.data() + at, list.data() + end, value);
    if (error != std::errc() || stop != list.data() + end)
      wrong(text, format("expected numbers separated by commas, found %s", quoted(list).c_str()));
    result.push_back(value);
    at = end + 1;
  }
  return result;
}

/// Parses a list of `count` numbers and stores these numbers in `to`. Throws Error if the list
/// contains more or fewer numbers.
template <typename T>
static void copyNumbers(const std::string &list, unsigned count, T *to, const char *what,
                        const std::string &text) {
  std::vector<uint64_t> found = numbers(list, text);
  if (found.size() != count)
    wrong(text, format("expected %u numbers of %s, found %zu", count, what, found.size()));
  for (unsigned k = 0; k < count; ++k) {
    to[k] = found[k];
    if (to[k] != found[k])
      wrong(text,
            format("%llu is too large for %s", static_cast<unsigned long long>(found[k]), what));
  }
}

namespace {
struct Settings {
  TensorMap map;
  std::set<std::string> given;
  std::string fill;
  const Argument *of = nullptr;
};
} // namespace

static TensorType typeOf(const std::string &name, const std::string &text) {
  static const std::pair<const char *, TensorType> types[] = {
      {"u8", TensorType::U8},   {"u16", TensorType::U16},   {"u32", TensorType::U32},
      {"s32", TensorType::S32}, {"u64", TensorType::U64},   {"s64", TensorType::S64},
      {"f16", TensorType::F16}, {"bf16", TensorType::BF16}, {"f32", TensorType::F32},
      {"f64", TensorType::F64}, {"tf32", TensorType::TF32}};
  for (auto [known, type] : types)
    if (name == known)
      return type;
  wrong(text, format("expected a type such as bf16 or f32, found %s", quoted(name).c_str()));
}

/// If `part` is a setting such as "box=64,32", stores its value in `settings`. Returns false if
/// `part` is not a setting.
static bool takeSetting(const std::string &part, Settings &settings,
                        const std::vector<Argument> &before, const std::string &text) {
  size_t sign = part.find('=');
  std::string name = part.substr(0, sign),
              value = sign == std::string::npos ? "" : part.substr(sign + 1);
  TensorMap &map = settings.map;
  if (name == "box") {
    copyNumbers(value, map.rank, map.box, "the box", text);
  } else if (name == "steps") {
    copyNumbers(value, map.rank, map.steps, "steps", text);
  } else if (name == "strides") {
    copyNumbers(value, map.rank - 1, map.strides, "strides", text);
  } else if (name == "swizzle") {
    if (value != "32" && value != "64" && value != "128")
      wrong(text, format("expected a swizzle of 32, 64 or 128, found %s", quoted(value).c_str()));
    map.swizzle = value == "32"   ? TensorSwizzle::Bytes32
                  : value == "64" ? TensorSwizzle::Bytes64
                                  : TensorSwizzle::Bytes128;
  } else if (name == "outside") {
    if (value != "nan")
      wrong(text, format("expected outside=nan, found %s", quoted(value).c_str()));
    map.fill = TensorFill::NaN;
  } else if (name == "of") {
    uint64_t index = 0;
    copyNumbers(value, 1, &index, "of", text);
    if (index >= before.size() || !before[index].storage)
      wrong(text, format("expected the index of an earlier argument with memory, found %s",
                         quoted(value).c_str()));
    settings.of = &before[index];
  } else {
    return false;
  }
  if (!settings.given.insert(name).second)
    wrong(text, format("expected %s once", name.c_str()));
  return true;
}

static Settings settingsOf(const std::string &text, const std::vector<Argument> &before) {
  Settings settings;
  size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open ||
      (close + 1 < text.size() && text[close + 1] != ':'))
    wrong(text, "expected TYPE[D0,D1,...]:box=B0,B1,...");
  settings.map.type = typeOf(text.substr(0, open), text);
  std::vector<uint64_t> sizes = numbers(text.substr(open + 1, close - open - 1), text);
  if (sizes.size() > maxTensorRank)
    wrong(text, format("expected %u dimensions at most, found %zu", maxTensorRank, sizes.size()));
  settings.map.rank = sizes.size();
  std::copy(sizes.begin(), sizes.end(), settings.map.sizes);
  for (size_t at = close + 2; at <= text.size();) {
    size_t end = std::min(text.find(':', at), text.size());
    if (!takeSetting(text.substr(at, end - at), settings, before, text)) {
      settings.fill = text.substr(at);
      break;
    }
    at = end + 1;
  }
  if (!settings.given.count("box"))
    wrong(text, "expected box=B0,B1,...");
  return settings;
}

Argument fsdprt::emulate::addTensorMap(const std::string &text, const std::vector<Argument> &before,
                                       Emulator &emulator, Launch &launch) {
  Settings settings = settingsOf(text, before);
  TensorMap &map = settings.map;
  uint64_t count = 1;
  for (unsigned d = 0; d < map.rank; ++d) {
    if (map.sizes[d] > maxElements || (count *= map.sizes[d]) > maxElements)
      wrong(text, "expected 2^30 elements at most");
    if (!settings.given.count("strides") && d + 1 < map.rank)
      map.strides[d] = count * map.elementBytes();
  }
  Argument argument;
  argument.type = map.elementType();
  if (settings.of)
    argument = *settings.of;
  else
    argument.storage =
        &addMemory(argument.type, count, settings.fill, "map:" + text, before.size(), emulator);
  map.address = argument.storage->base;
  launch.argument(encodeTensorMap(map));
  return argument;
}
