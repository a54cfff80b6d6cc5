//===- Combine.cpp - Operations of atomics and reductions -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An f32 addition in global memory replaces subnormal operands and results by zero, as PTX ISA
// specifies.
//
//===----------------------------------------------------------------------===//

#include "emulator/memory/Combine.h"
#include "emulator/arithmetic/Formats.h"

using namespace fsdprt::emulate;

template <typename T>
static T integerResult(Combination op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case Combination::Add:
    return U(old) + U(b);
  case Combination::Min:
    return b < old ? b : old;
  case Combination::Max:
    return old < b ? b : old;
  case Combination::Inc:
    return old >= b ? 0 : old + 1;
  case Combination::Dec:
    return old == 0 || old > b ? b : old - 1;
  case Combination::Exch:
    return b;
  case Combination::Cas:
    return old == b ? c : old;
  case Combination::And:
    return old & b;
  case Combination::Or:
    return old | b;
  case Combination::Xor:
    return old ^ b;
  }
  return old;
}

template <typename F>
static uint16_t halfResult(Combination op, uint16_t old, uint16_t b) {
  float x = F::widen(old), y = F::widen(b);
  if (op == Combination::Add)
    return F::narrow(x + y);
  if (x != x || y != y)
    return x != x ? b : old;
  return (x < y) == (op == Combination::Min) ? old : b;
}

template <typename F>
static uint32_t pairResult(Combination op, uint32_t old, uint32_t b) {
  return uint32_t(halfResult<F>(op, old >> 16, b >> 16)) << 16 | halfResult<F>(op, old, b);
}

uint64_t fsdprt::emulate::combine(Combination op, Type type, bool isGlobal, uint64_t old,
                                  uint64_t b, uint64_t c) {
  switch (type) {
  case Type::F32: {
    float x = bitsAs<float>(uint32_t(old)), y = bitsAs<float>(uint32_t(b));
    return bitsAs<uint32_t>(canonical(isGlobal ? flushed(flushed(x) + flushed(y)) : x + y));
  }
  case Type::F64:
    return bitsAs<uint64_t>(bitsAs<double>(old) + bitsAs<double>(b));
  case Type::F16:
    return halfResult<Half>(op, old, b);
  case Type::BF16:
    return halfResult<Brain>(op, old, b);
  case Type::F16x2:
    return pairResult<Half>(op, old, b);
  case Type::BF16x2:
    return pairResult<Brain>(op, old, b);
  case Type::S32:
    return uint32_t(integerResult<int32_t>(op, old, b, c));
  case Type::S64:
    return integerResult<int64_t>(op, old, b, c);
  case Type::B16:
    return integerResult<uint16_t>(op, old, b, c);
  case Type::U32:
  case Type::B32:
    return integerResult<uint32_t>(op, old, b, c);
  default:
    return integerResult<uint64_t>(op, old, b, c);
  }
}

bool fsdprt::emulate::isCombination(Combination op, Type type) {
  bool isFloating = isFloat(type),
       isBits = type == Type::B16 || type == Type::B32 || type == Type::B64;
  bool isHalf = isFloating && type != Type::F32 && type != Type::F64;
  if (sizeOf(type) == 1 || type == Type::U16 || type == Type::S16)
    return false;
  switch (op) {
  case Combination::Add:
    return !isBits;
  case Combination::Min:
  case Combination::Max:
    return !isBits && (!isFloating || isHalf);
  case Combination::Inc:
  case Combination::Dec:
    return type == Type::U32;
  case Combination::Exch:
  case Combination::Cas:
    return isBits;
  default:
    return isBits && type != Type::B16;
  }
}

Combination fsdprt::emulate::takeCombination(Decoder &d) {
  int op =
      d.modifiers.takeOneOf({"add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor"});
  if (op < 0)
    d.fail("expected an operation such as .add in '%s'", std::string(d.statement->opcode).c_str());
  return static_cast<Combination>(op);
}

void fsdprt::emulate::checkCombination(Decoder &d, Combination op, Type type) {
  if (!isCombination(op, type))
    d.fail("type %s is not supported by this operation", nameOf(type));
}
