//===- Syntax.h - Syntax tree of PTX ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the syntax tree that the parser returns. An operand that names a register or variable
// refers to its declaration, which always precedes its uses in PTX. An operand that names a label
// or a function contains only the name. Strings refer to the text of the source and do not copy it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_PTX_SYNTAX_H
#define FSDPRT_EMULATOR_PTX_SYNTAX_H

#include "emulator/ptx/Source.h"
#include "emulator/ptx/Types.h"
#include <map>
#include <memory>
#include <vector>

namespace fsdprt::emulate {

/// The comment on a kind names the members of Operand that operands of this kind use.
enum class OperandKind : uint8_t {
  Register, ///< `index`
  Variable, ///< `variable`; `integer`: number of bytes to add to the address of the variable
  Name,     ///< `text`: a label, a function, or a special register (%tid.x)
  Integer,  ///< `integer`
  Single,   ///< `integer`: bits of a float
  Double,   ///< `integer`: bits of a double
  Vector,   ///< `elements`: {a, b}
  List,     ///< `elements`: (a, b) of a call
  Pair,     ///< `elements`: a|b
  Address,  ///< `elements`: base, and coordinates of a tensor; `integer`: number of bytes to add
  Sink,     ///< _
};

struct Variable {
  std::string_view name;
  Location at;
  Space space = Space::Global;
  Type type = Type::B8;
  uint64_t alignment = 1;
  uint64_t bytes = 0;
  bool isUnsized = false; ///< declared as name[], so that the launch determines the size
  bool isExternal = false;
  bool isEntryParameter = false;
  std::vector<uint8_t> initial; ///< initial values of all bytes; empty if there are none
  struct Address {
    uint64_t offset;
    const Variable *target;
    int64_t addend;
  };
  std::vector<Address> addresses; ///< addresses of variables that must be written to `initial`
};

struct Operand {
  OperandKind kind = OperandKind::Sink;
  bool isNegated = false; ///< !p
  Location at;
  uint32_t index = 0;
  uint64_t integer = 0;
  const Variable *variable = nullptr;
  std::string_view text;
  std::vector<Operand> elements;
};

struct Statement {
  Location at;
  std::string_view opcode;
  int64_t guard = -1; ///< index of the register of the guard; -1 if there is no guard
  bool isGuardNegated = false;
  uint32_t scope = 0;
  std::vector<Operand> operands;
};

/// A declaration of one register, or of numbered registers. For example, ".reg .b32 %r<4>" declares
/// %r0 to %r3.
struct RegisterRange {
  std::string_view name;
  Type type;
  uint32_t first, count;
  bool isNumbered;
};

struct Function {
  std::string_view name;
  Location at;
  bool isEntry = false, hasBody = false;
  std::vector<const Variable *> parameters, results;
  std::vector<Type> registers;
  std::vector<RegisterRange> ranges; ///< declarations of `registers`, in order
  std::vector<Statement> statements;
  std::vector<uint32_t> scopeParents; ///< parent of each scope; scope 0 is its own parent
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> labels;
  std::map<std::pair<uint32_t, std::string_view>, std::vector<Operand>> branchTargets;
  std::vector<const Variable *> variables; ///< variables declared in the function
  uint32_t requiredThreads[3] = {0, 0, 0}, maxThreads[3] = {0, 0, 0},
           requiredCluster[3] = {0, 0, 0};
};

struct Module {
  Source source;
  unsigned version = 0; ///< ten times the PTX version, for example 86 for version 8.6
  std::string_view target;
  std::vector<std::unique_ptr<Variable>> variables; ///< all variables, including those of functions
  std::vector<const Variable *> globals;            ///< variables declared outside of functions
  std::vector<std::unique_ptr<Function>> functions;

  const Function *find(std::string_view name) const;
};

/// Parses a module. If the text is invalid or not supported, throws an Error with the location.
std::unique_ptr<Module> parse(std::string name, std::string text);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_PTX_SYNTAX_H
