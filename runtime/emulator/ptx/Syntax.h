//===- Syntax.h - PTX as it is written --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the parser leaves: names of registers and variables are resolved, since PTX declares before
// it uses; labels and functions are names. Views point into the source, which has to outlive the
// module.
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

enum class OperandKind : uint8_t {
  Register, ///< index
  Variable, ///< variable, integer: its address plus a constant
  Name,     ///< text: a label, a function, or a special register (%tid.x)
  Integer,  ///< integer
  Single,   ///< integer: its bits
  Double,   ///< integer: its bits
  Vector,   ///< elements: {a, b}
  List,     ///< elements: (a, b) of a call
  Pair,     ///< elements: a|b
  Address,  ///< elements: the base, perhaps a vector of coordinates; integer: bytes to add
  Sink,     ///< _
};

struct Variable {
  std::string_view name;
  Location at;
  Space space = Space::Global;
  Type type = Type::B8;
  uint64_t alignment = 1;
  uint64_t bytes = 0;
  bool isUnsized = false; ///< name[]: its size is the launch's
  bool isExternal = false;
  bool isEntryParameter = false;
  std::vector<uint8_t> initial; ///< all bytes, or none
  struct Address {
    uint64_t offset;
    const Variable *target;
    int64_t addend;
  };
  std::vector<Address> addresses; ///< in `initial`, to fill in
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
  int64_t guard = -1; ///< a register
  bool isGuardNegated = false;
  uint32_t scope = 0;
  std::vector<Operand> operands;
};

/// .reg .b32 %r<4>: `count` registers, %r0 and on; or one.
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
  std::vector<RegisterRange> ranges; ///< of them, in order
  std::vector<Statement> statements;
  std::vector<uint32_t> scopeParents; ///< of each { }; the first is its own
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> labels;
  std::map<std::pair<uint32_t, std::string_view>, std::vector<Operand>> branchTargets;
  std::vector<const Variable *> variables; ///< declared inside
  uint32_t requiredThreads[3] = {0, 0, 0}, maxThreads[3] = {0, 0, 0},
           requiredCluster[3] = {0, 0, 0};
};

struct Module {
  Source source;
  unsigned version = 0; ///< 86 for 8.6
  std::string_view target;
  std::vector<std::unique_ptr<Variable>> variables; ///< all of them, those of functions too
  std::vector<const Variable *> globals;            ///< outside of functions
  std::vector<std::unique_ptr<Function>> functions;

  const Function *find(std::string_view name) const;
};

/// Throws Error with the place of what it does not understand.
std::unique_ptr<Module> parse(std::string name, std::string text);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_PTX_SYNTAX_H
