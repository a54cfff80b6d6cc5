//===- RaiseErfc.cpp - Error functions in StableHLO -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `jax.export` writes erfc (of the exact GELU) as polynomials in x and in 1 / x^2, joined by
// selects. Near zero, the derivative of the polynomial in 1 / x^2 is infinite. The select does not
// choose this polynomial near zero. The derivative is therefore multiplied by 0, and 0 times
// infinity is NaN:
//
//   %49 = select %small, %poly(x), %tail(1/x^2)   ->   %49 = chlo.erfc %x
//
//  1. The expansion reads |x|. If the select depends on an abs, the operand of this abs is
//     therefore a candidate for x.
//  2. Collect the elementwise ops between the candidate and the select. All inputs of these ops
//     except the candidate must be constants.
//  3. Evaluate these ops in f64 at points in [-4, 4], and compare the results with std::erfc. The
//     absolute error must be at most 2e-6. The polynomials that JAX uses for f32 satisfy this
//     limit, but other functions do not.
//
// The time per select is O(ops + points x ops), with at most `maxOps` ops.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/RaiseErfc.h"
#include "StableHLO/HloOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The elementwise ops that compute a result from one input. Each op follows the ops of its
/// operands.
struct Slice {
  Value input;
  /// Maps constants and results of ops to their values. The constants come first.
  llvm::MapVector<Value, double> values;

  bool collect(Value value, unsigned depth);
  double evaluate(double x);

private:
  double evaluate(Operation *op);
};
} // namespace

static constexpr unsigned maxOps = 256, maxDepth = 128;

/// Returns the value of the elements if `value` is a constant whose elements are all equal, or a
/// broadcast or reshape of such a constant.
static std::optional<double> constantOf(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->getNumOperands() == 1 &&
         llvm::is_contained({"broadcast_in_dim", "reshape"}, op->getName().stripDialect()))
    op = op->getOperand(0).getDefiningOp();
  auto dense = op ? dyn_cast_or_null<DenseElementsAttr>(op->getAttr("value")) : nullptr;
  if (!dense || op->getName().getStringRef() != "stablehlo.constant" || !dense.isSplat() ||
      !isa<FloatType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APFloat>().convertToDouble();
}

/// Returns whether step 3 can evaluate the op, and the op has the expected number of operands.
static bool isArithmetic(Operation *op) {
  if (!op || op->getName().getDialectNamespace() != "stablehlo" || op->getNumResults() != 1)
    return false;
  unsigned operands = llvm::StringSwitch<unsigned>(op->getName().stripDialect())
                          .Cases({"abs", "exponential", "negate"}, 1)
                          .Cases({"add", "compare", "divide", "multiply", "subtract"}, 2)
                          .Case("select", 3)
                          .Default(0);
  return operands > 0 && op->getNumOperands() == operands;
}

bool Slice::collect(Value value, unsigned depth) {
  if (value == input || values.contains(value))
    return true;
  if (std::optional<double> constant = constantOf(value)) {
    values[value] = *constant;
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (!isArithmetic(op) || depth > maxDepth || values.size() > maxOps)
    return false;
  for (Value operand : op->getOperands())
    if (!collect(operand, depth + 1))
      return false;
  values[value] = 0;
  return true;
}

double Slice::evaluate(Operation *op) {
  auto get = [&](unsigned i) {
    Value operand = op->getOperand(i);
    return values.lookup(operand);
  };
  StringRef name = op->getName().stripDialect();
  if (name == "abs")
    return std::abs(get(0));
  if (name == "negate")
    return -get(0);
  if (name == "exponential")
    return std::exp(get(0));
  double l = get(0), r = get(1);
  if (name == "add")
    return l + r;
  if (name == "subtract")
    return l - r;
  if (name == "multiply")
    return l * r;
  if (name == "divide")
    return l / r;
  if (name == "select")
    return l != 0 ? r : get(2);
  return llvm::StringSwitch<bool>(getWord(op, "comparison_direction"))
      .Case("LT", l < r)
      .Case("LE", l <= r)
      .Case("GT", l > r)
      .Case("GE", l >= r)
      .Case("EQ", l == r)
      .Default(l != r);
}

double Slice::evaluate(double x) {
  values[input] = x;
  for (auto &[value, number] : values)
    if (value != input && !constantOf(value))
      number = evaluate(value.getDefiningOp());
  return values.back().second;
}

/// Returns whether the result of `select` is erfc(x).
static bool isErfc(Operation *select, Value x) {
  Slice slice;
  slice.input = x;
  slice.values[x] = 0;
  if (!slice.collect(select->getResult(0), 0))
    return false;
  constexpr int points = 97;
  for (int i = 0; i < points; ++i) {
    double at = -4.0 + 8.0 * (i + 0.37) / points;
    if (!(std::abs(slice.evaluate(at) - std::erfc(at)) <= 2e-6))
      return false;
  }
  return true;
}

Value fsdp::matchErfc(Operation *select) {
  SmallVector<Operation *> work{select};
  llvm::SmallPtrSet<Operation *, 32> seen;
  while (!work.empty() && seen.size() <= maxOps) {
    Operation *op = work.pop_back_val();
    if (!isArithmetic(op) || !seen.insert(op).second)
      continue;
    bool isAbs = op->getName().stripDialect() == "abs" &&
                 op->getOperand(0).getType() == select->getResult(0).getType();
    if (isAbs && isErfc(select, op->getOperand(0)))
      return op->getOperand(0);
    for (Value operand : op->getOperands())
      work.push_back(operand.getDefiningOp());
  }
  return nullptr;
}
