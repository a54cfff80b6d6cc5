//===- ParseStatements.cpp - Statements of PTX ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses PTX ISA, "Statements" and "Instruction Operands". A label or register that is declared in
// a nested { } exists only within these braces.
//
//===----------------------------------------------------------------------===//

#include "emulator/ptx/Parser.h"
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr unsigned maxScopes = 64, maxOperandDepth = 4;

void Parser::parseBody() {
  expect('{');
  unsigned outer = scopes.size();
  for (;;) {
    if (token.is('{')) {
      if (scopes.size() > outer + maxScopes)
        expected("braces inside one another at most 64 times");
      take();
      uint32_t number = function->scopeParents.size();
      function->scopeParents.push_back(scopes.back().number);
      scopes.push_back({number, {}, {}});
    } else if (token.is('}')) {
      take();
      if (scopes.size() == outer)
        return;
      scopes.pop_back();
    } else {
      parseScoped();
    }
  }
}

void Parser::parseScoped() {
  if (skipDebugging() || accept(';'))
    return;
  if (acceptDirective("reg"))
    return parseRegisters();
  for (Space space : {Space::Local, Space::Shared, Space::Param, Space::Const, Space::Global})
    if (acceptDirective(nameOf(space))) {
      do
        function->variables.push_back(parseVariable(space));
      while (accept(','));
      return expect(';');
    }
  if (token.kind != TokenKind::Word && !token.is('@'))
    expected("a statement");
  parseStatement();
}

void Parser::parseStatement() {
  Statement statement;
  statement.at = token.at;
  statement.scope = scopes.back().number;
  if (accept('@')) {
    statement.isGuardNegated = accept('!');
    Location at = token.at;
    std::string_view name = word("a predicate");
    auto index = findRegister(name);
    if (!index || function->registers[*index] != Type::Pred)
      module.source.fail(at, "expected a predicate after '@', found %s", quoted(name).c_str());
    statement.guard = *index;
    statement.at = token.at;
  }
  statement.opcode = word("an instruction");
  if (statement.guard < 0 && accept(':')) {
    if (token.kind == TokenKind::Directive && token.text == ".branchtargets")
      return parseBranchTargets(statement.opcode, statement.at);
    auto [known, isNew] = function->labels.emplace(
        std::make_pair(statement.scope, statement.opcode), function->statements.size());
    if (!isNew)
      module.source.fail(statement.at, "a second label %s in one scope",
                         quoted(statement.opcode).c_str());
    return;
  }
  if (!token.is(';')) {
    do
      statement.operands.push_back(parseOperand());
    while (accept(','));
  }
  expect(';');
  function->statements.push_back(std::move(statement));
}

/// Parses label: .branchtargets L1, L2;
void Parser::parseBranchTargets(std::string_view label, Location at) {
  take();
  std::vector<Operand> targets;
  do
    targets.push_back(parseSimple());
  while (accept(','));
  expect(';');
  if (!function->branchTargets
           .emplace(std::make_pair(scopes.back().number, label), std::move(targets))
           .second)
    module.source.fail(at, "a second label %s in one scope", quoted(label).c_str());
}

Operand Parser::parseOperand() {
  Operand first = parseSimple();
  if (!accept('|'))
    return first;
  Operand pair;
  pair.kind = OperandKind::Pair;
  pair.at = first.at;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(parseSimple());
  return pair;
}

void Parser::parseElements(Operand &into, char close) {
  if (++depth > maxOperandDepth)
    expected("operands inside one another at most 4 times");
  take();
  if (!accept(close)) {
    do
      into.elements.push_back(parseOperand());
    while (accept(','));
    expect(close);
  }
  --depth;
}

Operand Parser::parseSimple() {
  Operand operand;
  operand.at = token.at;
  if (token.is('{')) {
    operand.kind = OperandKind::Vector;
    parseElements(operand, '}');
    return operand;
  }
  if (token.is('(')) {
    operand.kind = OperandKind::List;
    parseElements(operand, ')');
    return operand;
  }
  if (token.is('['))
    return parseAddress();
  if (token.kind == TokenKind::Word)
    return parseWord();
  return parseNumber();
}

Operand Parser::parseNumber() {
  Operand operand;
  operand.at = token.at;
  bool isNot = false, isMinus = false;
  if (accept('!')) {
    if (token.kind == TokenKind::Word) {
      operand = parseWord();
      operand.isNegated = true;
      if (operand.kind != OperandKind::Register || function->registers[operand.index] != Type::Pred)
        module.source.fail(operand.at, "expected a predicate after '!'");
      return operand;
    }
    isNot = true;
  } else if (accept('-')) {
    isMinus = true;
  }
  switch (token.kind) {
  case TokenKind::Integer:
    operand.kind = OperandKind::Integer;
    break;
  case TokenKind::Single:
    operand.kind = OperandKind::Single;
    break;
  case TokenKind::Double:
    operand.kind = OperandKind::Double;
    break;
  default:
    expected("an operand");
  }
  operand.integer = token.integer;
  take();
  if (isNot)
    operand.integer = !operand.integer;
  if (isMinus && operand.kind == OperandKind::Integer)
    operand.integer = -operand.integer;
  else if (isMinus)
    operand.integer ^= operand.kind == OperandKind::Single ? uint64_t(1) << 31 : uint64_t(1) << 63;
  return operand;
}

/// Parses an operand that begins with a word: a register, a variable to which a constant may be
/// added, or a name that is resolved later.
Operand Parser::parseWord() {
  Operand operand;
  operand.at = token.at;
  operand.text = token.text;
  if (token.text == "_") {
    take();
    return operand;
  }
  auto index = function ? findRegister(token.text) : std::nullopt;
  if (index) {
    operand.kind = OperandKind::Register;
    operand.index = *index;
    take();
    return operand;
  }
  operand.variable = findVariable(token.text);
  operand.kind = operand.variable ? OperandKind::Variable : OperandKind::Name;
  take();
  if (operand.variable)
    operand.integer = parseAddend();
  return operand;
}

/// Parses "+8", "-8", "+-8" or nothing.
uint64_t Parser::parseAddend() {
  if (!token.is('+') && !token.is('-'))
    return 0;
  bool isMinus = token.is('-');
  take();
  if (accept('-'))
    isMinus = !isMinus;
  uint64_t addend = integer("a number of bytes");
  return isMinus ? -addend : addend;
}

/// Parses an address operand such as [base], [base+8], [base+-8], [base, {x, y}] or [8].
Operand Parser::parseAddress() {
  Operand operand;
  operand.kind = OperandKind::Address;
  operand.at = token.at;
  if (++depth > maxOperandDepth)
    expected("operands inside one another at most 4 times");
  expect('[');
  operand.elements.push_back(parseSimple());
  Operand &base = operand.elements[0];
  if (base.kind == OperandKind::Name)
    module.source.fail(base.at, "%s is neither a register nor a variable",
                       quoted(base.text).c_str());
  if (base.kind != OperandKind::Register && base.kind != OperandKind::Variable &&
      base.kind != OperandKind::Integer)
    module.source.fail(base.at, "expected a register, a variable or a number as address");
  std::swap(operand.integer, base.integer);
  if (base.kind == OperandKind::Register)
    operand.integer = parseAddend();
  while (accept(','))
    operand.elements.push_back(parseOperand());
  expect(']');
  --depth;
  return operand;
}
