//===- LocatedJson.h - JSON that knows where it was written -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For files that people write: what is wrong in them can be said with line and
// column. No IR.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_LOCATEDJSON_H
#define FSDP_ANALYSIS_LOCATEDJSON_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

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
  const JsonMember *find(llvm::StringRef name) const;
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

/// Reads a file of at most 16 MiB, nested at most 64 deep, no name twice in an
/// object. Nothing is returned when `problem` says why.
std::optional<JsonValue> readJson(llvm::StringRef path, JsonProblem &problem);
/// The same of a text.
std::optional<JsonValue> parseJson(llvm::StringRef text, JsonProblem &problem);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_LOCATEDJSON_H
