//===- LocatedJson.h - JSON that knows where it was written -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For files that people write: what is wrong in them can be said with line and
// column. Neither LLVM nor exceptions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_LOCATEDJSON_H
#define FSDPCOMMON_LOCATEDJSON_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpcommon {

struct JsonMember;

/// A value and the place where it begins (both from 1; the column in bytes).
struct JsonValue {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  /// Scalars as they are written; strings decoded.
  std::string text;
  unsigned line = 1, column = 1;
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;

  bool is(Kind other) const { return kind == other; }
  bool isScalar() const { return kind != Kind::array && kind != Kind::object; }
  /// The member of that name; null when there is none.
  const JsonMember *find(std::string_view name) const;
  /// `the string "abc"`, `the number 4`, `a list`.
  std::string describe() const;
};

struct JsonMember {
  std::string name;
  unsigned line = 1, column = 1; ///< of the name
  JsonValue value;
};

/// What is wrong with a file, and where; line 0: with the file as a whole.
struct JsonProblem {
  unsigned line = 0, column = 0;
  std::string message;
};

/// Returns the content of a file of at most 16 MiB, nested at most 64 deep, no name twice in an
/// object; nothing when `problem` says why. A pipe has 10 seconds to deliver what comes next.
std::optional<JsonValue> readJson(const std::string &path, JsonProblem &problem);
/// The same of a text.
std::optional<JsonValue> parseJson(std::string_view text, JsonProblem &problem);

} // namespace fsdpcommon

#endif // FSDPCOMMON_LOCATEDJSON_H
