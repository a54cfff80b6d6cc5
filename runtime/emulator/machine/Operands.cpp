//===- Operands.cpp - Operands to slots -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Assigns slots to the operands of instructions. A register gets a slot when the decoder first
// finds it. Constants with equal values and sizes share a slot.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::emulate;

static unsigned slotsFor(unsigned size) { return size <= 2 ? 1 : size * warpSize / slotBytes; }

Slot Decoder::scratch(unsigned size) {
  Slot slot = program.slotCount;
  program.slotCount += slotsFor(size);
  return slot;
}

Slot Decoder::constantSlot(unsigned size, uint64_t bits) {
  if (size && size < 8)
    bits &= (uint64_t(1) << (8 * size)) - 1;
  auto [known, isNew] = constants.emplace(std::make_pair(size, bits), 0);
  if (isNew) {
    known->second = scratch(size);
    program.constants.push_back({known->second, static_cast<uint8_t>(size), bits});
  }
  return known->second;
}

static std::string registerName(const Function &function, uint32_t index) {
  for (const RegisterRange &range : function.ranges)
    if (index - range.first < range.count)
      return std::string(range.name) +
             (range.isNumbered ? std::to_string(index - range.first) : "");
  return "";
}

Slot Decoder::registerSlot(uint32_t index) {
  Slot &slot = frame->registers[index];
  if (!slot) {
    slot = scratch(sizeOf(frame->function->registers[index]));
    program.names[slot] = registerName(*frame->function, index);
  }
  return slot;
}

std::vector<const Operand *> Decoder::elements(const Operand &operand) {
  std::vector<const Operand *> result;
  if (operand.kind != OperandKind::Vector)
    return {&operand};
  for (const Operand &element : operand.elements)
    result.push_back(&element);
  return result;
}

/// Returns the bits of a literal as a number of the given type. A floating-point literal is rounded
/// to the type. All bits of an integer are returned, and the caller truncates the integer to the
/// type (PTX ISA, "Constants").
uint64_t Decoder::literal(const Operand &operand, Type type) {
  if (operand.kind == OperandKind::Integer) {
    if (type == Type::F32 || type == Type::F64)
      failAt(operand.at, format("expected a floating-point constant of type %s", nameOf(type)));
    return operand.integer;
  }
  double value;
  if (operand.kind == OperandKind::Single) {
    if (type != Type::F64)
      return operand.integer;
    float narrow;
    uint32_t bits = operand.integer;
    std::memcpy(&narrow, &bits, 4);
    value = narrow;
  } else {
    std::memcpy(&value, &operand.integer, 8);
  }
  uint64_t bits = 0;
  if (type == Type::F32) {
    float narrow = value;
    std::memcpy(&bits, &narrow, 4);
  } else {
    std::memcpy(&bits, &value, 8);
  }
  return bits;
}

uint64_t Decoder::constant(const Operand &operand, const char *what) {
  if (operand.kind != OperandKind::Integer)
    failAt(operand.at, format("expected %s as a constant", what));
  return operand.integer;
}

static bool isLiteral(const Operand &operand) {
  return operand.kind == OperandKind::Integer || operand.kind == OperandKind::Single ||
         operand.kind == OperandKind::Double;
}

Slot Decoder::source(const Operand &operand, Type type) {
  unsigned size = 0;
  if (type == Type::Pred)
    return predicate(operand);
  Slot slot = wideSource(operand, type, size);
  if (size != sizeOf(type))
    failAt(operand.at, format("expected an operand of %u bits for type %s, found a register of %u",
                              8 * sizeOf(type), nameOf(type), 8 * size));
  return slot;
}

Slot Decoder::wideSource(const Operand &operand, Type type, unsigned &size) {
  size = sizeOf(type);
  if (operand.kind == OperandKind::Register) {
    size = sizeOf(frame->function->registers[operand.index]);
    if (!size || size < sizeOf(type))
      failAt(operand.at,
             format("expected an operand of at least %u bits for type %s, found %s",
                    8 * sizeOf(type), nameOf(type), size ? "a narrower register" : "a predicate"));
    return registerSlot(operand.index);
  }
  if (isLiteral(operand)) {
    size = size < 2 ? 2 : size;
    return constantSlot(size, literal(operand, type));
  }
  if (operand.kind == OperandKind::Variable)
    return addressOf(*operand.variable, operand.integer, size, operand);
  if (operand.kind == OperandKind::Name && operand.text[0] == '%')
    return special(operand, size);
  if (operand.kind == OperandKind::Name)
    failAt(operand.at,
           format("%s is neither a register nor a variable", quoted(operand.text).c_str()));
  failAt(operand.at, format("expected one operand of type %s", nameOf(type)));
}

Slot Decoder::destination(const Operand &operand, Type type) {
  unsigned size = 0;
  Slot slot = wideDestination(operand, type, size);
  if (size != sizeOf(type))
    failAt(operand.at, format("expected a register of %u bits for type %s, found one of %u",
                              8 * sizeOf(type), nameOf(type), 8 * size));
  return slot;
}

Slot Decoder::wideDestination(const Operand &operand, Type type, unsigned &size) {
  size = sizeOf(type);
  if (operand.kind == OperandKind::Sink)
    return scratch(size);
  if (operand.kind != OperandKind::Register)
    failAt(operand.at, format("expected a register of type %s", nameOf(type)));
  size = sizeOf(frame->function->registers[operand.index]);
  if (size < sizeOf(type) || (!size != (type == Type::Pred)))
    failAt(operand.at, format("expected a register of %s %s, found %s",
                              type == Type::Pred ? "type" : "at least the size of", nameOf(type),
                              size ? "another" : "a predicate"));
  return registerSlot(operand.index);
}

/// Negates a predicate. The decoder emits this handler before an instruction that has a negated
/// predicate as an operand.
static Step negatePredicate(Warp &warp, const Instruction &i, LaneMask active) {
  warp.predicate(i.out[0]) = ~warp.predicate(i.in[0]);
  return Step::Next;
}

Slot Decoder::predicate(const Operand &operand) {
  if (operand.kind == OperandKind::Integer)
    return constantSlot(0, operand.integer ? allLanes : 0);
  if (operand.kind == OperandKind::Name && operand.text == "%is_explicit_cluster")
    return special(operand, 0);
  if (operand.kind != OperandKind::Register ||
      frame->function->registers[operand.index] != Type::Pred)
    failAt(operand.at, "expected a predicate");
  Slot slot = registerSlot(operand.index);
  if (!operand.isNegated)
    return slot;
  Slot negated = scratch(0);
  emit(negatePredicate, {negated}, {slot}).flow = Flow::Moves;
  return negated;
}

/// Returns the slot of a special register (PTX ISA, "Special Registers"). The special registers
/// whose values change while a warp runs have no slots: decodeMove() decodes their reads.
Slot Decoder::special(const Operand &operand, unsigned size) {
  static const std::map<std::string_view, unsigned> sizes = [] {
    std::map<std::string_view, unsigned> result;
    for (const char *name : {"%tid.x",
                             "%tid.y",
                             "%tid.z",
                             "%ntid.x",
                             "%ntid.y",
                             "%ntid.z",
                             "%ctaid.x",
                             "%ctaid.y",
                             "%ctaid.z",
                             "%nctaid.x",
                             "%nctaid.y",
                             "%nctaid.z",
                             "%laneid",
                             "%warpid",
                             "%nwarpid",
                             "%smid",
                             "%nsmid",
                             "%clusterid.x",
                             "%clusterid.y",
                             "%clusterid.z",
                             "%nclusterid.x",
                             "%nclusterid.y",
                             "%nclusterid.z",
                             "%cluster_ctaid.x",
                             "%cluster_ctaid.y",
                             "%cluster_ctaid.z",
                             "%cluster_nctaid.x",
                             "%cluster_nctaid.y",
                             "%cluster_nctaid.z",
                             "%cluster_ctarank",
                             "%cluster_nctarank",
                             "%lanemask_eq",
                             "%lanemask_le",
                             "%lanemask_lt",
                             "%lanemask_ge",
                             "%lanemask_gt",
                             "%dynamic_smem_size",
                             "%total_smem_size"})
      result[name] = 4;
    result["%gridid"] = 8;
    result["%is_explicit_cluster"] = 0;
    return result;
  }();
  auto known = sizes.find(operand.text);
  if (known == sizes.end())
    failAt(operand.at, format("%s is neither a declared register nor a known special register",
                              quoted(operand.text).c_str()));
  if (known->second != size)
    failAt(operand.at, format("%s has %u bits, expected %u", quoted(operand.text).c_str(),
                              8 * known->second, 8 * size));
  auto [entry, isNew] = program.specials.emplace(std::string(operand.text), 0);
  if (isNew)
    entry->second = scratch(size);
  return entry->second;
}

std::optional<Placement> Decoder::placement(const Variable &variable) const {
  if (auto own = frame->variables.find(&variable); own != frame->variables.end())
    return own->second;
  if (auto known = shared.find(&variable); known != shared.end())
    return Placement{Space::Shared, known->second};
  return std::nullopt;
}

Slot Decoder::addressOf(const Variable &variable, int64_t addend, unsigned size,
                        const Operand &operand) {
  if (size != 8 && size != 4)
    failAt(operand.at, "an address needs 32 or 64 bits");
  if (auto place = placement(variable))
    return constantSlot(size, place->offset + addend);
  if (variable.isExternal)
    failAt(operand.at, format("%s is defined in another module", quoted(variable.name).c_str()));
  if (size != 8)
    failAt(operand.at, format("the address of %s needs 64 bits", quoted(variable.name).c_str()));
  auto [known, isNew] = addresses.emplace(std::make_pair(&variable, addend), 0);
  if (isNew) {
    known->second = scratch(8);
    program.addressConstants.push_back({known->second, &variable, addend});
  }
  return known->second;
}

Slot Decoder::address(const Operand &operand, Space &space, int64_t &offset, bool &isWide) {
  if (operand.kind != OperandKind::Address)
    failAt(operand.at, "expected an address in brackets");
  const Operand &base = operand.elements[0];
  offset = operand.integer;
  isWide = true;
  if (base.kind == OperandKind::Register) {
    unsigned size = sizeOf(frame->function->registers[base.index]);
    if (size != 4 && size != 8)
      failAt(base.at, "expected an address of 32 or 64 bits");
    isWide = size == 8;
    return registerSlot(base.index);
  }
  if (base.kind == OperandKind::Integer)
    return constantSlot(8, base.integer);
  Space own = base.variable->space;
  if (auto place = placement(*base.variable))
    own = place->space;
  bool isParameter =
      space == Space::Param && own == Space::Local && base.variable->space == Space::Param;
  bool isFlat = space == Space::Generic && (own == Space::Global || own == Space::Const);
  if (own != space && !isParameter && !isFlat)
    failAt(base.at, format("%s is in %s memory, but the instruction is for %s memory",
                           quoted(base.variable->name).c_str(), nameOf(own), nameOf(space)));
  space = isFlat ? space : own;
  return addressOf(*base.variable, 0, 8, base);
}
