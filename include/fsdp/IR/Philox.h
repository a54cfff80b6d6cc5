//===- Philox.h - The random generator as arith ops -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the generator Philox4x32-10 (Salmon et al., SC 2011) from arith ops on scalars or vectors.
// Each 32-bit word is represented by an i64 value, so that one multiplication yields all 64 bits of
// the product of two words. For scalars on a GPU, words can be i32 instead: from i64, ptxas adds a
// zero to the upper half of each product.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_PHILOX_H
#define FSDP_IR_PHILOX_H

#include "fsdp/IR/FSDP.h"
#include "mlir/IR/Builders.h"
#include <array>

namespace mlir::fsdp {

/// The attributes of a random op, and the element type of its result.
struct RandomDraw {
  RandomKind kind;
  double keep;
  int64_t site;
  Type type;
};

/// The seed, the step and the sample for which random numbers are computed. All three are i64
/// values. To compute several elements at once, all three are vectors of i64.
struct RandomPlace {
  Value seed, step, sample;
};

RandomDraw getDraw(RandomElementOp op);

/// Returns the number of elements that are computed from one block of four words. The number is 2
/// for uniform f64 numbers, and 4 for all others.
int64_t getElementsPerBlock(const RandomDraw &draw);
/// Returns `keep`·2^32, rounded. A bernoulli draw keeps an element if the element's word is below
/// this bound.
int64_t getKeptBelow(double keep);

/// Emits the upper 32 bits of the product of two i32.
using MultiplyHigh = function_ref<Value(Value, Value)>;
/// Builds the four words of block number `block` of a sample. Each word is an i64 below 2^32 or, if
/// `multiplyHigh` is given, an i32.
std::array<Value, 4> buildRandomBlock(OpBuilder &b, Location loc, const RandomDraw &draw,
                                      const RandomPlace &place, Value block,
                                      MultiplyHigh multiplyHigh = nullptr);
/// Builds the random number that one word of a block determines, an i64 below 2^32. Four elements
/// must be computed from a block.
Value buildRandomNumber(OpBuilder &b, Location loc, const RandomDraw &draw, Value word);
/// Builds the number of a bernoulli draw that keeps its element if `kept`, an i1, is true.
Value buildBernoulli(OpBuilder &b, Location loc, const RandomDraw &draw, Value kept);
/// Builds the random number for element number `element` (an i64) of a sample.
Value buildRandomElement(OpBuilder &b, Location loc, const RandomDraw &draw,
                         const RandomPlace &place, Value element);

/// Builds the four output words of Philox for a counter and an i64 key. Each word is an i64 below
/// 2^32. Without `multiplyHigh`, the output words are, too; with it, they are i32.
std::array<Value, 4> buildPhilox(OpBuilder &b, Location loc, std::array<Value, 4> counter,
                                 Value key, MultiplyHigh multiplyHigh = nullptr);

/// Builds one element of the result of `op`. `linear` (an i64) is the row-major index of the
/// element. `key` contains the seed, the step and the first sample as i64.
Value buildRandomElement(OpBuilder &b, Location loc, RandomOp op, ValueRange key, Value linear);

/// Rounds `x` (f32) at random to one of the two nearest bf16 values, so that the mean of the result
/// is `x`. Does not change NaN, infinity, or a value `x` that bf16 can represent. `noise` is an i64
/// with 16 random bits.
Value buildStochasticRounding(OpBuilder &b, Location loc, Value x, Value noise);

} // namespace mlir::fsdp

#endif // FSDP_IR_PHILOX_H
