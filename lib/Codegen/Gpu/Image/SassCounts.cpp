//===- SassCounts.cpp - What machine code an entry has ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A cubin is an ELF file with a section `.text.ENTRY` of instructions of 16 bytes each, from sm_70
// on. Their low 12 bits say what they are, of which three are of interest here: 0x23c multiplies
// matrices (HMMA), 0x1f0 in the low 9 bits does so for a warpgroup (HGMMA, whose columns are 8 · (1
// + bits 53 to 57)), and 0x947 branches (BRA), to the next instruction plus a signed number of
// bytes: bits 32 to 81; from sm_90 on bits 34 to 81 and below them 16 to 23, in words of four
// bytes. A loop reaches from where a branch leads back to up to that branch; it is none when that
// place is amid a loop that has ended before, as where a wait that is tried again stands after all
// else. The main loop is, of those that multiply and have no other such loop within, the one with
// the most multiplications, and of these the shortest.
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
static constexpr uint64_t multiplies = 0x23c, multipliesInGroup = 0x1f0, branches = 0x947;
/// Turns of a scheduler's tensor core: of m16n8k16 on sm_80, and of 8 columns of 16 rows and k = 16
/// on sm_90.
static constexpr int64_t turnsOfMma = 8, turnsOfGroupCols = 4;

namespace {
struct Instruction {
  uint64_t low, high;
  uint64_t opcode() const { return low & 0xfff; }
  bool isMma() const { return opcode() == multiplies || isGroupMma(); }
  bool isGroupMma() const { return (low & 0x1ff) == multipliesInGroup; }
  int64_t tensorTurns() const {
    return isGroupMma() ? static_cast<int64_t>((low >> 53 & 0x1f) + 1) * turnsOfGroupCols
                        : turnsOfMma;
  }
  /// Of a branch, in instructions after this one.
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
/// Instructions [begin, end), of which `mma` multiply.
struct Loop {
  size_t begin, end;
  int64_t mma = 0, tensorTurns = 0;
  size_t length() const { return end - begin; }
  bool isWithin(const Loop &other) const {
    return begin >= other.begin && end <= other.end && length() < other.length();
  }
  bool leadsInto(const Loop &other) const {
    return begin > other.begin && begin < other.end && end > other.end;
  }
};
} // namespace

/// Loops that multiply.
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
        loop.tensorTurns += instruction.tensorTurns();
      }
    if (loop.mma)
      loops.push_back(loop);
  }
  return loops;
}

static void countInto(ArrayRef<Instruction> code, bool isSm80, EntryReport &entry) {
  entry.instructions = code.size();
  SmallVector<Loop> loops = findLoops(code, isSm80);
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
  entry.loopTensorTurns = best->tensorTurns;
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
