//===- JsonText.cpp - Errors of JSON texts ------------------ -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library gives no location for a number that is too large. So findLargeNumber() searches for
// the first number outside strings that is beyond the range of a double.
//
//===----------------------------------------------------------------------===//

#include "core/JsonText.h"
#include <cmath>
#include <cstdlib>

using namespace fsdprt;

/// Returns location and text of the number that is too large, as in "line 3, column 7: 1e999".
static std::string findLargeNumber(const std::string &text) {
  size_t line = 1, lineBegin = 0;
  bool isString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      lineBegin = at + 1;
    } else if (c == '"') {
      isString = !isString;
    } else if (isString) {
      at += c == '\\';
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      size_t end = text.find_first_not_of("0123456789+-.eE", at);
      std::string number = text.substr(at, end - at);
      if (std::isinf(std::strtod(number.c_str(), nullptr)))
        return "line " + std::to_string(line) + ", column " + std::to_string(at - lineBegin + 1) +
               ": " + printable(number);
      at += number.size() - 1;
    }
  }
  return "";
}

std::string fsdprt::whyNotJson(const std::string &text, const nlohmann::json::exception &error) {
  constexpr int outOfRange = 406;
  std::string number = error.id == outOfRange ? findLargeNumber(text) : "";
  return number.empty() ? printable(error.what()) : number + " is too large for a double";
}

void fsdprt::checkJsonDepth(const std::string &path, const char *text, size_t size) {
  constexpr size_t deepest = 64;
  size_t depth = 0, line = 1, lineBegin = 0;
  for (size_t at = 0; at < size; ++at) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      lineBegin = at + 1;
    } else if (c == '"') {
      for (++at; at < size && text[at] != '"'; ++at)
        at += text[at] == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > deepest)
        badInput("%s: line %zu, column %zu: expected JSON nested at most %zu deep", path.c_str(),
                 line, at - lineBegin + 1, deepest);
    } else if (c == ']' || c == '}') {
      depth -= depth > 0;
    }
  }
}
