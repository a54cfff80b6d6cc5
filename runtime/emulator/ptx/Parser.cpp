//===- Parser.cpp - From words to functions ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses PTX ISA, "Directives". Directives for debuggers (.loc, .file, .section) are skipped.
//
//===----------------------------------------------------------------------===//

#include "emulator/ptx/Parser.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

const Function *Module::find(std::string_view name) const {
  const Function *declared = nullptr;
  for (const auto &function : functions)
    if (function->name == name && (function->hasBody || !declared))
      declared = function.get();
  return declared;
}

std::unique_ptr<Module> fsdprt::emulate::parse(std::string name, std::string text) {
  auto module = std::make_unique<Module>();
  module->source.name = std::move(name);
  module->source.text = std::move(text);
  Parser(*module).parseModule();
  return module;
}

void Parser::expected(const char *what) {
  if (token.kind == TokenKind::End)
    module.source.fail(token.at, "expected %s, found the end of the file", what);
  module.source.fail(token.at, "expected %s, found %s", what, quoted(token.text).c_str());
}

void Parser::expect(char sign) {
  char what[] = {'\'', sign, '\'', '\0'};
  if (!token.is(sign))
    expected(what);
  take();
}

bool Parser::accept(char sign) {
  if (!token.is(sign))
    return false;
  take();
  return true;
}

bool Parser::acceptDirective(std::string_view name) {
  if (token.kind != TokenKind::Directive || token.text.substr(1) != name)
    return false;
  take();
  return true;
}

uint64_t Parser::integer(const char *what, uint64_t limit) {
  if (token.kind != TokenKind::Integer)
    expected(what);
  uint64_t value = token.integer;
  if (value > limit)
    module.source.fail(token.at, "expected %s of at most %llu, found %s", what,
                       static_cast<unsigned long long>(limit), quoted(token.text).c_str());
  take();
  return value;
}

std::string_view Parser::word(const char *what) {
  if (token.kind != TokenKind::Word)
    expected(what);
  std::string_view text = token.text;
  take();
  return text;
}

void Parser::parseModule() {
  scopes.push_back({0, {}, {}});
  if (!acceptDirective("version"))
    expected(".version at the start of a PTX file");
  parseVersion();
  if (!acceptDirective("target"))
    expected(".target after .version");
  parseTarget();
  while (token.kind != TokenKind::End)
    parseDirective();
}

/// Parses a version such as 8.6, which is one token of the lexer.
void Parser::parseVersion() {
  if (token.kind != TokenKind::Double)
    expected("a version such as 8.6");
  size_t dot = token.text.find('.');
  if (dot != 1 || token.text.size() != 3)
    expected("a version such as 8.6");
  module.version = (token.text[0] - '0') * 10 + (token.text[2] - '0');
  take();
}

void Parser::parseTarget() {
  module.target = word("a target such as sm_80");
  if (module.target.substr(0, 3) != "sm_")
    module.source.fail(token.at, "expected a target such as sm_80, found %s",
                       quoted(module.target).c_str());
  while (accept(','))
    word("a target option");
  if (acceptDirective("address_size"))
    if (integer("64") != 64)
      module.source.fail(token.at, "expected an address size of 64");
}

void Parser::skipLine(uint32_t line) {
  while (token.kind != TokenKind::End && token.at.line == line)
    take();
}

void Parser::skipSection() {
  while (token.kind != TokenKind::End && !token.is('{'))
    take();
  expect('{');
  for (unsigned open = 1; open;) {
    if (token.kind == TokenKind::End)
      expected("'}'");
    open += token.is('{');
    open -= token.is('}');
    take();
  }
}

bool Parser::skipDebugging() {
  uint32_t line = token.at.line;
  if (acceptDirective("loc") || acceptDirective("file")) {
    skipLine(line);
    return true;
  }
  if (acceptDirective("section")) {
    skipSection();
    return true;
  }
  if (acceptDirective("pragma")) {
    while (token.kind == TokenKind::String || token.is(','))
      take();
    expect(';');
    return true;
  }
  return false;
}

void Parser::parseDirective() {
  if (skipDebugging() || accept(';'))
    return;
  bool isExternal = false;
  while (token.kind == TokenKind::Directive) {
    if (acceptDirective("extern"))
      isExternal = true;
    else if (!acceptDirective("visible") && !acceptDirective("weak") && !acceptDirective("common"))
      break;
  }
  if (acceptDirective("entry"))
    return parseFunction(true);
  if (acceptDirective("func"))
    return parseFunction(false);
  for (Space space : {Space::Global, Space::Shared, Space::Const})
    if (acceptDirective(nameOf(space))) {
      do {
        Variable *variable = parseVariable(space);
        variable->isExternal = isExternal;
        module.globals.push_back(variable);
      } while (accept(','));
      return expect(';');
    }
  expected(".entry, .func, .global, .shared or .const");
}

void Parser::parseFunction(bool isEntry) {
  module.functions.push_back(std::make_unique<Function>());
  function = module.functions.back().get();
  function->isEntry = isEntry;
  function->scopeParents.push_back(0);
  scopes.push_back({0, {}, {}});
  if (!isEntry && token.is('('))
    parseParameters(function->results, false);
  function->at = token.at;
  function->name = word("the name of a function");
  if (token.is('('))
    parseParameters(function->parameters, isEntry);
  while (parseTuning(*function))
    ;
  if (!accept(';')) {
    if (!token.is('{'))
      expected("'{' or ';'");
    const Function *other = module.find(function->name);
    if (other != function && other->hasBody)
      module.source.fail(function->at, "a second function %s", quoted(function->name).c_str());
    function->hasBody = true;
    parseBody();
  }
  scopes.pop_back();
  function = nullptr;
}

void Parser::parseParameters(std::vector<const Variable *> &into, bool ofEntry) {
  expect('(');
  if (accept(')'))
    return;
  do {
    if (!acceptDirective("param"))
      expected(".param");
    Variable *variable = parseVariable(Space::Param);
    variable->isEntryParameter = ofEntry;
    into.push_back(variable);
  } while (accept(','));
  expect(')');
}

void Parser::parseSizes(uint32_t (&sizes)[3]) {
  sizes[0] = sizes[1] = sizes[2] = 1;
  unsigned at = 0;
  do {
    if (at == 3)
      expected("three sizes at most");
    sizes[at++] = integer("a size", UINT32_MAX);
  } while (accept(','));
}

/// Parses a directive of PTX ISA, "Performance-Tuning Directives" and "Cluster Dimension
/// Directives". Only the sizes of blocks and clusters are kept.
bool Parser::parseTuning(Function &parsed) {
  uint32_t ignored[3];
  if (acceptDirective("reqntid"))
    parseSizes(parsed.requiredThreads);
  else if (acceptDirective("maxntid"))
    parseSizes(parsed.maxThreads);
  else if (acceptDirective("reqnctapercluster"))
    parseSizes(parsed.requiredCluster);
  else if (acceptDirective("minnctapersm") || acceptDirective("maxnctapersm") ||
           acceptDirective("maxnreg") || acceptDirective("maxclusterrank"))
    parseSizes(ignored);
  else
    return acceptDirective("explicitcluster") || acceptDirective("blocksareclusters") ||
           acceptDirective("noreturn") || skipDebugging();
  return true;
}
