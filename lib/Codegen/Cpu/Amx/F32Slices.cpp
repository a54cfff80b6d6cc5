//===- F32Slices.cpp - f32 as a sum of three bf16 ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An f32 has 24 significant bits, and a bf16 has 8. Three slices have all bits of an f32:
//
// bf16(x) is the bf16 that is nearest to x:
//
//      high = bf16(x)    middle = bf16(x - high)    low = x - high - middle
//
//      x = high + middle + low      |middle| <= 2^-8 |x|      |low| <= 2^-17 |x|
//
// The differences are exact. A product of two f32 is the sum of nine products of slices. The
// products middle * low, low * middle and low * low are not computed. Each of them is at most 2^-25
// of the product, less than the rounding error of an f32 (2^-24). The other six are exact in f32,
// because the product of two bf16 has at most 16 bits. See Henry, Tang and Heinecke, "Leveraging
// the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations" (2019).
//
// A slice is rounded by adding half a unit to the bits of the number and taking the upper 16 bits.
// Halves are thus rounded away from zero. The last slice needs no rounding. If
// x is a NaN, the addition may overflow and make the high slice a number. The low slice is a NaN in
// any case, because the difference of a NaN and a number is a NaN. If x is infinite, the difference
// of x and its high slice is a NaN, and so is the low slice.
//
//===----------------------------------------------------------------------===//

#include "F32Slices.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns an integer of 32 bits, or a vector of them if `like` is a vector.
static Value bitsConstant(CodeBuilder &b, Value like, uint32_t value) {
  TypedAttr attr = b.getI32IntegerAttr(static_cast<int32_t>(value));
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    attr = DenseElementsAttr::get(vector.clone(b.getI32Type()), Attribute(attr));
  return arith::ConstantOp::create(b, b.loc, attr);
}

amx::Slices amx::sliceF32(CodeBuilder &b, Value number) {
  Type type = number.getType(), bits = withElement(type, b.getI32Type());
  Slices slices;
  for (int64_t slice = 0; slice + 1 < f32Slices; ++slice) {
    Value rounded =
        arith::AddIOp::create(b, b.loc, arith::BitcastOp::create(b, b.loc, bits, number),
                              bitsConstant(b, number, 0x8000));
    slices.push_back(rounded);
    rounded = arith::AndIOp::create(b, b.loc, rounded, bitsConstant(b, number, 0xffff0000));
    number = b.subf(number, arith::BitcastOp::create(b, b.loc, type, rounded));
  }
  slices.push_back(arith::BitcastOp::create(b, b.loc, bits, number));
  return slices;
}

Value amx::sliceBf16(CodeBuilder &b, Value bits) {
  auto vector = dyn_cast<VectorType>(bits.getType());
  if (!vector) {
    Value upper = arith::ShRUIOp::create(b, b.loc, bits, b.constantLike(bits, 16));
    upper = arith::TruncIOp::create(b, b.loc, b.getI16Type(), upper);
    return arith::BitcastOp::create(b, b.loc, b.getBF16Type(), upper);
  }
  int64_t count = vector.getNumElements();
  SmallVector<int64_t> odd;
  for (int64_t lane = 0; lane < count; ++lane)
    odd.push_back(2 * lane + 1);
  Value halves =
      vector::BitCastOp::create(b, b.loc, VectorType::get({2 * count}, b.getBF16Type()), bits);
  return b.shuffle(halves, halves, odd);
}

Value amx::pairSlices(CodeBuilder &b, Value first, Value second) {
  first = arith::ShRUIOp::create(b, b.loc, first, bitsConstant(b, first, 16));
  second = arith::AndIOp::create(b, b.loc, second, bitsConstant(b, second, 0xffff0000));
  return arith::OrIOp::create(b, b.loc, first, second);
}
