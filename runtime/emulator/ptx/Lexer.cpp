//===- Lexer.cpp - Tokens of PTX --------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The lexer reads the text once from its beginning to its end. A token refers to a part of the
// text, and does not copy this part.
//
//===----------------------------------------------------------------------===//

#include "emulator/ptx/Lexer.h"
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace fsdprt::emulate;

static bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
static bool isDigit(char c) { return c >= '0' && c <= '9'; }
static bool isFollow(char c) { return (isLetter(c) && c != '%') || isDigit(c); }

static int digitValue(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

void Lexer::advance(size_t count) {
  for (char c : rest.substr(0, count)) {
    if (c == '\n')
      at = {at.line + 1, 1};
    else
      ++at.column;
  }
  rest.remove_prefix(count);
}

void Lexer::skipBlanks() {
  while (!rest.empty()) {
    char c = rest[0];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
      advance(1);
    } else if (rest.substr(0, 2) == "//") {
      size_t end = rest.find('\n');
      advance(end == std::string_view::npos ? rest.size() : end);
    } else if (rest.substr(0, 2) == "/*") {
      size_t end = rest.find("*/", 2);
      if (end == std::string_view::npos)
        source.fail(at, "this comment has no end: expected */");
      advance(end + 2);
    } else {
      return;
    }
  }
}

Token Lexer::take(TokenKind kind, size_t count) {
  Token token;
  token.kind = kind;
  token.at = at;
  token.text = rest.substr(0, count);
  advance(count);
  return token;
}

/// Returns the length of a name, including each ".part" and each "::part" that follows the name
/// without blanks.
size_t Lexer::wordLength() const {
  size_t i = 1;
  for (;;) {
    while (i < rest.size() && isFollow(rest[i]))
      ++i;
    size_t joint = 0;
    if (i < rest.size() && rest[i] == '.')
      joint = 1;
    else if (rest.substr(i, 2) == "::")
      joint = 2;
    if (!joint || i + joint >= rest.size() || !isFollow(rest[i + joint]))
      return i;
    i += joint;
  }
}

Token Lexer::bits(TokenKind kind, unsigned digits) {
  uint64_t value = 0;
  for (unsigned i = 0; i < digits; ++i) {
    int digit = 2 + i < rest.size() ? digitValue(rest[2 + i]) : 99;
    if (digit > 15)
      source.fail(at, "expected %u hexadecimal digits after '%.2s'", digits, rest.data());
    value = value << 4 | digit;
  }
  Token token = take(kind, 2 + digits);
  token.integer = value;
  return token;
}

Token Lexer::decimalFloat() {
  size_t length = 0;
  while (length < rest.size() && (isDigit(rest[length]) || rest[length] == '.'))
    ++length;
  if (length < rest.size() && (rest[length] == 'e' || rest[length] == 'E')) {
    size_t exponent = length + 1;
    if (exponent < rest.size() && (rest[exponent] == '+' || rest[exponent] == '-'))
      ++exponent;
    if (exponent < rest.size() && isDigit(rest[exponent]))
      for (length = exponent; length < rest.size() && isDigit(rest[length]);)
        ++length;
  }
  std::string text(rest.substr(0, length));
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (*end)
    source.fail(at, "expected a number, found %s", quoted(text).c_str());
  Token token = take(TokenKind::Double, length);
  std::memcpy(&token.integer, &value, sizeof value);
  return token;
}

/// Reads a number (PTX ISA, "Integer Constants" and "Floating-Point Constants").
Token Lexer::number() {
  char second = rest.size() > 1 ? rest[1] : '\0';
  if (rest[0] == '0' && (second == 'f' || second == 'F'))
    return bits(TokenKind::Single, 8);
  if (rest[0] == '0' && (second == 'd' || second == 'D'))
    return bits(TokenKind::Double, 16);
  unsigned base = 10, start = 0;
  if (rest[0] == '0' && (second == 'x' || second == 'X'))
    base = 16, start = 2;
  else if (rest[0] == '0' && (second == 'b' || second == 'B'))
    base = 2, start = 2;
  size_t length = start;
  while (length < rest.size() && digitValue(rest[length]) < static_cast<int>(base))
    ++length;
  if (base == 10 && length < rest.size() &&
      (rest[length] == '.' || rest[length] == 'e' || rest[length] == 'E'))
    return decimalFloat();
  if (base == 10 && rest[0] == '0')
    base = 8;
  uint64_t value = 0;
  for (size_t i = start; i < length; ++i) {
    unsigned digit = digitValue(rest[i]);
    if (digit >= base)
      source.fail(at, "digit %u in a number of base %u", digit, base);
    if (value > (UINT64_MAX - digit) / base)
      source.fail(at, "%s does not fit into 64 bits", quoted(rest.substr(0, length)).c_str());
    value = value * base + digit;
  }
  if (length == start)
    source.fail(at, "expected digits after '%.2s'", rest.data());
  if (length < rest.size() && rest[length] == 'U')
    ++length;
  Token token = take(TokenKind::Integer, length);
  token.integer = value;
  return token;
}

Token Lexer::next() {
  skipBlanks();
  if (rest.empty())
    return take(TokenKind::End, 0);
  char c = rest[0];
  if (isLetter(c))
    return take(TokenKind::Word, wordLength());
  if (isDigit(c))
    return number();
  if (c == '.' && rest.size() > 1 && isLetter(rest[1])) {
    size_t length = 1;
    while (length < rest.size() && isFollow(rest[length]))
      ++length;
    return take(TokenKind::Directive, length);
  }
  if (c == '"') {
    size_t end = rest.find_first_of("\"\n", 1);
    if (end == std::string_view::npos || rest[end] != '"')
      source.fail(at, "this string has no end: expected \" on the same line");
    return take(TokenKind::String, end + 1);
  }
  if (c && std::strchr("{}[]()<>,;:=+-*/~!|&^@?.", c))
    return take(TokenKind::Sign, 1);
  source.fail(at, "unexpected character %s", quoted(rest.substr(0, 1)).c_str());
}
