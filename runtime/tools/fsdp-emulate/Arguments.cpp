//===- Arguments.cpp - Kernel arguments of fsdp-emulate ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses the values of arguments as doubles or 64-bit integers, and converts them to the types of
// the arguments.
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "InputFile.h"
#include "emulator/arithmetic/Formats.h"
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr uint64_t maxBytes = uint64_t(1) << 33;

static uint64_t bitsOf(double value, Type type) {
  switch (type) {
  case Type::F16:
    return encode(value, formatF16, Rounding::NearestEven, false);
  case Type::BF16:
    return encode(value, formatBF16, Rounding::NearestEven, false);
  case Type::F32:
    return encode(value, formatF32, Rounding::NearestEven, false);
  case Type::F64:
    return bitsAs<uint64_t>(value);
  default:
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

std::string fsdprt::emulate::elementText(const Argument &argument, uint64_t index) {
  unsigned size = sizeOf(argument.type);
  if (!argument.storage->written[index * size])
    return "?";
  uint64_t bits = 0;
  std::memcpy(&bits, argument.storage->bytes + index * size, size);
  switch (argument.type) {
  case Type::F16:
    return format("%g", decode(bits, formatF16));
  case Type::BF16:
    return format("%g", decode(bits, formatBF16));
  case Type::F32:
    return format("%.9g", double(bitsAs<float>(uint32_t(bits))));
  case Type::F64:
    return format("%.17g", bitsAs<double>(bits));
  default:
    break;
  }
  unsigned unused = 64 - 8 * size;
  if (isSigned(argument.type))
    return std::to_string(int64_t(bits << unused) >> unused);
  return std::to_string(bits);
}

/// Returns true if `type` can represent `value`, or -`value` if `isNegative` is true. A type
/// without a sign, such as b32, can represent both the signed and the unsigned integers of its
/// size.
static bool fits(uint64_t value, bool isNegative, Type type) {
  unsigned bits = 8 * sizeOf(type);
  uint64_t half = uint64_t(1) << (bits - 1), largest = half - 1 + half;
  bool isBits = !isSigned(type) && nameOf(type)[0] == 'b';
  if (isNegative)
    return value == 0 || ((isSigned(type) || isBits) && value <= half);
  return value <= (isSigned(type) ? half - 1 : largest);
}

/// Returns false if `value` is finite but becomes infinite when it is converted to `type`.
static bool fits(double value, Type type) {
  const Format &format = type == Type::F16    ? formatF16
                         : type == Type::BF16 ? formatBF16
                                              : formatF32;
  return !std::isfinite(value) || type == Type::F64 ||
         std::isfinite(decode(static_cast<uint32_t>(bitsOf(value, type)), format));
}

/// `text` is a number from the option --arg. Returns the bits of this number as a value of type
/// `type`. Throws Error if `type` cannot represent the number.
static uint64_t parseNumber(const std::string &text, Type type, const std::string &whole) {
  char *end = nullptr;
  errno = 0;
  if (isFloat(type)) {
    double value = std::strtod(text.c_str(), &end);
    bool isTooLarge = errno == ERANGE && std::isinf(value);
    if (end != text.c_str() && !*end && !isTooLarge && fits(value, type))
      return bitsOf(value, type);
  } else {
    bool isNegative = !text.empty() && text[0] == '-';
    const char *digits = text.c_str() + isNegative;
    uint64_t value =
        std::isdigit(static_cast<unsigned char>(*digits)) ? std::strtoull(digits, &end, 0) : 0;
    if (end && !*end && !errno && fits(value, isNegative, type))
      return isNegative ? -value : value;
  }
  badInput("--arg=%s: expected a number of type %s, found %s", printable(whole).c_str(),
           nameOf(type), quoted(text).c_str());
}

static void fillFromFile(Storage &storage, const std::string &path, const std::string &whole) {
  std::string where = "--arg=" + printable(whole) + ": ",
              bytes = readFile(path, storage.size, where);
  if (bytes.size() != storage.size)
    badInput("%sexpected %llu bytes in %s, found %zu", where.c_str(),
             static_cast<unsigned long long>(storage.size), quoted(path).c_str(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), storage.own.begin());
}

/// Returns the next value of a linear congruential generator, which gives the same values on all
/// machines.
static double nextRandom(uint64_t &state, Type type) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  double unit = double(state >> 11) * 0x1p-53;
  return isFloat(type) ? 2 * unit - 1 : std::floor(100 * unit);
}

static void fill(Storage &storage, Type type, const std::string &how, const std::string &whole) {
  if (how == "unwritten")
    return;
  std::fill(storage.written.begin(), storage.written.end(), 1);
  if (how.empty() || how == "zeros")
    return;
  if (how[0] == '@')
    return fillFromFile(storage, how.substr(1), whole);
  bool isRandom = how == "random" || how.substr(0, 7) == "random=";
  if (!isRandom && how != "ones" && how != "iota")
    badInput(
        "--arg=%s: expected zeros, ones, iota, random, random=SEED, unwritten or @FILE, found %s",
        printable(whole).c_str(), quoted(how).c_str());
  uint64_t state = how.size() > 7 ? parseNumber(how.substr(7), Type::U64, whole) : 0;
  unsigned size = sizeOf(type);
  for (uint64_t k = 0; k < storage.size / size; ++k) {
    uint64_t bits = bitsOf(isRandom        ? nextRandom(state, type)
                           : how == "ones" ? 1
                                           : double(k),
                           type);
    std::memcpy(storage.bytes + k * size, &bits, size);
  }
}

static Type parseType(const std::string &name, const std::string &whole) {
  auto type = typeNamed(name);
  bool isPacked = type && (*type == Type::F16x2 || *type == Type::BF16x2 || *type == Type::TF32 ||
                           *type == Type::F32x2 || *type == Type::E4M3x2 || *type == Type::E5M2x2);
  if (!type || isPacked || !sizeOf(*type) || sizeOf(*type) > 8)
    badInput("--arg=%s: expected a type such as u32 or f32, found %s", printable(whole).c_str(),
             quoted(name).c_str());
  return *type;
}

Storage &fsdprt::emulate::addMemory(Type type, uint64_t count, const std::string &how,
                                    const std::string &whole, unsigned index, Emulator &emulator) {
  Storage &storage = emulator.memory().allocate(format("argument %u", index), count * sizeOf(type));
  fill(storage, type, how, whole);
  return storage;
}

Argument fsdprt::emulate::addArgument(const std::string &text, const std::vector<Argument> &before,
                                      Emulator &emulator, Launch &launch) {
  if (text.substr(0, 4) == "map:")
    return addTensorMap(text.substr(4), before, emulator, launch);
  size_t bracket = text.find('['), colon = text.find(':');
  Argument argument;
  argument.type = parseType(text.substr(0, std::min(bracket, colon)), text);
  unsigned size = sizeOf(argument.type);
  if (bracket > colon) {
    uint64_t bits =
        parseNumber(colon == std::string::npos ? "" : text.substr(colon + 1), argument.type, text);
    auto bytes = reinterpret_cast<const uint8_t *>(&bits);
    launch.arguments.emplace_back(bytes, bytes + size);
    return argument;
  }
  size_t close = text.find(']');
  uint64_t count = 0;
  const char *first = text.data() + bracket + 1, *last = text.data() + std::min(close, text.size());
  auto [end, error] = std::from_chars(first, last, count);
  bool isClosed =
      close != std::string::npos && (close + 1 == text.size() || text[close + 1] == ':');
  if (error != std::errc() || end != last || !isClosed || count > maxBytes / size)
    badInput("--arg=%s: expected TYPE[COUNT] or TYPE[COUNT]:FILL, of 8 GiB at most",
             printable(text).c_str());
  argument.storage =
      &addMemory(argument.type, count, close + 2 <= text.size() ? text.substr(close + 2) : "", text,
                 before.size(), emulator);
  launch.argument(argument.storage->base);
  return argument;
}
