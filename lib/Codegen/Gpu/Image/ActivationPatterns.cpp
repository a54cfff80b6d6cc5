//===- ActivationPatterns.cpp - Ops of GELU and SiLU -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ActivationPatterns.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::findTanhUses(math::TanhOp tanh, SmallVectorImpl<Operation *> &sums,
                        SmallVectorImpl<Operation *> &slopes) {
  if (!tanh.getType().isF32())
    return false;
  auto isOne = [](Value value) { return matchPattern(value, m_OneFloat()); };
  auto isSlope = [&](Operation *op, Value lhs) { // fma(-tanh, tanh, 1)
    return isa<math::FmaOp>(op) && op->getOperand(0) == lhs &&
           op->getOperand(1) == tanh.getResult() && isOne(op->getOperand(2));
  };
  for (Operation *user : tanh->getUsers()) {
    if (user->getBlock() != tanh->getBlock())
      return false;
    if (isa<arith::AddFOp>(user) && llvm::any_of(user->getOperands(), isOne)) {
      sums.push_back(user);
      continue;
    }
    bool isSquare = isa<arith::MulFOp>(user) && user->getOperand(0) == user->getOperand(1);
    if (auto minus = user->getOperand(0).getDefiningOp<arith::NegFOp>();
        minus && minus.getOperand() == tanh.getResult() && isSlope(user, minus))
      continue; // found as a use of the negated tanh
    if (!isSquare && !isa<arith::NegFOp>(user))
      return false;
    for (Operation *slope : user->getUsers()) {
      bool subtracts = isSquare && isa<arith::SubFOp>(slope) && isOne(slope->getOperand(0));
      if (slope->getBlock() != tanh->getBlock() ||
          !(subtracts || (!isSquare && isSlope(slope, user->getResult(0)))))
        return false;
      if (!llvm::is_contained(slopes, slope))
        slopes.push_back(slope);
    }
  }
  return !sums.empty() || !slopes.empty();
}

/// Returns true if `value` is a product with a quotient by `sum`.
static bool isQuotient(Value value, Value sum) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::DivFOp>(op))
    return op->getOperand(1) == sum || isQuotient(op->getOperand(0), sum);
  return isa_and_nonnull<arith::MulFOp, arith::NegFOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value x) { return isQuotient(x, sum); });
}

std::optional<LogisticOps> fsdp::findLogistic(arith::AddFOp sum) {
  constexpr double leastLimit = 30;
  LogisticOps ops;
  for (auto [power, other] :
       {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())})
    if (auto exp = power.getDefiningOp<math::ExpOp>(); exp && matchPattern(other, m_OneFloat()))
      ops.exp = exp;
  if (!ops.exp || !sum.getType().isF32() || ops.exp->getBlock() != sum->getBlock())
    return std::nullopt;
  auto isInBlock = [&](Operation *user) { return user->getBlock() == sum->getBlock(); };
  auto divides = [&](Operation *user) {
    return isInBlock(user) && isa<arith::DivFOp>(user) && user->getOperand(1) == sum.getResult() &&
           user->getOperand(0) != sum.getResult();
  };
  auto cancels = [&](Operation *user) {
    return user == sum ||
           (isInBlock(user) && isa<arith::MulFOp>(user) &&
            llvm::any_of(user->getOperands(), [&](Value x) { return isQuotient(x, sum); }));
  };
  if (sum->use_empty() || !llvm::all_of(sum->getUsers(), divides) ||
      !llvm::all_of(ops.exp->getUsers(), cancels))
    return std::nullopt;
  ops.exponent = ops.exp.getOperand();
  FloatAttr limit;
  auto least = ops.exponent.getDefiningOp<arith::MinimumFOp>();
  if (!least || !matchPattern(least.getRhs(), m_Constant(&limit)) ||
      limit.getValueAsDouble() < leastLimit)
    return ops;
  ops.exponent = least.getLhs();
  for (Operation *user : ops.exponent.getUsers()) {
    FloatAttr bound;
    auto compare = dyn_cast<arith::CmpFOp>(user);
    if (compare && compare.getPredicate() == arith::CmpFPredicate::OLT &&
        compare.getLhs() == ops.exponent && matchPattern(compare.getRhs(), m_Constant(&bound)) &&
        bound == limit)
      ops.compares.push_back(user);
  }
  return ops;
}
