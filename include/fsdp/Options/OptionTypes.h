//===- OptionTypes.h - Types of option values -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the types of the values in Options.def. The function readValue() converts text to a
// value. The function printValue() converts a value to text from which readValue() obtains an equal
// value. All code that reads or prints values calls these two functions. A value therefore has the
// same spelling on the command line, in configuration files, in pass pipelines and in the docs.
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

/// A number of bytes. Its text is a number such as 900000, 512k, 13.5M or 2G, where k, M and G are
/// powers of 1024. The text `auto`, which is stored as -1, means that the compiler chooses a number
/// for the target.
struct Bytes {
  int64_t value = 0;
  constexpr Bytes(int64_t value = 0) : value(value) {}
  constexpr operator int64_t() const { return value; }
};

/// Numbers of transfers that may start before the wait for an earlier transfer of the same kind.
/// There is one number for gathers in the forward, one for gathers in the backward, and one for
/// copies. The value -1 allows as many transfers as are needed to hide their time. As text, `auto`
/// or N sets all three numbers, and a list such as forward=N,backward=N,copy=N sets the numbers
/// that it names.
struct Prefetch {
  int64_t forward = -1, backward = -1, copy = -1;
};

/// Whether the backward gathers parameters again, and among how many neighbouring ranks it gathers
/// them (0 for all ranks). The text is true, false or N, where N is this number of ranks.
struct Reshard {
  bool again = true;
  int64_t within = 0;
};

/// Kinds of buffers that are kept in host memory. The text is `none`, or one or more words with the
/// character + between them.
struct OffloadKinds {
  bool parameters = false, gradients = false, optimizer = false, activations = false;
  /// Whether the optimizer state is kept in a file. The update then copies the state from the file
  /// to host memory.
  bool optimizerFile = false;
  bool any() const { return parameters || gradients || optimizer || activations; }
};

/// A word that stands for one case of an enum. `index` is the integer value of this case.
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

/// Finds `text` in `words`, sets `index` to the enum value of the word that was found, and returns
/// nothing. If `words` do not contain `text`, returns a list of the expected words.
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

/// Return texts from which readValue obtains an equal value. For a list, return one text per
/// element. For any other value, return one text.
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

/// Returns the value of `text`. If `text` is invalid, returns nothing and sets `expected` to the
/// error message of readValue.
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
