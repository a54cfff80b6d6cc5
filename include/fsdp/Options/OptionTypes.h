//===- OptionTypes.h - Types of option values -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the types of the values in Options.def. readValue parses text and printValue prints text
// that readValue parses to an equal value. Values therefore have one spelling on the command line,
// in configuration files, in pass pipelines and in the docs.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_OPTIONTYPES_H
#define FSDP_OPTIONS_OPTIONTYPES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mlir::fsdp {

#define WORD(name, word) name,
#define ALIAS(name, word)
#define FSDP_ENUM(type, words) enum class type { words };
#include "fsdp/Options/Words.def"

/// A number of bytes: 900000, 512k, 13.5M or 2G, where k, M and G are powers of 1024. The value -1,
/// as text `auto`, means that the compiler chooses a number for the target.
struct Bytes {
  int64_t value = 0;
  constexpr Bytes(int64_t value = 0) : value(value) {}
  constexpr operator int64_t() const { return value; }
};

/// Number of gathers of the forward or of the backward, or of copies, that may start before the
/// wait for an earlier one. -1 allows as many as are needed to hide the transfers. The text is auto
/// or N for all three numbers, or some of forward=N,backward=N,copy=N.
struct Prefetch {
  int64_t forward = -1, backward = -1, copy = -1;
};

/// Whether the backward gathers parameters again, and among how many neighbouring ranks (0 for
/// all). The text is true, false or N.
struct Reshard {
  bool again = true;
  int64_t within = 0;
};

/// Kinds of buffers that are kept in host memory. The text is none, or words joined by +.
struct OffloadKinds {
  bool parameters = false, gradients = false, optimizer = false, activations = false;
  /// Whether the optimizer state is kept in a file and copied to the host for the update.
  bool optimizerFile = false;
  bool any() const { return parameters || gradients || optimizer || activations; }
};

/// A word for a case of an enum. `index` is the integer value of the case.
struct OptionWord {
  int index;
  llvm::StringRef word;
  bool isAlias;
};

/// Returns the words that Words.def lists for an enum.
template <typename Enum>
llvm::ArrayRef<OptionWord> getWords();
#define WORD(name, word)
#define ALIAS(name, word)
#define FSDP_ENUM(type, words)                                                                     \
  template <>                                                                                      \
  llvm::ArrayRef<OptionWord> getWords<type>();
#include "fsdp/Options/Words.def"

/// Finds `text` in `words` and sets `index` to the enum value of the word. If the word is unknown,
/// returns the list of the expected words, else nothing.
std::optional<std::string> readWord(llvm::StringRef text, llvm::ArrayRef<OptionWord> words,
                                    int &index);
/// Returns the word for the enum value `index`.
llvm::StringRef printWord(int index, llvm::ArrayRef<OptionWord> words);

/// Parse `text` and store the result in `value`. If `value` is a list, append one element to it.
/// Return an error such as "expected auto, always or never", or nothing.
std::optional<std::string> readValue(llvm::StringRef text, bool &value);
std::optional<std::string> readValue(llvm::StringRef text, int64_t &value);
std::optional<std::string> readValue(llvm::StringRef text, double &value);
std::optional<std::string> readValue(llvm::StringRef text, std::string &value);
std::optional<std::string> readValue(llvm::StringRef text, std::vector<std::string> &value);
std::optional<std::string> readValue(llvm::StringRef text, Bytes &value);
std::optional<std::string> readValue(llvm::StringRef text, Prefetch &value);
std::optional<std::string> readValue(llvm::StringRef text, Reshard &value);
std::optional<std::string> readValue(llvm::StringRef text, OffloadKinds &value);
template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
std::optional<std::string> readValue(llvm::StringRef text, Enum &value) {
  int index;
  std::optional<std::string> expected = readWord(text, getWords<Enum>(), index);
  if (!expected)
    value = static_cast<Enum>(index);
  return expected;
}

/// Return texts that readValue parses to an equal value: one text, or one per list element.
std::vector<std::string> printValue(bool value);
std::vector<std::string> printValue(int64_t value);
std::vector<std::string> printValue(double value);
std::vector<std::string> printValue(const std::string &value);
std::vector<std::string> printValue(const std::vector<std::string> &value);
std::vector<std::string> printValue(Bytes value);
std::vector<std::string> printValue(const Prefetch &value);
std::vector<std::string> printValue(const Reshard &value);
std::vector<std::string> printValue(const OffloadKinds &value);
template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
std::vector<std::string> printValue(Enum value) {
  return {printWord(static_cast<int>(value), getWords<Enum>()).str()};
}

/// Returns the value of `text`. On an error, returns nothing and sets `expected` to the message.
template <typename T>
std::optional<T> parseValue(llvm::StringRef text, std::string &expected) {
  T value{};
  if (std::optional<std::string> problem = readValue(text, value)) {
    expected = std::move(*problem);
    return std::nullopt;
  }
  return value;
}

} // namespace mlir::fsdp

#endif // FSDP_OPTIONS_OPTIONTYPES_H
