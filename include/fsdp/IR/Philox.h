//===- Philox.h - The random generator as scalar code -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 (Salmon et al., SC 2011) in arith ops. 32-bit words are held in
// i64, so that a product of two is exact; on vectors this is one multiply.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_PHILOX_H
#define FSDP_IR_PHILOX_H

#include "fsdp/IR/FSDP.h"
#include "mlir/IR/Builders.h"
#include <array>

namespace mlir::fsdp {

/// A random op without its place.
struct RandomDraw {
  RandomKind kind;
  double keep;
  int64_t site;
  Type type;
};

/// The place of a sample: i64, as vectors where elements are vectors.
struct RandomPlace {
  Value seed, step, sample;
};

RandomDraw getDraw(RandomElementOp op);

/// Elements that one block of four words gives.
int64_t getElementsPerBlock(const RandomDraw &draw);
/// A word below this keeps its element.
int64_t getKeptBelow(double keep);

/// The words of blocks `block`: i64 below 2^32, scalars or vectors.
std::array<Value, 4> buildRandomBlock(OpBuilder &b, Location loc, const RandomDraw &draw,
                                      const RandomPlace &place, Value block);
/// Element `element` (i64) of a sample.
Value buildRandomElement(OpBuilder &b, Location loc, const RandomDraw &draw,
                         const RandomPlace &place, Value element);

/// The four words at `counter` (each an i64 below 2^32) under the i64 `key`; vectors alike.
std::array<Value, 4> buildPhilox(OpBuilder &b, Location loc, std::array<Value, 4> counter,
                                 Value key);

/// The element of row-major index `linear` (i64); `key` is seed, step and first as i64.
Value buildRandomElement(OpBuilder &b, Location loc, RandomOp op, ValueRange key, Value linear);

/// `x`, an f32, as one of its two neighbours in bf16 (itself when it is one): away from zero with a
/// probability that makes the mean `x`. `noise` is an i64 of 16 random bits. NaN and infinity stay
/// what they are.
Value buildStochasticRounding(OpBuilder &b, Location loc, Value x, Value noise);

} // namespace mlir::fsdp

#endif // FSDP_IR_PHILOX_H
