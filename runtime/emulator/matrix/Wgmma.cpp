//===- Wgmma.cpp - Decodes wgmma --------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decodes wgmma (PTX ISA, "Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async"):
//
//   wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 {d...}, a, b, scale-d, imm-scale-a,
//     imm-scale-b, imm-trans-a, imm-trans-b
//
// The operand `a` is a matrix descriptor or four registers. The operand imm-trans-b exists only for
// 16-bit types. The operand imm-trans-a exists only if the type has 16 bits and `a` is a
// descriptor.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Machine.h"
#include <algorithm>
#include <charconv>

using namespace fsdprt::emulate;

/// Takes a shape such as m64nNk16 from the modifiers and returns N, a multiple of 8 up to 256.
static uint16_t takeColumns(Decoder &d, unsigned &inner) {
  for (std::string_view part : d.modifiers.left()) {
    uint16_t columns = 0;
    if (part.substr(0, 4) != "m64n")
      continue;
    auto [end, error] = std::from_chars(part.data() + 4, part.data() + part.size(), columns);
    std::string_view rest(end, part.data() + part.size() - end);
    if (error == std::errc() && columns >= 8 && columns <= 256 && columns % 8 == 0 &&
        (rest == "k16" || rest == "k8")) {
      inner = rest == "k16" ? 16 : 8;
      d.modifiers.take(part);
      return columns;
    }
  }
  d.fail("expected a shape such as .m64n128k16, with 8 to 256 columns, a multiple of 8");
}

static WgmmaPlan takeShape(Decoder &d) {
  WgmmaPlan plan = {};
  unsigned inner = 0;
  plan.columns = takeColumns(d, inner);
  Type sums = d.typeOneOf({Type::F16, Type::F32}),
       a = d.typeOneOf({Type::F16, Type::BF16, Type::TF32}), b = d.type();
  plan.kind = a == Type::F16    ? WgmmaPlan::Half
              : a == Type::BF16 ? WgmmaPlan::Brain
                                : WgmmaPlan::TF32;
  plan.sumsAreHalf = sums == Type::F16;
  if (a != b || inner != plan.inner() || (plan.sumsAreHalf && a != Type::F16))
    d.fail("unsupported product %s", quoted(d.statement->opcode).c_str());
  return plan;
}

/// Parses a scale of 1 or -1. Returns true for -1.
static bool takeScale(Decoder &d, const Operand &operand) {
  int64_t scale = d.constant(operand, "1 or -1");
  if (scale != 1 && scale != -1)
    d.failAt(operand.at, "expected a scale of 1 or -1");
  return scale < 0;
}

static bool takeTranspose(Decoder &d, const Operand &operand) {
  uint64_t transposes = d.constant(operand, "0 or 1");
  if (transposes > 1)
    d.failAt(operand.at, "expected a transposition of 0 or 1");
  return transposes;
}

static void takeModes(Decoder &d, WgmmaPlan &plan) {
  bool hasTransposes = plan.kind != WgmmaPlan::TF32;
  unsigned count = 6 + (hasTransposes ? 1 + plan.aIsShared : 0);
  d.operandCount(count, count);
  plan.negatesA = takeScale(d, d.operand(4));
  plan.negatesB = takeScale(d, d.operand(5));
  if (!hasTransposes)
    return;
  if (plan.aIsShared)
    plan.transposesA = takeTranspose(d, d.operand(6));
  plan.transposesB = takeTranspose(d, d.operand(6 + plan.aIsShared));
}

static std::vector<Slot> takeRegisters(Decoder &d, const Operand &operand, unsigned count,
                                       bool isSource) {
  auto elements = Decoder::elements(operand);
  if (elements.size() != count)
    d.failAt(operand.at,
             fsdprt::format("expected %u registers, found %zu", count, elements.size()));
  std::vector<Slot> slots;
  for (const Operand *each : elements)
    slots.push_back(isSource ? d.source(*each, Type::B32) : d.destination(*each, Type::B32));
  return slots;
}

bool fsdprt::emulate::decodeWgmma(Decoder &d) {
  if (!d.modifiers.take("mma_async"))
    return decodeWgmmaOrder(d);
  if (!d.modifiers.take("sync") || !d.modifiers.take("aligned"))
    d.fail("expected .sync.aligned");
  WgmmaPlan plan = takeShape(d);
  d.operandCount(6, 8);
  plan.aIsShared = d.operand(1).kind != OperandKind::Vector;
  takeModes(d, plan);
  std::vector<Slot> outs = takeRegisters(d, d.operand(0), plan.sumRegisters(), false), ins;
  if (plan.aIsShared)
    ins.push_back(d.source(1, Type::B64));
  else
    ins = takeRegisters(d, d.operand(1), 4, true);
  ins.push_back(d.source(2, Type::B64));
  ins.push_back(d.predicate(d.operand(3)));
  d.emit(issueProduct, outs, ins, plan).isWgmma = true;
  return true;
}

void fsdprt::emulate::watchRegisters(Program &program) {
  std::vector<bool> isWatched(program.slotCount);
  for (const Instruction &i : program.code) {
    if (i.run != issueProduct)
      continue;
    for (unsigned k = 0; k < i.outCount; ++k)
      isWatched[i.out[k]] = true;
    if (!static_cast<const WgmmaPlan *>(i.plan)->aIsShared)
      for (unsigned k = 0; k < 4; ++k)
        isWatched[i.in[k]] = true;
  }
  auto isMove = [&](const Instruction &i) {
    return i.flow == Flow::Moves && i.inCount == 1 && i.outCount == 1 &&
           program.names.count(i.in[0]) && program.names.count(i.out[0]);
  };
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (const Instruction &i : program.code)
      if (isMove(i) && isWatched[i.in[0]] != isWatched[i.out[0]])
        isChanged = isWatched[i.in[0]] = isWatched[i.out[0]] = true;
  }
  for (Instruction &i : program.code) {
    auto has = [&](const Slot *slots, unsigned count) {
      return std::any_of(slots, slots + count, [&](Slot slot) { return isWatched[slot]; });
    };
    i.isWatched = has(i.in, i.inCount) || has(i.out, i.outCount);
    i.isRenaming = i.isWatched && isMove(i);
  }
}
