//===- Philox.h - The random generator as arith ops -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds Philox4x32-10 (Salmon et al., SC 2011) in arith ops, on scalars or vectors. i64 values
// hold 32-bit words, so that one multiplication gives the exact product of two words.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_PHILOX_H
#define FSDP_IR_PHILOX_H

#include "fsdp/IR/FSDP.h"
#include "mlir/IR/Builders.h"
#include <array>

namespace mlir::fsdp {

/// Attributes and element type of a random op.
struct RandomDraw {
  RandomKind kind;
  double keep;
  int64_t site;
  Type type;
};

/// Seed, step and sample, which select the random numbers. Each is an i64, or a vector of i64 to
/// build vectors of elements.
struct RandomPlace {
  Value seed, step, sample;
};

RandomDraw getDraw(RandomElementOp op);

/// Returns the number of elements that one block of four words yields: 4, or 2 for uniform f64.
int64_t getElementsPerBlock(const RandomDraw &draw);
/// Returns the bound of a bernoulli draw, keep·2^32 rounded. An element is kept if its word is less
/// than the bound.
int64_t getKeptBelow(double keep);

/// Builds the four words, each an i64 below 2^32, of the block with index `block` in a sample.
std::array<Value, 4> buildRandomBlock(OpBuilder &b, Location loc, const RandomDraw &draw,
                                      const RandomPlace &place, Value block);
/// Builds the random number with index `element` (i64) of a sample.
Value buildRandomElement(OpBuilder &b, Location loc, const RandomDraw &draw,
                         const RandomPlace &place, Value element);

/// Builds the four words of Philox (each an i64 below 2^32) at `counter`, under the i64 `key`.
std::array<Value, 4> buildPhilox(OpBuilder &b, Location loc, std::array<Value, 4> counter,
                                 Value key);

/// Builds the element with row-major index `linear` (i64) of the result of `op`. `key` holds seed,
/// step and first sample as i64.
Value buildRandomElement(OpBuilder &b, Location loc, RandomOp op, ValueRange key, Value linear);

/// Rounds `x` (f32) to one of the two nearest bf16 values, at random so that the mean is `x`.
/// Values of bf16, NaN and infinity do not change. `noise` is an i64 of 16 random bits.
Value buildStochasticRounding(OpBuilder &b, Location loc, Value x, Value noise);

} // namespace mlir::fsdp

#endif // FSDP_IR_PHILOX_H
