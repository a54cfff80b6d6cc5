//===- SassCounts.cpp - What machine code an entry has ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A cubin is an ELF file with a section `.text.ENTRY` of instructions of 16 bytes each, from
// sm_70 on. Their low 12 bits say what they are, of which two are of interest here: 0x23c
// multiplies matrices (HMMA), 0x947 branches (BRA), to the next instruction plus a
// signed number of bytes in bits 32 to 81. The main loop is the shortest one, by the branch
// back at its end, that has the most multiplications.
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
static constexpr uint64_t multiplies = 0x23c, branches = 0x947;

namespace {
struct Instruction {
  uint64_t low, high;
  uint64_t opcode() const { return low & 0xfff; }
  /// Of a branch, in instructions behind this one.
  int64_t distance() const {
    uint64_t bits = low >> 32 | (high & 0x3ffff) << 32;
    return llvm::SignExtend64<50>(bits) / static_cast<int64_t>(instructionBytes) + 1;
  }
};
} // namespace

static void countInto(ArrayRef<Instruction> code, EntryReport &entry) {
  auto mmaIn = [&](size_t begin, size_t end) {
    return llvm::count_if(code.slice(begin, end - begin), [](const Instruction &i) { return i.opcode() == multiplies; });
  };
  entry.instructions = code.size();
  for (size_t at = 0; at < code.size(); ++at) {
    if (code[at].opcode() != branches || code[at].distance() > 0 || -code[at].distance() > static_cast<int64_t>(at))
      continue;
    size_t begin = at + code[at].distance();
    int64_t mma = mmaIn(begin, at + 1), length = at + 1 - begin;
    if (mma > entry.loopMma || (mma && mma == entry.loopMma && length < entry.loopInstructions)) {
      entry.loopMma = mma;
      entry.loopInstructions = length;
    }
  }
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
      code.push_back({llvm::support::endian::read64le(bytes->data() + at), llvm::support::endian::read64le(bytes->data() + at + 8)});
    for (EntryReport &entry : image.reports)
      if (*name == entry.symbol)
        countInto(code, entry);
  }
}
