//===- Decoder.h - From statements to instructions --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares functions for the decoders of instruction families. These functions return the slots of
// operands, take (read and remove) modifiers of the opcode, and report errors at the current
// statement.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_DECODER_H
#define FSDPRT_EMULATOR_MACHINE_DECODER_H

#include "emulator/machine/Program.h"
#include <initializer_list>
#include <unordered_map>

namespace fsdprt::emulate {

/// The modifiers of an opcode such as "ld.global.v2.b32". A decoder takes (reads and removes) each
/// modifier that it supports.
class Modifiers {
public:
  Modifiers(std::string_view opcode);
  std::string_view name() const { return base; }
  bool take(std::string_view part);
  /// If the opcode has a modifier that is in `parts`, takes this modifier and returns its index in
  /// `parts`. Otherwise returns -1.
  int takeOneOf(std::initializer_list<std::string_view> parts);
  std::optional<Type> takeType();
  bool has(std::string_view part) const;
  const std::vector<std::string_view> &left() const { return parts; }

private:
  std::string_view base;
  std::vector<std::string_view> parts;
};

class Decoder {
public:
  Decoder(const Module &module, const Function &entry);
  Program finish();

  //===- For families of instructions: the current statement --------------===//

  Modifiers modifiers{""};
  const Statement *statement = nullptr;

  [[noreturn]] void fail(const char *text, ...) const __attribute__((format(printf, 2, 3)));
  [[noreturn]] void failAt(Location at, const std::string &text) const;
  Type type();
  Type typeOneOf(std::initializer_list<Type> types);
  void operandCount(unsigned least, unsigned most);
  unsigned operandCount() const { return statement->operands.size(); }
  const Operand &operand(unsigned index) const { return statement->operands[index]; }

  /// Returns the slot of an operand that is either a constant or a register of the type's size.
  Slot source(const Operand &operand, Type type);
  Slot source(unsigned index, Type type) { return source(operand(index), type); }
  /// Returns the slot of a register. For the operand "_", returns a slot that is never read.
  Slot destination(const Operand &operand, Type type);
  Slot destination(unsigned index, Type type) { return destination(operand(index), type); }
  Slot predicate(const Operand &operand);
  /// Returns the slot of an operand of a load, store or conversion. The register of the operand may
  /// be wider than the type. Sets `size` to the size of the register in bytes.
  Slot wideSource(const Operand &operand, Type type, unsigned &size);
  Slot wideDestination(const Operand &operand, Type type, unsigned &size);
  /// Returns the slot of the base in an operand [base+n]. Adds n to `offset`. If the base is a
  /// constant, also adds the base to `offset`. Sets `isWide` to true if the base has 64 bits.
  Slot address(const Operand &operand, Space &space, int64_t &offset, bool &isWide);
  uint64_t constant(const Operand &operand, const char *what);
  Slot constantSlot(unsigned size, uint64_t bits);
  Slot scratch(unsigned size);
  /// Returns the slot of the predicate that contains the carry of add.cc.
  Slot conditionCode() { return carry ? carry : carry = scratch(0); }
  /// Returns the elements of a vector {a, b}. If the operand is no vector, returns only the
  /// operand.
  static std::vector<const Operand *> elements(const Operand &operand);

  Instruction &emit(Handler run, const std::vector<Slot> &outs, const std::vector<Slot> &ins);
  /// Appends an instruction whose handler needs `plan` as additional data.
  template <typename Plan>
  Instruction &emit(Handler run, const std::vector<Slot> &outs, const std::vector<Slot> &ins,
                    const Plan &plan) {
    program.plans.push_back(std::make_shared<const Plan>(plan));
    Instruction &instruction = emit(run, outs, ins);
    instruction.plan = program.plans.back().get();
    return instruction;
  }

private:
  /// The entry function, or a function that is inlined at a call.
  struct Frame {
    const Function *function;
    Frame *caller = nullptr;
    std::vector<Slot> registers;
    std::map<const Variable *, Placement> variables;
    std::vector<uint32_t> starts; ///< index of the first instruction of each statement
    struct Fixup {
      uint32_t instruction;
      const Operand *label;
      uint32_t scope;
    };
    std::vector<Fixup> fixups;
    std::vector<uint32_t> returns; ///< indices of the branches that jump to the end of the function
  };

  void placeParameters(Frame &frame);
  void placeVariables(Frame &frame);
  void findShared(const Function &function, std::vector<const Function *> &seen,
                  std::vector<const Variable *> &used) const;
  void findShared(const Operand &operand, std::vector<const Function *> &seen,
                  std::vector<const Variable *> &used) const;
  void placeShared();
  void decodeFunction(Frame &frame);
  void decodeStatement();
  void decodeBranch();
  void decodeIndexedBranch();
  void decodeCall();
  void passArguments(const Operand *list, const std::vector<const Variable *> &parameters,
                     Frame &callee);
  void decodeReturn();
  void resolveLabels(Frame &frame);
  uint32_t findLabel(const Frame &frame, uint32_t scope, const Operand &label);
  Slot registerSlot(uint32_t index);
  Slot addressOf(const Variable &variable, int64_t addend, unsigned size, const Operand &operand);
  std::optional<Placement> placement(const Variable &variable) const;
  Slot special(const Operand &operand, unsigned size);
  uint64_t literal(const Operand &operand, Type type);

  const Module &module;
  Program program;
  Frame *frame = nullptr;
  std::map<std::pair<unsigned, uint64_t>, Slot> constants;
  std::map<std::pair<const Variable *, int64_t>, Slot> addresses;
  std::map<const Variable *, uint64_t> shared;
  unsigned depth = 0; ///< depth of nested calls
  Slot carry = 0;
};

/// Decodes the current statement, or returns false if its opcode is not in the decoder's family.
using Family = bool (*)(Decoder &);
bool decodeInteger(Decoder &);
bool decodeCarry(Decoder &);
bool decodeBits(Decoder &);
bool decodeLogic(Decoder &);
bool decodeFloat(Decoder &);
bool decodeHalf(Decoder &);
bool decodeApproximate(Decoder &);
bool decodeCompare(Decoder &);
bool decodeConvert(Decoder &);
bool decodeMove(Decoder &);
bool decodeLoadStore(Decoder &);
bool decodeAddresses(Decoder &);
bool decodeAtomic(Decoder &);
bool decodeWarp(Decoder &);
bool decodeBarrier(Decoder &);
bool decodeMatrix(Decoder &);
bool decodeMatrixMove(Decoder &);
bool decodeWgmma(Decoder &);
bool decodeWgmmaOrder(Decoder &);
bool decodeAsyncCopy(Decoder &);
bool decodeAsyncStore(Decoder &);
bool decodeCopiesArrive(Decoder &);
bool decodeBulkCopy(Decoder &);
bool decodeTensorCopy(Decoder &);
bool decodeMbarrier(Decoder &);

/// A register is watched if a wgmma uses it, or if copies between registers connect it with a
/// watched register. Sets `isWatched` of each instruction that uses a watched register.
void watchRegisters(Program &program);

/// Sets `meet` of each branch to the branch's immediate post-dominator, or to `nowhere` if the
/// paths from the branch meet only at the end of the program.
void findMeetingPoints(std::vector<Instruction> &code);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_DECODER_H
