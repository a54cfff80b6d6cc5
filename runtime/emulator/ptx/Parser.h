//===- Parser.h - From words to functions -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The recursive-descent parser that parse() uses. The parser looks ahead by one token.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_PTX_PARSER_H
#define FSDPRT_EMULATOR_PTX_PARSER_H

#include "emulator/ptx/Lexer.h"
#include "emulator/ptx/Syntax.h"
#include <unordered_map>

namespace fsdprt::emulate {

class Parser {
public:
  explicit Parser(Module &module) : module(module), lexer(module.source) { take(); }
  void parseModule();

private:
  void take() { token = lexer.next(); }
  [[noreturn]] void expected(const char *what);
  void expect(char sign);
  bool accept(char sign);
  bool acceptDirective(std::string_view name);
  uint64_t integer(const char *what, uint64_t limit = UINT64_MAX);
  std::string_view word(const char *what);
  void parseVersion();
  void parseTarget();
  void parseDirective();
  void skipLine(uint32_t line);
  void skipSection();
  bool skipDebugging();
  void parseFunction(bool isEntry);
  void parseParameters(std::vector<const Variable *> &into, bool ofEntry);
  bool parseTuning(Function &parsed);
  void parseSizes(uint32_t (&sizes)[3]);

  void parseRegisters();
  Variable *parseVariable(Space space);
  void parseShape(Variable &variable, uint64_t elements);
  void parseInitial(Variable &variable);
  void parseInitialElements(Variable &variable, unsigned depth);
  void parseInitialElement(Variable &variable);
  void declare(const Variable *variable);
  std::optional<uint32_t> findRegister(std::string_view name) const;
  const Variable *findVariable(std::string_view name) const;

  void parseBody();
  void parseScoped();
  void parseStatement();
  void parseBranchTargets(std::string_view label, Location at);
  Operand parseOperand();
  Operand parseSimple();
  Operand parseNumber();
  Operand parseWord();
  Operand parseAddress();
  uint64_t parseAddend();
  void parseElements(Operand &into, char close);

  struct Scope {
    uint32_t number;
    std::unordered_map<std::string_view, RegisterRange> registers;
    std::unordered_map<std::string_view, const Variable *> variables;
  };

  Module &module;
  Lexer lexer;
  Token token;
  Function *function = nullptr;
  std::vector<Scope> scopes; ///< the open scopes: module, function, and nested { }
  unsigned depth = 0;        ///< number of nested operands that contain the current operand
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_PTX_PARSER_H
