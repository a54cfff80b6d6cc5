//===- SassCounts.cpp - Instruction counts of machine code ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A cubin is an ELF file with a section `.text.ENTRY` for each entry. Instructions of sm_70 and
// later have 16 bytes. This file uses the following opcodes (low 12 bits):
//
//   0x23c                 HMMA    multiplies matrices
//   0x1f0 (low 9 bits)    HGMMA   multiplies for a warpgroup; 8 · (1 + bits 53 .. 57) columns;
//                                 ends a group of products unless bits 84 .. 86 are set
//   0x9c5, bit 47         WARPGROUP.DEPBAR  waits until at most bits 72 .. 74 groups are in flight
//   0x308, bits 74 .. 77  MUFU    special functions; 2: exponentials
//   0x11d (low 9 bits)    BAR     barriers of threads
//   0x992, bits 76 .. 78  MEMBAR  fences of memory; 0: of the block alone
//   0x947                 BRA     branches to the next instruction plus a signed offset: before
//                                 sm_90 an offset in bytes in bits 32 .. 81; from sm_90 on an
//                                 offset in words of four bytes in bits 34 .. 81, followed by
//                                 bits 16 .. 23
//
// A loop extends from the target of a backward branch to that branch. A loop is ignored if the
// target of the branch is inside another loop that ends before the branch. Such a branch repeats a
// wait, and its code is at the end of the entry. The main loop is the innermost loop with the
// largest number of matrix instructions. If several loops have this number of matrix instructions,
// the main loop is the one with the fewest instructions.
//
// Products in flight are followed through two turns of the main loop, in the order of its
// instructions, and the second turn is counted.
//
//===----------------------------------------------------------------------===//

#include "GpuLowering.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr size_t instructionBytes = 16;
static constexpr uint64_t multiplies = 0x23c, multipliesInGroup = 0x1f0, branches = 0x947,
                          waitsForGroup = 0x9c5, isSpecial = 0x308, meetsThreads = 0x11d,
                          fencesMemory = 0x992;
/// Number of cycles for which the tensor core of one scheduler is busy with a product of 16 rows, 8
/// columns and 16 values of k: on sm_80 (`cyclesOfMma`), and on sm_90 (`cyclesOfGroupCols`).
static constexpr int64_t cyclesOfMma = 8, cyclesOfGroupCols = 4;

namespace {
struct Instruction {
  uint64_t low, high;
  uint64_t opcode() const { return low & 0xfff; }
  bool isMma() const { return opcode() == multiplies || isGroupMma(); }
  bool isGroupMma() const { return (low & 0x1ff) == multipliesInGroup; }
  bool endsGroup() const { return isGroupMma() && (high >> 20 & 7) != 7; }
  /// Returns true for a wait until at most mostInFlight() groups of products are in flight.
  bool waits() const { return opcode() == waitsForGroup && (low >> 47 & 1); }
  int64_t mostInFlight() const { return static_cast<int64_t>(high >> 8 & 7); }
  bool isExponential() const { return opcode() == isSpecial && (high >> 10 & 0xf) == 2; }
  bool isBarrier() const { return (low & 0x1ff) == meetsThreads; }
  /// Returns true for a fence that reaches beyond the block.
  bool fencesGpu() const { return opcode() == fencesMemory && (high >> 12 & 7) != 0; }
  int64_t tensorCycles() const {
    return isGroupMma() ? static_cast<int64_t>((low >> 53 & 0x1f) + 1) * cyclesOfGroupCols
                        : cyclesOfMma;
  }
  /// Returns the distance from this instruction to a branch's target, in instructions.
  int64_t distance(bool isSm80) const {
    uint64_t bits = low >> 32 | (high & 0x3ffff) << 32;
    if (!isSm80)
      bits = (bits >> 2 << 8 | (low >> 16 & 0xff)) << 2;
    return (isSm80 ? llvm::SignExtend64<50>(bits) : llvm::SignExtend64<58>(bits)) /
               static_cast<int64_t>(instructionBytes) +
           1;
  }
};
} // namespace

namespace {
/// The instructions [begin, end) of a loop. `mma` is the number of instructions of the loop that
/// multiply matrices.
struct Loop {
  size_t begin, end;
  int64_t mma = 0, tensorCycles = 0;
  size_t length() const { return end - begin; }
  bool isWithin(const Loop &other) const {
    return begin >= other.begin && end <= other.end && length() < other.length();
  }
  bool leadsInto(const Loop &other) const {
    return begin > other.begin && begin < other.end && end > other.end;
  }
};
} // namespace

/// Returns all loops.
static SmallVector<Loop> findLoops(ArrayRef<Instruction> code, bool isSm80) {
  SmallVector<Loop> loops;
  for (size_t at = 0; at < code.size(); ++at) {
    int64_t distance = code[at].opcode() == branches ? code[at].distance(isSm80) : 1;
    if (distance > 0 || -distance > static_cast<int64_t>(at))
      continue;
    Loop loop{at + distance, at + 1};
    for (const Instruction &instruction : code.slice(loop.begin, loop.length()))
      if (instruction.isMma()) {
        ++loop.mma;
        loop.tensorCycles += instruction.tensorCycles();
      }
    loops.push_back(loop);
  }
  return loops;
}

/// Counts what is issued in a turn of the main loop beside products in flight, and without them.
/// Products of single warps (HMMA) are complete when their results are used, so that nothing is in
/// flight.
static void countOverlap(ArrayRef<Instruction> loop, EntryReport &entry) {
  int64_t groups = 0;  // in flight
  bool isOpen = false; // products of a group that has not ended
  for (bool counts : {false, true})
    for (const Instruction &instruction : loop) {
      if (instruction.isGroupMma()) {
        isOpen = !instruction.endsGroup();
        groups += instruction.endsGroup();
      } else if (instruction.waits()) {
        groups = std::min(groups, instruction.mostInFlight());
      }
      if (!counts)
        continue;
      bool overlaps = groups > 0 || isOpen;
      entry.loopExponentials += instruction.isExponential();
      entry.loopOverlapped += instruction.isExponential() && overlaps;
      entry.loopIdle += !overlaps;
      entry.loopBarriers += instruction.isBarrier();
    }
}

/// Returns the number of fences of the GPU's memory in loops.
static int64_t countFences(ArrayRef<Instruction> code, ArrayRef<Loop> loops) {
  int64_t fences = 0;
  for (auto [at, instruction] : llvm::enumerate(code))
    fences += instruction.fencesGpu() && llvm::any_of(loops, [at = at](const Loop &loop) {
                return at >= loop.begin && at < loop.end;
              });
  return fences;
}

static void countInto(ArrayRef<Instruction> code, bool isSm80, EntryReport &entry) {
  entry.instructions = code.size();
  SmallVector<Loop> loops = findLoops(code, isSm80);
  entry.loopFences = countFences(code, loops);
  llvm::erase_if(loops, [](const Loop &loop) { return loop.mma == 0; });
  const Loop *best = nullptr;
  for (const Loop &loop : loops) {
    if (llvm::any_of(loops, [&](const Loop &other) {
          return other.isWithin(loop) || loop.leadsInto(other);
        }))
      continue;
    if (!best || loop.mma > best->mma || (loop.mma == best->mma && loop.length() < best->length()))
      best = &loop;
  }
  if (!best)
    return;
  entry.loopInstructions = best->length();
  entry.loopMma = best->mma;
  entry.loopTensorCycles = best->tensorCycles;
  countOverlap(code.slice(best->begin, best->length()), entry);
}

void fsdp::countInstructions(GpuImage &image) {
  using File = llvm::object::ELF64LEFile;
  auto file = File::create(StringRef(image.cubin.data(), image.cubin.size()));
  if (!file)
    return llvm::consumeError(file.takeError());
  auto sections = file->sections();
  if (!sections)
    return llvm::consumeError(sections.takeError());
  for (const auto &section : *sections) {
    auto name = file->getSectionName(section);
    auto bytes = file->getSectionContents(section);
    if (!name || !bytes) {
      llvm::consumeError(name.takeError());
      llvm::consumeError(bytes.takeError());
      continue;
    }
    if (!name->consume_front(".text."))
      continue;
    SmallVector<Instruction> code;
    for (size_t at = 0; at + instructionBytes <= bytes->size(); at += instructionBytes)
      code.push_back({llvm::support::endian::read64le(bytes->data() + at),
                      llvm::support::endian::read64le(bytes->data() + at + 8)});
    for (EntryReport &entry : image.reports)
      if (*name == entry.symbol)
        countInto(code, image.chip == "sm_80", entry);
  }
}
