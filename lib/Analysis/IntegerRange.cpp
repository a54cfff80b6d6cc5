//===- IntegerRange.cpp - Ranges of integers --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An IntegerRange is one pair of signed bounds. MLIR's ConstantIntRanges contain both signed and
// unsigned bounds. The conversion to an IntegerRange uses the unsigned bounds for i1, and the
// signed bounds for all other types.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/IntegerRange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

IntegerRange IntegerRange::ofType(Type type) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (!integer || integer.getWidth() >= 64)
    return {};
  if (integer.getWidth() == 1)
    return {0, 1};
  int64_t half = int64_t(1) << (integer.getWidth() - 1);
  return integer.isUnsigned() ? IntegerRange{0, 2 * half - 1} : IntegerRange{-half, half - 1};
}

IntegerRange fsdp::operator+(IntegerRange a, IntegerRange b) {
  IntegerRange sum;
  if (llvm::AddOverflow(a.lo, b.lo, sum.lo) || llvm::AddOverflow(a.hi, b.hi, sum.hi))
    return {};
  return sum;
}

IntegerRange fsdp::operator*(IntegerRange a, IntegerRange b) {
  IntegerRange product{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t x : {a.lo, a.hi})
    for (int64_t y : {b.lo, b.hi}) {
      int64_t value;
      if (llvm::MulOverflow(x, y, value))
        return {};
      product = join(product, IntegerRange::of(value));
    }
  return product;
}

static ConstantIntRanges toUpstream(Type type, IntegerRange range) {
  unsigned bits = ConstantIntRanges::getStorageBitwidth(getElementTypeOrSelf(type));
  if (bits == 0 || bits > 64 || !range.within(IntegerRange::ofType(type)))
    return ConstantIntRanges::maxRange(bits);
  APInt lo(bits, range.lo, /*isSigned=*/bits != 1), hi(bits, range.hi, /*isSigned=*/bits != 1);
  return bits == 1 ? ConstantIntRanges::fromUnsigned(lo, hi)
                   : ConstantIntRanges::fromSigned(lo, hi);
}

IntegerRange fsdp::inferResultRange(Operation *op, ArrayRef<IntegerRange> operands) {
  // MLIR's rules do not determine the result of eq and ne if only the signed bounds of the operands
  // are disjoint, so determine it here.
  if (auto cmp = dyn_cast<arith::CmpIOp>(op);
      cmp && (operands[0].hi < operands[1].lo || operands[1].hi < operands[0].lo)) {
    if (cmp.getPredicate() == arith::CmpIPredicate::eq)
      return IntegerRange::of(0);
    if (cmp.getPredicate() == arith::CmpIPredicate::ne)
      return IntegerRange::of(1);
  }
  Type type = op->getResult(0).getType();
  IntegerRange result = IntegerRange::ofType(type);
  auto inferrable = dyn_cast<InferIntRangeInterface>(op);
  unsigned bits = ConstantIntRanges::getStorageBitwidth(getElementTypeOrSelf(type));
  if (!inferrable || bits == 0 || bits > 64)
    return result;
  SmallVector<ConstantIntRanges> ranges;
  for (auto [operand, range] : llvm::zip_equal(op->getOperandTypes(), operands))
    ranges.push_back(toUpstream(operand, range));
  inferrable.inferResultRanges(ranges, [&](Value, const ConstantIntRanges &found) {
    result = bits == 1 ? IntegerRange{static_cast<int64_t>(found.umin().getZExtValue()),
                                      static_cast<int64_t>(found.umax().getZExtValue())}
                       : IntegerRange{found.smin().getSExtValue(), found.smax().getSExtValue()};
  });
  return result;
}
