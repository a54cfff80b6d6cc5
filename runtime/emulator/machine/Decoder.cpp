//===- Decoder.cpp - From statements to instructions ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decodes an entry function in three steps:
//
//  1. Assign offsets to parameters, local variables and shared variables.
//  2. Decode each statement with the decoder for its opcode. A call is replaced by the statements
//     of its callee. These statements get their own registers and local memory. For each branch,
//     record the label to which it jumps.
//  3. Resolve the labels, and find, for each branch, the instruction at which diverging lanes
//     reconverge.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr unsigned maxCallDepth = 64;
static constexpr size_t maxInstructions = 4 << 20;
static constexpr uint64_t maxLocalBytes = 1 << 20, maxSharedBytes = 256 << 10;

static uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

void Decoder::fail(const char *text, ...) const {
  char message[512];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(message, sizeof message, text, arguments);
  va_end(arguments);
  failAt(statement->at, message);
}

void Decoder::failAt(Location at, const std::string &text) const {
  module.source.fail(at, "%s", text.c_str());
}

Type Decoder::type() {
  auto found = modifiers.takeType();
  if (!found)
    fail("expected a type in '%s'", std::string(statement->opcode).c_str());
  return *found;
}

Type Decoder::typeOneOf(std::initializer_list<Type> types) {
  Type found = type();
  std::string names;
  for (Type allowed : types) {
    if (allowed == found)
      return found;
    names += std::string(names.empty() ? "" : ", ") + nameOf(allowed);
  }
  fail("type %s is not supported by '%s': expected one of %s", nameOf(found),
       std::string(modifiers.name()).c_str(), names.c_str());
}

void Decoder::operandCount(unsigned least, unsigned most) {
  unsigned found = statement->operands.size();
  if (found >= least && found <= most)
    return;
  if (least == most)
    fail("expected %u operands of '%s', found %u", least, std::string(statement->opcode).c_str(),
         found);
  fail("expected %u to %u operands of '%s', found %u", least, most,
       std::string(statement->opcode).c_str(), found);
}

/// Places the parameters in order. The offset of each parameter is a multiple of the parameter's
/// alignment (PTX ISA, "Parameter State Space").
void Decoder::placeParameters(Frame &frame) {
  for (const Variable *parameter : frame.function->parameters) {
    program.parameterBytes = alignTo(program.parameterBytes, parameter->alignment);
    program.parameterOffsets[parameter] = program.parameterBytes;
    frame.variables[parameter] = {Space::Param, program.parameterBytes};
    program.parameterBytes += parameter->bytes;
  }
  if (program.parameterBytes > 32764)
    failAt(frame.function->at, format("%llu bytes of parameters, but 32764 at most",
                                      static_cast<unsigned long long>(program.parameterBytes)));
}

/// Places local variables and parameters of calls.
void Decoder::placeVariables(Frame &frame) {
  for (const Variable *variable : frame.function->variables) {
    if (variable->space != Space::Local && variable->space != Space::Param)
      continue;
    program.localBytes = alignTo(program.localBytes, variable->alignment);
    frame.variables[variable] = {Space::Local, program.localBytes};
    program.localBytes += variable->bytes;
    if (program.localBytes > maxLocalBytes)
      failAt(variable->at, "more than 1 MiB of local memory");
  }
}

void Decoder::findShared(const Operand &operand, std::vector<const Function *> &seen,
                         std::vector<const Variable *> &used) const {
  if (operand.variable && operand.variable->space == Space::Shared &&
      std::find(used.begin(), used.end(), operand.variable) == used.end())
    used.push_back(operand.variable);
  if (operand.kind == OperandKind::Name)
    if (const Function *called = module.find(operand.text))
      findShared(*called, seen, used);
  for (const Operand &element : operand.elements)
    findShared(element, seen, used);
}

/// Collects the variables in shared memory that a function or its callees use.
void Decoder::findShared(const Function &function, std::vector<const Function *> &seen,
                         std::vector<const Variable *> &used) const {
  if (std::find(seen.begin(), seen.end(), &function) != seen.end())
    return;
  seen.push_back(&function);
  for (const Statement &each : function.statements)
    for (const Operand &operand : each.operands)
      findShared(operand, seen, used);
}

/// Places shared variables and, after them, dynamic shared memory. The address of dynamic shared
/// memory is not a multiple of twice the requested alignment. Code that relies on a larger
/// alignment therefore fails in the emulator.
void Decoder::placeShared() {
  std::vector<const Variable *> all;
  std::vector<const Function *> seen;
  findShared(*program.entry, seen, all);
  for (const Variable *variable : all) {
    if (variable->isUnsized) {
      program.dynamicAlignment = std::max(program.dynamicAlignment, variable->alignment);
      continue;
    }
    program.sharedBytes = alignTo(program.sharedBytes, variable->alignment);
    shared[variable] = program.sharedBytes;
    program.sharedBytes += variable->bytes;
    if (program.sharedBytes > maxSharedBytes)
      failAt(variable->at, "more than 256 KiB of shared memory");
  }
  if (program.dynamicAlignment) {
    program.sharedBytes = alignTo(program.sharedBytes, program.dynamicAlignment);
    if (program.sharedBytes % (2 * program.dynamicAlignment) == 0)
      program.sharedBytes += program.dynamicAlignment;
  }
  for (const Variable *variable : all)
    if (variable->isUnsized)
      shared[variable] = program.sharedBytes;
  program.sharedVariables.assign(shared.begin(), shared.end());
}

static const std::unordered_map<std::string_view, Family> &families() {
  static const std::unordered_map<std::string_view, Family> table = [] {
    std::unordered_map<std::string_view, Family> result;
    auto add = [&](Family family, std::initializer_list<const char *> names) {
      for (const char *name : names)
        result[name] = family;
    };
    add(decodeInteger, {"add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs",
                        "neg", "min", "max"});
    add(decodeCarry, {"addc", "subc", "madc"});
    add(decodeBits,
        {"popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "szext", "bmsk", "dp4a", "dp2a"});
    add(decodeLogic, {"and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf", "prmt"});
    add(decodeFloat, {"fma", "testp", "copysign"});
    add(decodeApproximate, {"rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"});
    add(decodeCompare, {"setp", "set", "selp", "slct"});
    add(decodeConvert, {"cvt"});
    add(decodeMove, {"mov"});
    add(decodeLoadStore, {"ld", "ldu", "st", "prefetch", "prefetchu", "discard", "applypriority"});
    add(decodeAddresses, {"cvta", "isspacep", "mapa"});
    add(decodeAtomic, {"atom", "red"});
    add(decodeWarp, {"shfl", "vote", "match", "redux", "activemask", "elect"});
    add(decodeMatrix, {"mma"});
    add(decodeWgmma, {"wgmma"});
    add(decodeMatrixMove, {"ldmatrix", "stmatrix", "movmatrix"});
    add(decodeAsyncCopy, {"cp"});
    add(decodeMbarrier, {"mbarrier"});
    add(decodeBarrier, {"bar", "barrier", "membar", "fence", "nanosleep", "setmaxnreg", "trap",
                        "brkpt", "pmevent", "griddepcontrol"});
    return result;
  }();
  return table;
}

Decoder::Decoder(const Module &module, const Function &entry) : module(module) {
  program.module = &module;
  program.entry = &entry;
  placeShared();
}

Instruction &Decoder::emit(Handler run, const std::vector<Slot> &outs,
                           const std::vector<Slot> &ins) {
  if (program.code.size() == maxInstructions)
    fail("more than %zu instructions with functions in place of their calls", maxInstructions);
  Instruction &instruction = program.code.emplace_back();
  instruction.run = run;
  instruction.at = statement->at;
  instruction.opcode = statement->opcode;
  instruction.firstOut = program.slots.size();
  program.slots.insert(program.slots.end(), outs.begin(), outs.end());
  instruction.firstIn = program.slots.size();
  program.slots.insert(program.slots.end(), ins.begin(), ins.end());
  instruction.outCount = outs.size();
  instruction.inCount = ins.size();
  if (statement->guard >= 0) {
    instruction.guard = registerSlot(statement->guard);
    instruction.isGuardNegated = statement->isGuardNegated;
  }
  return instruction;
}

void Decoder::decodeStatement() {
  modifiers = Modifiers(statement->opcode);
  std::string_view name = modifiers.name();
  if (name == "bra")
    return decodeBranch();
  if (name == "brx")
    return decodeIndexedBranch();
  if (name == "call")
    return decodeCall();
  if (name == "ret" || name == "exit")
    return decodeReturn();
  auto family = families().find(name);
  if (family == families().end() || !family->second(*this))
    fail("unknown instruction %s", quoted(statement->opcode).c_str());
  if (!modifiers.left().empty())
    fail("unknown modifier '.%s' in %s", std::string(modifiers.left()[0]).c_str(),
         quoted(statement->opcode).c_str());
}

void Decoder::decodeFunction(Frame &inner) {
  Frame *outer = frame;
  const Statement *call = statement;
  frame = &inner;
  inner.registers.assign(inner.function->registers.size(), 0);
  for (const Statement &each : inner.function->statements) {
    inner.starts.push_back(program.code.size());
    statement = &each;
    decodeStatement();
  }
  inner.starts.push_back(program.code.size());
  resolveLabels(inner);
  statement = call;
  frame = outer;
}

/// Decodes bra (PTX ISA, "Control Flow Instructions: bra"). .uni has no effect.
void Decoder::decodeBranch() {
  modifiers.take("uni");
  operandCount(1, 1);
  frame->fixups.push_back(
      {static_cast<uint32_t>(program.code.size()), &operand(0), statement->scope});
  emit(nullptr, {}, {}).flow = Flow::Branch;
}

static Step equalsConstant(Warp &warp, const Instruction &i, LaneMask active);
static Step indexOutOfRange(Warp &warp, const Instruction &i, LaneMask active);

#include "emulator/machine/Lanes.h"

Step equalsConstant(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask equal = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    equal |= LaneMask(warp.at<uint32_t>(i.in[0])[lane] == i.payload) << lane;
  warp.predicate(i.out[0]) = equal;
  return Step::Next;
}

Step indexOutOfRange(Warp &warp, const Instruction &i, LaneMask active) {
  warp.fail(active, "a branch by index with more than %u targets",
            static_cast<unsigned>(i.payload));
}

/// Decodes brx.idx (PTX ISA, "Control Flow Instructions"): emits a comparison of the index and a
/// branch for each target.
void Decoder::decodeIndexedBranch() {
  modifiers.take("idx");
  modifiers.take("uni");
  operandCount(2, 2);
  if (statement->guard >= 0)
    fail("brx with a predicate is not supported");
  const std::vector<Operand> *targets = nullptr;
  for (uint32_t scope = statement->scope; !targets; scope = frame->function->scopeParents[scope]) {
    auto known = frame->function->branchTargets.find({scope, operand(1).text});
    if (known != frame->function->branchTargets.end())
      targets = &known->second;
    else if (!scope)
      failAt(operand(1).at, "expected a label of .branchtargets in the same function");
  }
  Slot index = source(0, Type::U32);
  for (size_t i = 0; i < targets->size(); ++i) {
    Slot isEqual = scratch(0);
    emit(equalsConstant, {isEqual}, {index}).payload = i;
    frame->fixups.push_back(
        {static_cast<uint32_t>(program.code.size()), &(*targets)[i], statement->scope});
    Instruction &branch = emit(nullptr, {}, {});
    branch.flow = Flow::Branch;
    branch.guard = isEqual;
  }
  emit(indexOutOfRange, {}, {}).payload = targets->size();
}

/// Gives each parameter of the callee the local memory of the corresponding argument, so that no
/// copy is needed.
void Decoder::passArguments(const Operand *list, const std::vector<const Variable *> &parameters,
                            Frame &callee) {
  size_t found = list ? list->elements.size() : 0;
  if (found != parameters.size())
    fail("expected %zu arguments or results of %s, found %zu", parameters.size(),
         quoted(callee.function->name).c_str(), found);
  for (size_t i = 0; i < found; ++i) {
    const Operand &argument = list->elements[i];
    auto place = argument.variable ? placement(*argument.variable) : std::nullopt;
    if (!place || place->space != Space::Local)
      failAt(argument.at, "expected a variable in .param that is declared in this function");
    if (argument.variable->bytes != parameters[i]->bytes)
      failAt(argument.at, format("expected an argument of %llu bytes, found one of %llu",
                                 static_cast<unsigned long long>(parameters[i]->bytes),
                                 static_cast<unsigned long long>(argument.variable->bytes)));
    callee.variables[parameters[i]] = *place;
  }
}

/// Decodes call (PTX ISA, "Control Flow Instructions"), whose operands are (results), the function,
/// and (arguments). Inlines the function.
void Decoder::decodeCall() {
  modifiers.take("uni");
  operandCount(1, 3);
  unsigned at = 0;
  const Operand *results = operand(0).kind == OperandKind::List ? &operand(at++) : nullptr;
  if (at == operandCount() || operand(at).kind != OperandKind::Name)
    fail("expected the name of a function; calls of addresses are not supported");
  const Operand &name = operand(at++);
  const Operand *arguments = at < operandCount() ? &operand(at) : nullptr;
  const Function *function = module.find(name.text);
  if (!function || !function->hasBody)
    failAt(name.at, format("function %s has no body in this module", quoted(name.text).c_str()));
  for (Frame *caller = frame; caller; caller = caller->caller)
    if (caller->function == function)
      failAt(name.at,
             format("function %s calls itself, which is not supported", quoted(name.text).c_str()));
  if (++depth > maxCallDepth)
    failAt(name.at, "more than 64 calls inside one another");
  Frame callee;
  callee.function = function;
  callee.caller = frame;
  passArguments(results, function->results, callee);
  passArguments(arguments, function->parameters, callee);
  placeVariables(callee);
  // If the call has a guard, a branch skips the inlined function in lanes whose guard is false.
  uint32_t around = nowhere;
  if (statement->guard >= 0) {
    around = program.code.size();
    Instruction &branch = emit(nullptr, {}, {});
    branch.flow = Flow::Branch;
    branch.isGuardNegated = !branch.isGuardNegated;
  }
  decodeFunction(callee);
  if (around != nowhere)
    program.code[around].target = program.code.size();
  --depth;
}

void Decoder::decodeReturn() {
  modifiers.take("uni");
  operandCount(0, 0);
  Instruction &instruction = emit(nullptr, {}, {});
  bool isReturn = modifiers.name() == "ret" && frame->caller;
  instruction.flow = isReturn ? Flow::Branch : Flow::Exit;
  if (isReturn)
    frame->returns.push_back(program.code.size() - 1);
}

uint32_t Decoder::findLabel(const Frame &frame, uint32_t scope, const Operand &label) {
  for (;; scope = frame.function->scopeParents[scope]) {
    auto known = frame.function->labels.find({scope, label.text});
    if (label.kind == OperandKind::Name && known != frame.function->labels.end())
      return frame.starts[known->second];
    if (!scope)
      failAt(label.at,
             format("expected a label of this function, found %s", quoted(label.text).c_str()));
  }
}

void Decoder::resolveLabels(Frame &frame) {
  for (const Frame::Fixup &fixup : frame.fixups)
    program.code[fixup.instruction].target = findLabel(frame, fixup.scope, *fixup.label);
  for (uint32_t instruction : frame.returns)
    program.code[instruction].target = program.code.size();
}

Program Decoder::finish() {
  Frame entry;
  entry.function = program.entry;
  placeParameters(entry);
  placeVariables(entry);
  decodeFunction(entry);
  // Lanes that reach the end of the entry function exit.
  Statement end;
  end.at = program.entry->at;
  end.opcode = "exit";
  statement = &end;
  emit(nullptr, {}, {}).flow = Flow::Exit;
  for (Instruction &instruction : program.code) {
    instruction.in = program.slots.data() + instruction.firstIn;
    instruction.out = program.slots.data() + instruction.firstOut;
  }
  watchRegisters(program);
  findMeetingPoints(program.code);
  return std::move(program);
}

Program fsdprt::emulate::decode(const Module &module, const Function &entry) {
  if (!entry.hasBody)
    module.source.fail(entry.at, "function %s has no body", quoted(entry.name).c_str());
  return Decoder(module, entry).finish();
}
