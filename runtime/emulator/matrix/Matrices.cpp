//===- Matrices.cpp - Matrix products of a warp -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Warp Level Matrix Instructions: mma". With g = lane / 4, t = lane % 4, and e
// elements per register (2 if they have 16 bits, otherwise 1), register r holds
//
//   A   row g + 8 (r % 2), column e t + 4 e (r / 2) + {0, .., e-1}
//   B   row e t + 4 e r + {0, .., e-1}, column g
//   C,D row g + 8 (r / 2), column 2 t + r % 2; of f16 row g + 8 r, columns 2 t + {0, 1}
//
// Error model: the products are exact. The products are added in double in the order of k,
// beginning with the accumulator. The sum is rounded to its type once. PTX ISA does not define the
// order of the additions, and requires only f32 precision.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Decoder.h"

using namespace fsdprt::emulate;

namespace {
enum Kind : uint8_t { IsHalf, IsBrain, IsTF32, IsDouble };

struct Shape {
  uint8_t rows, inner; ///< number of rows of A and D, and extent of K; D always has 8 columns
  Kind kind;
  bool takesHalf, givesHalf; ///< true if C is f16, true if D is f16
};

Shape shapeOf(const Instruction &i) {
  Shape shape;
  std::memcpy(&shape, &i.payload, sizeof shape);
  return shape;
}

/// Returns an element of a lane's register. `part` is the index of the element in the register.
template <uint8_t kind>
FSDPRT_INLINE double element(Warp &warp, Slot slot, unsigned lane, unsigned part) {
  if (kind == IsDouble)
    return warp.at<double>(slot)[lane];
  uint32_t bits = warp.at<uint32_t>(slot)[lane];
  if (kind == IsTF32)
    // A TF32 number consists of the high 19 bits of an f32 number. mma ignores the other bits.
    return bitsAs<float>(bits & ~0x1fffu);
  uint16_t half = bits >> (16 * part);
  return kind == IsHalf ? Half::widen(half) : Brain::widen(half);
}

template <uint8_t kind>
struct Mma {
  static constexpr unsigned e = kind == IsHalf || kind == IsBrain ? 2 : 1;

  static FSDPRT_INLINE void load(Warp &warp, const Instruction &i, const Shape &shape,
                                 double (&a)[16][16], double (&b)[16][8]) {
    unsigned halves = shape.rows / 8, aCount = halves * shape.inner / (4 * e),
             bCount = shape.inner / (4 * e);
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      unsigned g = lane / 4, t = lane % 4;
      for (unsigned part = 0; part < e; ++part) {
        for (unsigned r = 0; r < aCount; ++r)
          a[g + 8 * (r % halves)][e * t + 4 * e * (r / halves) + part] =
              element<kind>(warp, i.in[r], lane, part);
        for (unsigned r = 0; r < bCount; ++r)
          b[e * t + 4 * e * r + part][g] = element<kind>(warp, i.in[aCount + r], lane, part);
      }
    }
  }

  /// Returns a reference to the element of C or D that is element number `index` of a lane. In each
  /// group of eight rows, a lane has two elements.
  static FSDPRT_INLINE double &place(double (&sums)[16][8], unsigned lane, unsigned index) {
    return sums[lane / 4 + 8 * (index / 2)][2 * (lane % 4) + index % 2];
  }

  static FSDPRT_INLINE void loadSums(Warp &warp, const Slot *in, const Shape &shape,
                                     double (&sums)[16][8]) {
    for (unsigned index = 0; index < shape.rows / 4u; ++index)
      for (unsigned lane = 0; lane < warpSize; ++lane)
        place(sums, lane, index) = shape.takesHalf
                                       ? element<IsHalf>(warp, in[index / 2], lane, index % 2)
                                   : kind == IsDouble ? warp.at<double>(in[index])[lane]
                                                      : double(warp.at<float>(in[index])[lane]);
  }

  static FSDPRT_INLINE void storeSums(Warp &warp, const Slot *out, const Shape &shape,
                                      double (&sums)[16][8]) {
    for (unsigned index = 0; index < shape.rows / 4u; ++index)
      for (unsigned lane = 0; lane < warpSize; ++lane) {
        double sum = place(sums, lane, index);
        if (shape.givesHalf) {
          uint16_t half = encode(sum, formatF16, Rounding::NearestEven, false);
          std::memcpy(reinterpret_cast<uint16_t *>(warp.at<uint32_t>(out[index / 2]) + lane) +
                          index % 2,
                      &half, 2);
        } else if (kind == IsDouble) {
          warp.at<double>(out[index])[lane] = sum;
        } else {
          warp.at<float>(out[index])[lane] = canonical(float(sum));
        }
      }
  }

  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    if (active != allLanes)
      warp.fail(active, "all 32 lanes have to take part");
    Shape shape = shapeOf(i);
    double a[16][16], b[16][8], sums[16][8];
    load(warp, i, shape, a, b);
    loadSums(warp, i.in + i.modifier, shape, sums);
    for (unsigned row = 0; row < shape.rows; ++row)
      for (unsigned k = 0; k < shape.inner; ++k)
        for (unsigned column = 0; column < 8; ++column)
          sums[row][column] = kind == IsDouble
                                  ? __builtin_fma(a[row][k], b[k][column], sums[row][column])
                                  : sums[row][column] + a[row][k] * b[k][column];
    storeSums(warp, i.out, shape, sums);
    warp.block.cluster.grid.counters.multiplyAdds += shape.rows * shape.inner * 8;
    return Step::Next;
  }
};

Handler handlerFor(Kind kind) {
  switch (kind) {
  case IsHalf:
    return handler<Mma<IsHalf>>();
  case IsBrain:
    return handler<Mma<IsBrain>>();
  case IsTF32:
    return handler<Mma<IsTF32>>();
  default:
    return handler<Mma<IsDouble>>();
  }
}
} // namespace

static std::vector<Slot> registers(Decoder &d, const Operand &operand, Type type, unsigned count,
                                   bool isSource) {
  auto elements = Decoder::elements(operand);
  if (elements.size() != count)
    d.failAt(operand.at,
             fsdprt::format("expected %u registers, found %zu", count, elements.size()));
  std::vector<Slot> slots;
  for (const Operand *each : elements)
    slots.push_back(isSource ? d.source(*each, type) : d.destination(*each, type));
  return slots;
}

static Shape takeShape(Decoder &d, Type &to, Type &from) {
  int size = d.modifiers.takeOneOf({"m16n8k4", "m16n8k8", "m16n8k16", "m8n8k4"});
  d.modifiers.take("sync");
  d.modifiers.take("aligned");
  if (size < 0 || !d.modifiers.take("row") || !d.modifiers.take("col"))
    d.fail("expected m16n8k4, m16n8k8, m16n8k16 or m8n8k4, and .row.col");
  to = d.typeOneOf({Type::F16, Type::F32, Type::F64});
  Type a = d.typeOneOf({Type::F16, Type::BF16, Type::TF32, Type::F64}), b = d.type();
  from = d.typeOneOf({Type::F16, Type::F32, Type::F64});
  static const uint8_t inner[] = {4, 8, 16, 4};
  Kind kind = a == Type::F16    ? IsHalf
              : a == Type::BF16 ? IsBrain
              : a == Type::TF32 ? IsTF32
                                : IsDouble;
  bool isKnown = kind == IsTF32 ? size < 2 : kind == IsDouble ? size == 3 : size == 1 || size == 2;
  bool areSums = kind == IsDouble ? to == a && from == a
                 : kind == IsHalf ? to != Type::F64 && from == to
                                  : to == Type::F32 && from == to;
  if (a != b || !isKnown || !areSums)
    d.fail("unsupported product %s", quoted(d.statement->opcode).c_str());
  return {uint8_t(size == 3 ? 8 : 16), inner[size], kind, from == Type::F16, to == Type::F16};
}

bool fsdprt::emulate::decodeMatrix(Decoder &d) {
  Type to, from;
  Shape shape = takeShape(d, to, from);
  d.operandCount(4, 4);
  unsigned e = shape.kind <= IsBrain ? 2 : 1, a = shape.rows / 8 * shape.inner / (4 * e),
           b = shape.inner / (4 * e);
  unsigned sums = shape.givesHalf ? shape.rows / 8 : shape.rows / 4;
  Type wide = shape.kind == IsDouble ? Type::F64 : Type::B32;
  std::vector<Slot> outs = registers(d, d.operand(0), wide, sums, false),
                    ins = registers(d, d.operand(1), wide, a, true);
  for (unsigned k : {2, 3}) {
    std::vector<Slot> more = registers(d, d.operand(k),
                                       k == 2                                 ? wide
                                       : shape.givesHalf || wide == Type::F64 ? wide
                                                                              : Type::F32,
                                       k == 2 ? b : sums, true);
    ins.insert(ins.end(), more.begin(), more.end());
  }
  Instruction &i = d.emit(handlerFor(shape.kind), outs, ins);
  i.modifier = a + b;
  std::memcpy(&i.payload, &shape, sizeof shape);
  return true;
}
