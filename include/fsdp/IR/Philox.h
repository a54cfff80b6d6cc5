//===- Philox.h - The random generator as arith ops -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the generator Philox4x32-10 (Salmon et al., SC 2011) from arith ops on scalars or vectors.
// Each 32-bit word is an i64 value, so that one multiplication yields the product of two words.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_PHILOX_H
#define FSDP_IR_PHILOX_H

#include "fsdp/IR/FSDP.h"
#include "mlir/IR/Builders.h"
#include <array>

namespace mlir::fsdp {

/// Attributes of a random op, and the type of its elements.
struct RandomDraw {
  RandomKind kind;
  double keep;
  int64_t site;
  Type type;
};

/// Seed, step and sample, which select the random numbers. All three are i64 or, to compute several
/// elements at once, vectors of i64.
struct RandomPlace {
  Value seed, step, sample;
};

RandomDraw getDraw(RandomElementOp op);

/// Returns the number of elements computed from one block of four words: 4, or 2 for uniform f64.
int64_t getElementsPerBlock(const RandomDraw &draw);
/// Returns `keep`·2^32, rounded. A bernoulli draw keeps an element if its word is below this bound.
int64_t getKeptBelow(double keep);

/// Builds the four words, each an i64 below 2^32, of the block with index `block` in a sample.
std::array<Value, 4> buildRandomBlock(OpBuilder &b, Location loc, const RandomDraw &draw,
                                      const RandomPlace &place, Value block);
/// Builds the random number for element `element` (i64) of a sample.
Value buildRandomElement(OpBuilder &b, Location loc, const RandomDraw &draw,
                         const RandomPlace &place, Value element);

/// Builds the four output words of Philox (each an i64 below 2^32) for a counter and an i64 key.
std::array<Value, 4> buildPhilox(OpBuilder &b, Location loc, std::array<Value, 4> counter,
                                 Value key);

/// Builds the element of the result of `op` whose row-major index is `linear` (i64). `key` contains
/// the seed, the step and the first sample as i64.
Value buildRandomElement(OpBuilder &b, Location loc, RandomOp op, ValueRange key, Value linear);

/// Rounds `x` (f32) to one of the two nearest bf16 values, at random, with mean `x`. Keeps NaN,
/// infinity, and every `x` that bf16 can represent. `noise` is an i64 with 16 random bits.
Value buildStochasticRounding(OpBuilder &b, Location loc, Value x, Value noise);

} // namespace mlir::fsdp

#endif // FSDP_IR_PHILOX_H
