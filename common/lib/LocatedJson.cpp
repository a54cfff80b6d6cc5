//===- LocatedJson.cpp - JSON with source locations -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. nlohmann's parser reads the text through an iterator that counts the bytes read.
//  2. The parser reports a token right after it has read the last byte of the token. For a number,
//     it has already read one byte more. The offset at which a token begins is found by walking
//     back over the bytes of the token.
//  3. A binary search in the offsets of all lines converts an offset to line and column.
//
// The time is O(bytes + tokens · log lines).
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/LocatedJson.h"
#include "fsdpcommon/InputStream.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

using namespace fsdpcommon;

static constexpr size_t maxSize = 16 << 20, maxDepth = 64;

const JsonMember *JsonValue::find(std::string_view name) const {
  auto found = std::find_if(members.begin(), members.end(),
                            [&](const JsonMember &member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

template <typename T>
static std::optional<T> readNumber(const JsonValue &value) {
  T number = 0;
  const char *end = value.text.data() + value.text.size();
  auto [at, error] = std::from_chars(value.text.data(), end, number);
  return error == std::errc() && at == end ? std::optional<T>(number) : std::nullopt;
}

std::optional<int64_t> JsonValue::asSigned() const {
  return is(Kind::integer) ? readNumber<int64_t>(*this) : std::nullopt;
}

std::optional<uint64_t> JsonValue::asUnsigned() const {
  return is(Kind::integer) ? readNumber<uint64_t>(*this) : std::nullopt;
}

std::optional<double> JsonValue::asDouble() const {
  if (!is(Kind::integer) && !is(Kind::number))
    return std::nullopt;
  // If readNumber() fails, the number is too close to 0 for a double, because the parser refuses
  // numbers that are too large.
  return readNumber<double>(*this).value_or(0);
}

std::string JsonValue::describe() const {
  switch (kind) {
  case Kind::null:
    return "null";
  case Kind::boolean:
    return text;
  case Kind::integer:
  case Kind::number:
    return "the number " + shortText(text);
  case Kind::string:
    return "the string \"" + shortText(text) + "\"";
  case Kind::array:
    return elements.empty() ? "an empty list" : "a list of " + std::to_string(elements.size());
  case Kind::object:
    return "an object";
  }
  return "";
}

namespace {

/// Iterates over the text. Stores in *offset how many bytes have been read.
class NotingIterator {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  NotingIterator(const char *at, size_t *offset) : at(at), offset(offset) {}
  reference operator*() const { return *at; }
  NotingIterator &operator++() {
    ++at, ++*offset;
    return *this;
  }
  NotingIterator operator++(int) {
    NotingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const NotingIterator &other) const { return at == other.at; }
  bool operator!=(const NotingIterator &other) const { return at != other.at; }

private:
  const char *at;
  size_t *offset;
};

/// Builds the tree of JSON values from the events of the parser. The stack contains pointers to the
/// open objects and lists, whose ends have not been read yet. The pointers stay valid, because
/// elements are appended only to the innermost open value.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(std::string_view text, JsonProblem &problem) : text(text), problem(problem) {
    lines.push_back(0);
    for (size_t index = 0; index < text.size(); ++index)
      if (text[index] == '\n')
        lines.push_back(index + 1);
  }
  size_t *getOffset() { return &offset; }
  JsonValue take() { return std::move(root); }

  bool null() override { return scalar(JsonValue::Kind::null, offset - 4); }
  bool boolean(bool value) override {
    return scalar(JsonValue::Kind::boolean, offset - (value ? 4 : 5));
  }
  bool number_integer(number_integer_t) override { return number(JsonValue::Kind::integer); }
  bool number_unsigned(number_unsigned_t) override { return number(JsonValue::Kind::integer); }
  bool number_float(number_float_t, const string_t &) override {
    return number(JsonValue::Kind::number);
  }
  bool string(string_t &value) override {
    JsonValue *added = add(JsonValue::Kind::string, openingQuote());
    added->text = value;
    return true;
  }
  bool binary(binary_t &) override { return true; } // not in JSON
  bool start_object(size_t) override { return open(JsonValue::Kind::object); }
  bool start_array(size_t) override { return open(JsonValue::Kind::array); }
  bool end_object() override {
    stack.pop_back();
    names.pop_back();
    return true;
  }
  bool end_array() override { return end_object(); }
  bool key(string_t &name) override {
    auto [line, column] = locate(openingQuote());
    if (!names.back().insert(name).second) {
      problem = {line, column, "\"" + shortText(name) + "\" is given twice in one object"};
      return false;
    }
    stack.back()->members.push_back({name, line, column, {}});
    return true;
  }
  bool parse_error(size_t position, const std::string &token,
                   const nlohmann::detail::exception &error) override {
    std::string_view what = error.what();
    constexpr int outOfRange = 406;
    if (error.id == outOfRange) {
      auto [line, column] = locate(position - token.size());
      problem = {line, column,
                 "expected a number that a double can hold, found " + shortText(token)};
      return false;
    }
    // `what` is "[json.exception.parse_error.101] parse error at line 1, column 2: DETAILS".
    size_t begin = what.find(": ");
    auto [line, column] = locate(position ? position - 1 : 0);
    what = what.substr(begin == std::string_view::npos ? 0 : begin + 2);
    // DETAILS may end with "last read: '...'", which quotes a string or a number of the file. The
    // quoted text is shortened.
    size_t last = what.find("; last read: ");
    problem = {line, column, "not JSON: " + std::string(what.substr(0, last))};
    if (last != std::string_view::npos)
      problem.message += shortText(what.substr(last));
    return false;
  }

private:
  std::pair<unsigned, unsigned> locate(size_t at) const {
    size_t line = std::upper_bound(lines.begin(), lines.end(), at) - lines.begin();
    return {line, at - lines[line - 1] + 1};
  }
  /// Returns the offset of the opening quote of the string that ends at `offset`.
  size_t openingQuote() const {
    size_t at = offset - 1;
    while (at > 0) {
      if (text[--at] != '"')
        continue;
      size_t slashes = 0;
      while (slashes < at && text[at - 1 - slashes] == '\\')
        ++slashes;
      if (slashes % 2 == 0)
        break;
    }
    return at;
  }
  JsonValue *add(JsonValue::Kind kind, size_t begin) {
    JsonValue *place = &root;
    if (!stack.empty() && stack.back()->is(JsonValue::Kind::array))
      place = &stack.back()->elements.emplace_back();
    else if (!stack.empty())
      place = &stack.back()->members.back().value;
    place->kind = kind;
    std::tie(place->line, place->column) = locate(begin);
    return place;
  }
  bool scalar(JsonValue::Kind kind, size_t begin) {
    add(kind, begin)->text = text.substr(begin, offset - begin);
    return true;
  }
  /// Adds a number. The text of the number is found by walking back from `offset`.
  bool number(JsonValue::Kind kind) {
    auto belongs = [&](size_t at) {
      return std::string_view("0123456789+-.eE").find(text[at]) != std::string_view::npos;
    };
    size_t end = offset;
    while (end > 0 && !belongs(end - 1))
      --end;
    size_t begin = end;
    while (begin > 0 && belongs(begin - 1))
      --begin;
    add(kind, begin)->text = text.substr(begin, end - begin);
    return true;
  }
  bool open(JsonValue::Kind kind) {
    JsonValue *opened = add(kind, offset - 1);
    if (stack.size() == maxDepth) {
      problem = {opened->line, opened->column,
                 "nested more than " + std::to_string(maxDepth) + " deep"};
      return false;
    }
    stack.push_back(opened);
    names.emplace_back();
    return true;
  }

  std::string_view text;
  JsonProblem &problem;
  std::vector<size_t> lines; ///< offsets of the first byte of each line
  size_t offset = 0;         ///< bytes read so far
  JsonValue root;
  std::vector<JsonValue *> stack;
  /// Names of the members that each open value already has.
  std::vector<std::set<std::string>> names;
};

} // namespace

std::optional<JsonValue> fsdpcommon::parseJson(std::string_view text, JsonProblem &problem) {
  TreeBuilder builder(text, problem);
  NotingIterator begin(text.data(), builder.getOffset()), end(text.data() + text.size(), nullptr);
  if (!nlohmann::json::sax_parse(begin, end, &builder))
    return std::nullopt;
  return builder.take();
}

std::optional<JsonValue> fsdpcommon::readJson(const std::string &path, JsonProblem &problem) {
  std::string text, why = readInput(path, maxSize, text);
  if (!why.empty()) {
    problem = {0, 0, why};
    return std::nullopt;
  }
  return parseJson(text, problem);
}
