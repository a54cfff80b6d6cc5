//===- LocatedJson.h - JSON with source locations ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses all JSON files that the compiler and the runtime read, except the JSON headers of
// .safetensors files. The parser records the line and the column of each value, so that diagnostics
// can state them. The functions use neither LLVM nor exceptions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_LOCATEDJSON_H
#define FSDPCOMMON_LOCATEDJSON_H

#include "fsdpcommon/ShortText.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpcommon {

struct JsonMember;

/// A value of a JSON file, and the line and the column of its first character. The line and the
/// column are counted from 1. The column is a number of bytes.
struct JsonValue {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  /// The decoded characters of a string. For a number or a literal: its text in the file.
  std::string text;
  unsigned line = 1, column = 1;
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;

  bool is(Kind other) const { return kind == other; }
  bool isScalar() const { return kind != Kind::array && kind != Kind::object; }
  /// Returns the member `name` of an object, or null if there is none.
  const JsonMember *find(std::string_view name) const;
  /// asSigned(), asUnsigned() and asDouble() return the number, or nothing if the value is not a
  /// number or is out of the range of the type.
  std::optional<int64_t> asSigned() const;
  std::optional<uint64_t> asUnsigned() const;
  std::optional<double> asDouble() const;
  /// Returns a description for diagnostics: `the string "abc"`, `the number 4`, `a list of 2`.
  std::string describe() const;
};

struct JsonMember {
  std::string name;
  unsigned line = 1, column = 1; ///< location of the member's name
  JsonValue value;
};

/// An error and its location. Line 0 means that the error concerns the whole file.
struct JsonProblem {
  unsigned line = 0, column = 0;
  std::string message;
};

/// Parses a JSON file of at most 16 MiB, whose values are nested at most 64 levels deep. Refuses an
/// object that contains two members of the same name. On an error, returns nothing and sets
/// `problem`. If the file is a pipe, limits the time of waiting for data as InputStream.h
/// describes.
std::optional<JsonValue> readJson(const std::string &path, JsonProblem &problem);
/// Parses `text` as readJson() parses the content of a file.
std::optional<JsonValue> parseJson(std::string_view text, JsonProblem &problem);

} // namespace fsdpcommon

#endif // FSDPCOMMON_LOCATEDJSON_H
