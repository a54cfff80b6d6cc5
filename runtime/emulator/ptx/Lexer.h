//===- Lexer.h - Tokens of PTX ----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Splits PTX into tokens (PTX ISA, "Syntax"). An opcode and its modifiers ("ld.global.v2.b32") are
// one token. A directive begins with a dot. Numbers begin with a decimal digit. The prefixes 0x, 0
// and 0b select the base of an integer. After 0f and 0d, hexadecimal digits give the bits of a
// float or double.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_PTX_LEXER_H
#define FSDPRT_EMULATOR_PTX_LEXER_H

#include "emulator/ptx/Source.h"

namespace fsdprt::emulate {

enum class TokenKind : uint8_t { End, Word, Directive, Integer, Single, Double, String, Sign };

struct Token {
  TokenKind kind = TokenKind::End;
  Location at;
  std::string_view text;
  uint64_t integer = 0; ///< value of an Integer; bits of a Single or Double

  bool is(char sign) const { return kind == TokenKind::Sign && text[0] == sign; }
};

class Lexer {
public:
  explicit Lexer(const Source &source) : source(source), rest(source.text) {}
  /// Returns the next token. Throws an Error if the text does not continue with a valid token.
  Token next();

private:
  void skipBlanks();
  void advance(size_t count);
  Token take(TokenKind kind, size_t count);
  Token number();
  Token bits(TokenKind kind, unsigned digits);
  Token decimalFloat();
  size_t wordLength() const;

  const Source &source;
  std::string_view rest;
  Location at{1, 1};
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_PTX_LEXER_H
