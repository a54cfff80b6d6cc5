//===- Program.h - PTX made ready to run ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decoder turns an entry function, with what it calls in place, into a dense list of
// instructions. A register of 32 lanes is an array: lane l of a 32-bit register is the l-th of 32
// numbers that lie together, so that one instruction is one loop that the host's vector unit runs.
// All arrays of a warp lie in its register file, in slots of 64 bytes: a 16-bit register takes one,
// 32 bits two, 64 bits four; a predicate is one word with a bit per lane. Constants and special
// registers are slots, too, filled when a warp starts, so that an operand is a slot whatever it
// was.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_PROGRAM_H
#define FSDPRT_EMULATOR_MACHINE_PROGRAM_H

#include "emulator/ptx/Syntax.h"
#include <map>

namespace fsdprt::emulate {

using LaneMask = uint32_t;
using Slot = uint32_t; ///< 0 is none
constexpr unsigned warpSize = 32, slotBytes = 64;
constexpr LaneMask allLanes = ~LaneMask(0);
constexpr uint32_t nowhere = UINT32_MAX;

class Warp;
struct Instruction;

/// What an instruction asks of the loop that runs it.
enum class Step : uint8_t {
  Next,    ///< go on
  Waits,   ///< these lanes wait; they go on after this instruction
  Retries, ///< these lanes wait, and then run this instruction again
};

using Handler = Step (*)(Warp &, const Instruction &, LaneMask);

/// How the loop that runs a warp treats an instruction.
enum class Flow : uint8_t {
  Plain,
  Moves,  ///< copies registers: what is not initialised stays so, which is no error
  Branch, ///< to `target`
  Exit,
};

struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::Plain;
  bool isGuardNegated = false;
  bool isWgmma = false;
  bool isWatched = false;              ///< it has registers that a wgmma has, too
  bool isRenaming = false;             ///< and does nothing but move one to another
  uint8_t modifier = 0, modifier2 = 0; ///< the handler's own
  uint16_t inCount = 0, outCount = 0;
  uint16_t uncheckedIns = 0; ///< at the end of `in`: those that the handler checks
  Slot guard = 0;            ///< a predicate
  uint32_t target = nowhere;
  uint32_t meet = nowhere; ///< of branches: where lanes that parted meet again
  const Slot *in = nullptr, *out = nullptr;
  int64_t immediate = 0;      ///< the handler's own; bytes added to addresses
  uint64_t payload = 0;       ///< the handler's own
  const void *plan = nullptr; ///< the handler's own, where that is not enough; the program keeps it
  Location at;
  std::string_view opcode;
  uint32_t firstIn = 0, firstOut = 0; ///< in the program's list of slots
};

/// A variable's place, from the start of its space's memory of a block or lane.
struct Placement {
  Space space;
  uint64_t offset;
};

struct Program {
  const Module *module = nullptr;
  const Function *entry = nullptr;
  std::vector<Instruction> code;
  std::vector<Slot> slots;                        ///< operands of all instructions
  std::vector<std::shared_ptr<const void>> plans; ///< of instructions
  uint32_t slotCount = 1;                         ///< size of a register file
  std::map<Slot, std::string> names;              ///< of registers, for messages
  struct Constant {
    Slot slot;
    uint8_t size;
    uint64_t bits;
  };
  std::vector<Constant> constants;
  /// Constants whose value is the address of a variable of the module.
  struct AddressConstant {
    Slot slot;
    const Variable *variable;
    int64_t addend;
  };
  std::vector<AddressConstant> addressConstants;
  std::map<std::string, Slot, std::less<>> specials;                  ///< %tid.x
  std::vector<std::pair<const Variable *, uint64_t>> sharedVariables; ///< and their offsets
  uint64_t sharedBytes = 0;      ///< without what the launch adds
  uint64_t dynamicAlignment = 0; ///< of .extern .shared name[]; 0: there is none
  uint64_t localBytes = 0, parameterBytes = 0;
  std::map<const Variable *, uint64_t> parameterOffsets;
};

/// Throws Error with the place of an instruction that it does not know. `module` has to outlive the
/// program.
Program decode(const Module &module, const Function &entry);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_PROGRAM_H
