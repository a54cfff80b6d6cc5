//===- ParseVariables.cpp - Declarations of PTX -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses PTX ISA, "Variables": single registers and numbered ranges of registers, and variables
// with alignments, array dimensions and initial values.
//
//===----------------------------------------------------------------------===//

#include "emulator/ptx/Parser.h"
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr uint64_t maxRegisters = 1 << 20, maxVariableBytes = uint64_t(1) << 30;

/// Splits "%r12" into "%r" and 12. Returns false for names such as "x" and "%r01".
static bool splitNumber(std::string_view name, std::string_view &stem, uint32_t &number) {
  size_t at = name.size();
  while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
    --at;
  size_t digits = name.size() - at;
  if (!digits || digits > 7 || (digits > 1 && name[at] == '0'))
    return false;
  stem = name.substr(0, at);
  number = 0;
  for (char c : name.substr(at))
    number = number * 10 + (c - '0');
  return true;
}

void Parser::parseRegisters() {
  if (token.kind == TokenKind::Directive && (token.text == ".v2" || token.text == ".v4"))
    module.source.fail(token.at, "registers that are vectors are not supported");
  if (token.kind != TokenKind::Directive)
    expected("the type of registers");
  auto type = typeNamed(token.text.substr(1));
  if (!type || (*type != Type::Pred && (sizeOf(*type) < 2 || sizeOf(*type) > 8)))
    expected("the type of registers, of 16, 32 or 64 bits, or .pred");
  take();
  do {
    Location at = token.at;
    RegisterRange range{word("the name of a register"), *type,
                        static_cast<uint32_t>(function->registers.size()), 1, false};
    if (accept('<')) {
      range.isNumbered = true;
      range.count = integer("a number of registers", maxRegisters);
      expect('>');
    }
    if (function->registers.size() + range.count > maxRegisters)
      module.source.fail(at, "more than %u registers in a function",
                         static_cast<unsigned>(maxRegisters));
    function->registers.resize(function->registers.size() + range.count, *type);
    function->ranges.push_back(range);
    auto [known, isNew] = scopes.back().registers.emplace(range.name, range);
    if (!isNew)
      module.source.fail(at, "a second register %s in one scope", quoted(range.name).c_str());
  } while (accept(','));
  expect(';');
}

std::optional<uint32_t> Parser::findRegister(std::string_view name) const {
  std::string_view stem;
  uint32_t number = 0;
  bool isSplit = splitNumber(name, stem, number);
  for (size_t i = scopes.size(); i-- > 1;) {
    const auto &registers = scopes[i].registers;
    auto whole = registers.find(name);
    if (whole != registers.end() && !whole->second.isNumbered)
      return whole->second.first;
    auto range = isSplit ? registers.find(stem) : registers.end();
    if (range != registers.end() && range->second.isNumbered && number < range->second.count)
      return range->second.first + number;
  }
  return std::nullopt;
}

const Variable *Parser::findVariable(std::string_view name) const {
  for (size_t i = scopes.size(); i-- > 0;)
    if (auto found = scopes[i].variables.find(name); found != scopes[i].variables.end())
      return found->second;
  return nullptr;
}

void Parser::declare(const Variable *variable) {
  auto [known, isNew] = scopes.back().variables.emplace(variable->name, variable);
  if (!isNew && !known->second->isExternal)
    module.source.fail(variable->at, "a second variable %s in one scope",
                       quoted(variable->name).c_str());
}

/// Parses the part of a variable's declaration that follows the state space, for example ".align 4
/// .v2 .b8 name[4][4] = ...". The directives before the name may have any order. .ptr describes the
/// memory to which a parameter points.
Variable *Parser::parseVariable(Space space) {
  module.variables.push_back(std::make_unique<Variable>());
  Variable *variable = module.variables.back().get();
  variable->space = space;
  std::optional<Type> type;
  uint64_t elements = 1, alignment = 0;
  bool isPointer = false;
  while (token.kind == TokenKind::Directive) {
    Token directive = token;
    take();
    std::string_view name = directive.text.substr(1);
    if (name == "align") {
      uint64_t value = integer("an alignment", 1 << 20);
      if (!value || (value & (value - 1)))
        module.source.fail(directive.at, "expected an alignment that is a power of two");
      alignment = isPointer ? alignment : value;
    } else if (name == "v2" || name == "v4") {
      elements = name[1] - '0';
    } else if (name == "ptr") {
      isPointer = true;
    } else if (name == "attribute") {
      while (!token.is(')') && token.kind != TokenKind::End)
        take();
      expect(')');
    } else if (auto named = typeNamed(name); named && !type) {
      type = named;
    } else if (!isPointer ||
               (name != "global" && name != "shared" && name != "const" && name != "local")) {
      token = directive;
      expected("a type or .align");
    }
  }
  if (!type || *type == Type::Pred)
    expected("the type of a variable");
  variable->type = *type;
  variable->alignment = alignment ? alignment : sizeOf(*type) * elements;
  variable->at = token.at;
  variable->name = word("the name of a variable");
  parseShape(*variable, elements);
  if (space == Space::Local && accept('<'))
    expected("one variable");
  declare(variable);
  if (accept('='))
    parseInitial(*variable);
  return variable;
}

void Parser::parseShape(Variable &variable, uint64_t elements) {
  uint64_t count = elements;
  while (accept('[')) {
    if (accept(']')) {
      variable.isUnsized = true;
      continue;
    }
    uint64_t extent = integer("a number of elements", maxVariableBytes);
    count *= extent;
    if (count * sizeOf(variable.type) > maxVariableBytes)
      module.source.fail(variable.at, "%s has more than %llu bytes", quoted(variable.name).c_str(),
                         static_cast<unsigned long long>(maxVariableBytes));
    expect(']');
  }
  variable.bytes = variable.isUnsized ? 0 : count * sizeOf(variable.type);
}

void Parser::parseInitial(Variable &variable) {
  if (variable.space != Space::Global && variable.space != Space::Const)
    module.source.fail(token.at,
                       "only variables in global and constant memory have initial values");
  parseInitialElements(variable, 0);
  if (variable.isUnsized)
    variable.bytes = variable.initial.size();
  if (variable.initial.size() > variable.bytes)
    module.source.fail(variable.at, "%s has %llu bytes, but initial values for more",
                       quoted(variable.name).c_str(),
                       static_cast<unsigned long long>(variable.bytes));
  variable.initial.resize(variable.bytes);
}

void Parser::parseInitialElements(Variable &variable, unsigned depth) {
  if (!accept('{'))
    return parseInitialElement(variable);
  if (depth == 8)
    expected("braces inside one another at most 8 times");
  if (accept('}'))
    return;
  do
    parseInitialElements(variable, depth + 1);
  while (accept(','));
  expect('}');
}

void Parser::parseInitialElement(Variable &variable) {
  bool isGeneric = token.kind == TokenKind::Word && token.text == "generic";
  if (isGeneric) {
    take();
    expect('(');
  }
  Operand value = parseSimple();
  if (isGeneric)
    expect(')');
  if (isGeneric && accept('+'))
    value.integer += integer("a number of bytes");
  unsigned size = sizeOf(variable.type);
  uint64_t bits = value.integer;
  if (value.kind == OperandKind::Variable)
    variable.addresses.push_back(
        {variable.initial.size(), value.variable, static_cast<int64_t>(value.integer)});
  else if (value.kind == OperandKind::Double && variable.type == Type::F32) {
    double number;
    std::memcpy(&number, &bits, 8);
    float narrow = number;
    bits = 0;
    std::memcpy(&bits, &narrow, 4);
  } else if (value.kind != OperandKind::Integer && value.kind != OperandKind::Single &&
             value.kind != OperandKind::Double)
    module.source.fail(value.at, "expected a number or the address of a variable as initial value");
  if (value.kind == OperandKind::Variable && size != 8)
    module.source.fail(value.at, "addresses need 64 bits");
  for (unsigned i = 0; i < size; ++i)
    variable.initial.push_back(i < 8 ? bits >> (8 * i) : 0);
}
