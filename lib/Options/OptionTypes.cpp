//===- OptionTypes.cpp - Types of option values -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Options/OptionTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace mlir::fsdp;
using llvm::StringRef;
using Problem = std::optional<std::string>;

#define WORD(name, word) {static_cast<int>(E::name), word, false},
#define ALIAS(name, word) {static_cast<int>(E::name), word, true},
#define FSDP_ENUM(type, ...)                                                                       \
  template <>                                                                                      \
  llvm::ArrayRef<OptionWord> mlir::fsdp::getWords<type>() {                                        \
    using E = type;                                                                                \
    static constexpr OptionWord words[] = {__VA_ARGS__};                                           \
    return words;                                                                                  \
  }
#include "fsdp/Options/Words.def"

Problem mlir::fsdp::readWord(StringRef text, llvm::ArrayRef<OptionWord> words, int &index) {
  auto found = llvm::find_if(words, [&](const OptionWord &word) { return word.word == text; });
  if (found != words.end()) {
    index = found->index;
    return std::nullopt;
  }
  llvm::SmallVector<StringRef> names;
  for (const OptionWord &word : words)
    if (!word.isAlias && !word.word.empty())
      names.push_back(word.word);
  std::string expected = "expected " + llvm::join(llvm::ArrayRef(names).drop_back(), ", ");
  return expected + (names.size() > 1 ? " or " : "") + names.back().str();
}

StringRef mlir::fsdp::printWord(int index, llvm::ArrayRef<OptionWord> words) {
  return llvm::find_if(words, [&](const OptionWord &word) { return word.index == index; })->word;
}

Problem mlir::fsdp::readValue(StringRef text, bool &value) {
  if (text.empty() || text.equals_insensitive("true") || text == "1") {
    value = true;
    return std::nullopt;
  }
  if (text.equals_insensitive("false") || text == "0") {
    value = false;
    return std::nullopt;
  }
  return "expected true or false";
}

Problem mlir::fsdp::readValue(StringRef text, int64_t &value) {
  return text.getAsInteger(0, value) ? Problem("expected an integer of at most 64 bits")
                                     : std::nullopt;
}

Problem mlir::fsdp::readValue(StringRef text, double &value) {
  return llvm::to_float(text, value) ? std::nullopt : Problem("expected a number");
}

Problem mlir::fsdp::readValue(StringRef text, std::string &value) {
  value = text.str();
  return std::nullopt;
}

Problem mlir::fsdp::readValue(StringRef text, std::vector<std::string> &value) {
  value.push_back(text.str());
  return std::nullopt;
}

/// Returns true if `text` has the form of a number of bytes, but the number is too large.
static bool isTooManyBytes(StringRef text) {
  StringRef digits = text.rtrim("kKmMgG");
  return !digits.empty() && text.size() - digits.size() < 2 &&
         digits.find_first_not_of("0123456789.") == StringRef::npos && digits.count('.') < 2 &&
         digits.split('.').first.ltrim('0').size() > 8;
}

Problem mlir::fsdp::readValue(StringRef text, Bytes &value) {
  StringRef digits = text;
  int64_t number, unit = 1;
  if (text == "auto") {
    value = -1;
    return std::nullopt;
  }
  double fraction;
  if (digits.consume_back_insensitive("k"))
    unit = int64_t(1) << 10;
  else if (digits.consume_back_insensitive("M"))
    unit = int64_t(1) << 20;
  else if (digits.consume_back_insensitive("G"))
    unit = int64_t(1) << 30;
  // Before a unit, accept a dot that has digits on both sides. Round down to whole bytes.
  if (unit > 1 && digits.contains('.') &&
      digits.find_first_not_of("0123456789.") == StringRef::npos && !digits.starts_with(".") &&
      !digits.ends_with(".") && !digits.getAsDouble(fraction)) {
    double bytes = fraction * static_cast<double>(unit);
    if (bytes >= 1 && bytes < 0x1p63) {
      value = static_cast<int64_t>(bytes);
      return std::nullopt;
    }
  } else if (!digits.getAsInteger(10, number) && number >= 0 &&
             number <= std::numeric_limits<int64_t>::max() / unit) {
    value = number * unit;
    return std::nullopt;
  }
  return isTooManyBytes(text)
             ? "expected a number of bytes of at most 9223372036854775807 (8 EiB)"
             : "expected a number of bytes of at least 0, also as 512k, 13.5M or 2G";
}

std::vector<std::string> mlir::fsdp::printValue(bool value) { return {value ? "true" : "false"}; }
std::vector<std::string> mlir::fsdp::printValue(int64_t value) { return {std::to_string(value)}; }
std::vector<std::string> mlir::fsdp::printValue(Bytes value) {
  return {value < 0 ? "auto" : std::to_string(value.value)};
}
std::vector<std::string> mlir::fsdp::printValue(const std::string &value) { return {value}; }
std::vector<std::string> mlir::fsdp::printValue(const std::vector<std::string> &value) {
  return value;
}

std::vector<std::string> mlir::fsdp::printValue(double value) {
  auto print = [&](const auto &formatted) {
    std::string text;
    llvm::raw_string_ostream(text) << formatted;
    return text;
  };
  double read;
  std::string brief = print(llvm::format("%g", value));
  bool isExact = llvm::to_float(StringRef(brief), read) && read == value;
  return {isExact || !std::isfinite(value) ? brief : print(llvm::format("%.17g", value))};
}

/// Parses `auto` as -1, and any other text as a number of at least 0.
static bool readDepth(StringRef text, int64_t &depth) {
  if (text == "auto")
    depth = -1;
  return text == "auto" || (!text.getAsInteger(10, depth) && depth >= 0);
}

Problem mlir::fsdp::readValue(StringRef text, Prefetch &value) {
  int64_t all;
  if (readDepth(text, all)) {
    value = {all, all, all};
    return std::nullopt;
  }
  Prefetch read;
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, depth] = part.split('=');
    int64_t *member = name == "forward"    ? &read.forward
                      : name == "backward" ? &read.backward
                      : name == "copy"     ? &read.copy
                                           : nullptr;
    if (!member || !readDepth(depth, *member))
      return "expected auto or a number of gathers of at least 0, or these by direction as in "
             "forward=2,backward=auto,copy=1";
  }
  value = read;
  return std::nullopt;
}

std::vector<std::string> mlir::fsdp::printValue(const Prefetch &value) {
  auto spell = [](int64_t depth) { return depth < 0 ? "auto" : std::to_string(depth); };
  if (value.forward == value.backward && value.forward == value.copy)
    return {spell(value.forward)};
  return {"forward=" + spell(value.forward) + ",backward=" + spell(value.backward) +
          ",copy=" + spell(value.copy)};
}

Problem mlir::fsdp::readValue(StringRef text, Reshard &value) {
  if (text.empty() || text.equals_insensitive("true") || text.equals_insensitive("false")) {
    value = {!text.equals_insensitive("false"), 0};
    return std::nullopt;
  }
  int64_t ranks;
  if (text.getAsInteger(10, ranks) || ranks < 1)
    return "expected true, false or a number of ranks of at least 1";
  value = {true, ranks};
  return std::nullopt;
}

std::vector<std::string> mlir::fsdp::printValue(const Reshard &value) {
  return {value.within ? std::to_string(value.within) : value.again ? "true" : "false"};
}

Problem mlir::fsdp::readValue(StringRef text, OffloadKinds &value) {
  OffloadKinds kinds;
  llvm::SmallVector<StringRef> words;
  if (text != "none")
    text.split(words, '+');
  for (StringRef word : words) {
    bool *kind = word == "parameters"       ? &kinds.parameters
                 : word == "gradients"      ? &kinds.gradients
                 : word == "optimizer"      ? &kinds.optimizer
                 : word == "optimizer:file" ? &kinds.optimizerFile
                 : word == "activations"    ? &kinds.activations
                                            : nullptr;
    if (!kind || *kind ||
        (word.starts_with("optimizer") && (kinds.optimizer || kinds.optimizerFile)))
      return "expected none, or each of parameters, gradients, optimizer (or optimizer:file) and "
             "activations at most once, joined by +";
    *kind = true;
  }
  kinds.optimizer |= kinds.optimizerFile;
  value = kinds;
  return std::nullopt;
}

std::vector<std::string> mlir::fsdp::printValue(const OffloadKinds &value) {
  llvm::SmallVector<StringRef> words;
  if (value.parameters)
    words.push_back("parameters");
  if (value.gradients)
    words.push_back("gradients");
  if (value.optimizer)
    words.push_back(value.optimizerFile ? "optimizer:file" : "optimizer");
  if (value.activations)
    words.push_back("activations");
  return {words.empty() ? "none" : llvm::join(words, "+")};
}
