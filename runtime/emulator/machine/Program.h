//===- Program.h - Decoded PTX ----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decoder turns an entry function, with its callees inlined, into a dense list of instructions.
// A register of a warp is an array with one element per lane. For example, a 32-bit register is an
// array of 32 consecutive numbers, and element l belongs to lane l. An instruction is therefore
// executed by one loop over the lanes, which the compiler of the emulator can vectorise. The
// register file of a warp consists of slots of 64 bytes. A register of 16, 32 or 64 bits takes one,
// two or four slots; a predicate is one word with a bit per lane. Constants and special registers
// also have slots, so that every operand is a slot. These slots are filled when a warp starts.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_PROGRAM_H
#define FSDPRT_EMULATOR_MACHINE_PROGRAM_H

#include "emulator/ptx/Syntax.h"
#include <map>

namespace fsdprt::emulate {

using LaneMask = uint32_t;
using Slot = uint32_t; ///< 0 means no slot
constexpr unsigned warpSize = 32, slotBytes = 64;
constexpr LaneMask allLanes = ~LaneMask(0);
constexpr uint32_t nowhere = UINT32_MAX;

class Warp;
struct Instruction;

/// The result of a handler. The result tells the loop over instructions how to continue.
enum class Step : uint8_t {
  Next,    ///< the lanes continue
  Waits,   ///< the lanes wait, and then continue after this instruction
  Retries, ///< the lanes wait, and then repeat this instruction
};

using Handler = Step (*)(Warp &, const Instruction &, LaneMask);

/// The way in which the loop over instructions treats an instruction.
enum class Flow : uint8_t {
  Plain,
  Moves,  ///< copies registers, and the flags that say whether they are initialised
  Branch, ///< jumps to `target`
  Exit,
};

struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::Plain;
  bool isGuardNegated = false;
  bool isWgmma = false;
  bool isWatched = false;              ///< true if it accesses registers of a wgmma
  bool isRenaming = false;             ///< true if a watched instruction only copies a register
  uint8_t modifier = 0, modifier2 = 0; ///< data for the handler
  uint16_t inCount = 0, outCount = 0;
  /// For this number of elements at the end of `in`, the handler checks whether they are
  /// initialised. The loop checks the other elements.
  uint16_t uncheckedIns = 0;
  Slot guard = 0; ///< slot of the guard predicate; 0 if there is none
  uint32_t target = nowhere;
  uint32_t meet = nowhere; ///< instruction where the lanes that diverge at a branch meet
  const Slot *in = nullptr, *out = nullptr;
  int64_t immediate = 0;      ///< number for the handler, such as an offset
  uint64_t payload = 0;       ///< data for the handler
  const void *plan = nullptr; ///< further data for the handler, which the program owns
  Location at;
  std::string_view opcode;
  uint32_t firstIn = 0, firstOut = 0; ///< indices into the program's list of slots
};

/// The offset of a variable in its space. It is equal in all blocks or in all lanes.
struct Placement {
  Space space;
  uint64_t offset;
};

struct Program {
  const Module *module = nullptr;
  const Function *entry = nullptr;
  std::vector<Instruction> code;
  std::vector<Slot> slots;                        ///< operands of all instructions
  std::vector<std::shared_ptr<const void>> plans; ///< owners of Instruction::plan
  uint32_t slotCount = 1;                         ///< number of slots of a register file
  std::map<Slot, std::string> names;              ///< names of registers, used in messages
  struct Constant {
    Slot slot;
    uint8_t size;
    uint64_t bits;
  };
  std::vector<Constant> constants;
  /// A constant whose value is the address of a variable of the module plus `addend`.
  struct AddressConstant {
    Slot slot;
    const Variable *variable;
    int64_t addend;
  };
  std::vector<AddressConstant> addressConstants;
  std::map<std::string, Slot, std::less<>> specials;                  ///< key: name, such as %tid.x
  std::vector<std::pair<const Variable *, uint64_t>> sharedVariables; ///< with their offsets
  uint64_t sharedBytes = 0;      ///< size of shared memory without dynamic shared memory
  uint64_t dynamicAlignment = 0; ///< alignment of .extern .shared name[]; 0 if there is none
  uint64_t localBytes = 0, parameterBytes = 0;
  std::map<const Variable *, uint64_t> parameterOffsets;
};

/// Decodes a function. If an instruction is not supported, throws an Error that contains the
/// location of the instruction. The program refers to `module`, which must live longer than the
/// program.
Program decode(const Module &module, const Function &entry);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_PROGRAM_H
