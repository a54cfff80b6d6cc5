//===- Lexer.h - Tokens of PTX ----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Syntax". An opcode with all of its modifiers is one token ("ld.global.v2.b32"). A
// directive begins with a dot. Numbers begin with 0x, 0, 0b, a decimal digit, or with 0f and 0d for
// the bits of a float.
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
  uint64_t integer = 0; ///< of Integer; bits of Single and Double

  bool is(char sign) const { return kind == TokenKind::Sign && text[0] == sign; }
};

class Lexer {
public:
  explicit Lexer(const Source &source) : source(source), rest(source.text) {}
  /// Throws an Error for characters that begin no token.
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
