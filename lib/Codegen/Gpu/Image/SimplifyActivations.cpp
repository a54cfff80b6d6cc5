//===- SimplifyActivations.cpp - GELU and SiLU in few operations -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rewrites the sums and products of a body that depend on a tanh as GELU and its derivative use it,
// or on 1 / (1 + exp) as SiLU and its derivative use it:
//
//   g / 2 · (1 + tanh(u)) + g x / 2 · (1 - tanh(u)²) · c (1 + 3 d x²),  u = c (x + d x³)
//   -> g s · fma(x (1 - s), fma(6 c d, x², 2 c), 1),  s = 1 / (1 + 2^(x · fma(k c d, x², k c)))
//
//   g / (1 + e) + g x / (1 + e) / (1 + e) · e,  e = exp(min(-x, 40))
//   -> g s · fma(x, 1 - s, 1),  s = 1 / (1 + 2^(-log2(e) x))
//
// 1. A tanh is rewritten if all its uses are in 1 + tanh and 1 - tanh². With k = -2 log2(e) and
//    s = 1 / (1 + 2^(k u)), they are 2 s and 4 s (1 - s).
// 2. A sum 1 + e is rewritten if it only divides, and e is a factor only of such quotients. A
//    quotient is a product with s, and s e is 1 - s. A limit of the exponent of 30 or more is
//    removed: beyond it, s is less than 10^-13. So is a select by this limit.
// 3. Expand each value that depends on s to a sum of terms. A term is a number times values. Sums
//    are factors of terms, and are not multiplied out. Sums that do not depend on s are values,
//    unless they are polynomials of one value.
// 4. Add terms that differ only in their numbers. Build the sum again: factor out the values that
//    all terms have in common, and then the value that most of the terms have in common. Numbers
//    are multiplied into sums.
//
// Results differ from those of the body by the rounding errors of the operations that are left out.
// O(n²) for a body of n operations.
//
//===----------------------------------------------------------------------===//

#include "ActivationPatterns.h"
#include "GpuLowering.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The product of a number and values. Equal values are adjacent.
struct Term {
  double number = 1;
  SmallVector<Value> values;
};
using Sum = SmallVector<Term>;

/// 1 / (1 + e), for a sum 1 + e that only divides.
struct Logistic {
  Value e, s, rest; ///< rest is 1 - s, or null if e has no other uses
};

/// Rewrites the body of an elementwise operation.
class ActivationRewriter {
public:
  explicit ActivationRewriter(Block &body)
      : body(body), b(body.front().getLoc(), &body, body.begin()) {}
  void run();

private:
  std::pair<Value, Value> buildLogistic(Value exponent, double factor, bool needsRest);
  void rewriteTanh(math::TanhOp tanh, ArrayRef<Operation *> sums, ArrayRef<Operation *> slopes);
  void rewriteLogistic(arith::AddFOp sum, const LogisticOps &ops);
  bool isFolded(Operation *op);
  bool dependsOnLogistic(Operation *op);
  /// Returns true if the value is a factor that is built again.
  bool isSum(Value value) { return expanded.lookup(value).size() > 1; }
  Sum expand(Value value);
  Sum expandOp(Operation *op);
  Term asFactor(Value value);
  Term multiply(Term lhs, const Term &rhs);
  Value build(Sum sum);
  Value buildTerms(ArrayRef<Term> terms);
  Value buildProduct(Term term);
  Value buildValue(Value value);
  Value multiply(Value lhs, Value rhs);
  Value constant(double number);

  Block &body;
  ImplicitLocOpBuilder b;
  DenseMap<Value, Logistic> logistics; ///< by the sum 1 + e
  DenseSet<Value> limits;              ///< comparisons that only values of no weight fail
  DenseSet<Value> dependent;           ///< values that depend on s by sums and products
  DenseMap<Value, Sum> expanded;       ///< what expand() has returned
  DenseMap<Value, Value> rebuilt;      ///< what buildValue() has returned
  DenseMap<Value, unsigned> order;     ///< numbers of values, by which terms are sorted
  DenseMap<std::pair<Value, Value>, Value> products;
};
} // namespace

/// Builds s = 1 / (1 + exp(factor · exponent)) and, if `needsRest`, 1 - s.
std::pair<Value, Value> ActivationRewriter::buildLogistic(Value exponent, double factor,
                                                          bool needsRest) {
  Sum scaled = expand(exponent);
  for (Term &term : scaled)
    term.number *= factor * 0x1.71547652b82fep0;
  Value power = math::Exp2Op::create(b, build(scaled)), one = constant(1);
  Value s = arith::DivFOp::create(b, one, arith::AddFOp::create(b, power, one));
  return {s, needsRest ? Value(arith::SubFOp::create(b, one, s)) : Value()};
}

void ActivationRewriter::rewriteLogistic(arith::AddFOp sum, const LogisticOps &ops) {
  b.setInsertionPoint(sum);
  b.setLoc(sum.getLoc());
  math::ExpOp exp = ops.exp;
  auto [s, rest] = buildLogistic(ops.exponent, 1, !exp->hasOneUse());
  expanded[exp] = {multiply(Term(), Term{1, {exp}})};
  logistics[sum] = {exp, s, rest};
  for (Operation *compare : ops.compares)
    limits.insert(compare->getResult(0));
}

void ActivationRewriter::rewriteTanh(math::TanhOp tanh, ArrayRef<Operation *> sums,
                                     ArrayRef<Operation *> slopes) {
  b.setInsertionPoint(tanh);
  b.setLoc(tanh.getLoc());
  auto [s, rest] = buildLogistic(tanh.getOperand(), -2, !slopes.empty());
  for (Operation *sum : sums)
    expanded[sum->getResult(0)] = {Term{2, {s}}};
  for (Operation *slope : slopes)
    expanded[slope->getResult(0)] = {multiply(Term{4, {s}}, Term{1, {rest}})};
  for (Operation *op : llvm::concat<Operation *const>(sums, slopes))
    dependent.insert(op->getResult(0));
}

/// Returns true for sums and products of f32, quotients that become products, and selects by limits
/// that are removed.
bool ActivationRewriter::isFolded(Operation *op) {
  if (!op || op->getBlock() != &body || op->getNumResults() != 1 ||
      !op->getResult(0).getType().isF32())
    return false;
  if (isa<arith::DivFOp>(op))
    return logistics.contains(op->getOperand(1));
  if (isa<arith::SelectOp>(op))
    return limits.contains(op->getOperand(0)) && matchPattern(op->getOperand(2), m_AnyZeroFloat());
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, math::FmaOp>(op);
}

bool ActivationRewriter::dependsOnLogistic(Operation *op) {
  return isa<arith::DivFOp>(op) ||
         llvm::any_of(op->getOperands(), [&](Value x) { return dependent.contains(x); });
}

/// Appends the values of `rhs`, and sorts values in the order of their first use.
Term ActivationRewriter::multiply(Term lhs, const Term &rhs) {
  lhs.number *= rhs.number;
  llvm::append_range(lhs.values, rhs.values);
  for (const auto &[sum, logistic] : logistics) {
    auto e = llvm::find(lhs.values, logistic.e);
    auto s = llvm::find(lhs.values, logistic.s);
    if (e == lhs.values.end() || s == lhs.values.end())
      continue;
    *s = logistic.rest;
    lhs.values.erase(e);
  }
  for (Value value : lhs.values)
    order.try_emplace(value, order.size());
  llvm::sort(lhs.values, [&](Value x, Value y) { return order[x] < order[y]; });
  return lhs;
}

/// Returns the value as a factor of a term: its only term, or the value itself if it is a sum.
Term ActivationRewriter::asFactor(Value value) {
  Sum sum = expand(value);
  return sum.size() == 1 ? sum.front() : Term{1, {value}};
}

Sum ActivationRewriter::expandOp(Operation *op) {
  if (isa<arith::SelectOp>(op))
    return expand(op->getOperand(1));
  if (isa<arith::DivFOp>(op))
    return {multiply(asFactor(op->getOperand(0)), Term{1, {logistics[op->getOperand(1)].s}})};
  Sum result;
  auto add = [&](Value value, double sign) {
    for (const Term &term : expand(value)) {
      auto same = llvm::find_if(result, [&](Term &t) { return t.values == term.values; });
      if (same == result.end())
        same = result.insert(result.end(), Term{0, term.values});
      same->number += sign * term.number;
    }
  };
  if (isa<math::FmaOp, arith::MulFOp>(op)) {
    Value x = op->getOperand(0), y = op->getOperand(1);
    for (auto [factor, sum] : {std::pair(x, y), std::pair(y, x)})
      if (Sum terms = expand(sum), number = expand(factor);
          number.size() == 1 && number.front().values.empty()) {
        result = terms;
        for (Term &term : result)
          term.number *= number.front().number;
        break;
      }
    if (result.empty())
      result.push_back(multiply(asFactor(x), asFactor(y)));
    if (isa<math::FmaOp>(op))
      add(op->getOperand(2), 1);
    return result;
  }
  add(op->getOperand(0), isa<arith::NegFOp>(op) ? -1 : 1);
  if (!isa<arith::NegFOp>(op))
    add(op->getOperand(1), isa<arith::SubFOp>(op) ? -1 : 1);
  return result;
}

Sum ActivationRewriter::expand(Value value) {
  if (auto found = expanded.find(value); found != expanded.end())
    return found->second;
  FloatAttr number;
  Operation *op = value.getDefiningOp();
  Sum sum{multiply(Term(), Term{1, {value}})};
  if (matchPattern(value, m_Constant(&number)) && value.getType().isF32()) {
    sum = {Term{number.getValueAsDouble(), {}}};
  } else if (isFolded(op)) {
    Sum terms = expandOp(op);
    SmallPtrSet<void *, 4> values;
    for (const Term &term : terms)
      for (Value factor : term.values)
        values.insert(factor.getAsOpaquePointer());
    if (terms.size() == 1 || dependent.contains(value) || values.size() == 1)
      sum = terms;
  }
  return expanded[value] = sum;
}

Value ActivationRewriter::constant(double number) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(static_cast<float>(number)));
}

Value ActivationRewriter::multiply(Value lhs, Value rhs) {
  Value &product = products[{lhs, rhs}];
  if (!product)
    product = arith::MulFOp::create(b, lhs, rhs);
  return product;
}

/// Builds a value that is a factor of a term. Builds it again if it is a sum.
Value ActivationRewriter::buildValue(Value value) {
  if (!isSum(value))
    return value;
  if (Value found = rebuilt.lookup(value))
    return found;
  return rebuilt[value] = build(expanded[value]);
}

Value ActivationRewriter::buildProduct(Term term) {
  Value product;
  bool isPlain = term.number == 1;
  for (Value value : term.values) {
    Value factor;
    if (!isPlain && isSum(value)) {
      Sum sum = expanded[value];
      for (Term &part : sum)
        part.number *= term.number;
      factor = build(sum);
      isPlain = true;
    } else {
      factor = buildValue(value);
    }
    product = product ? multiply(product, factor) : factor;
  }
  if (!product)
    return constant(term.number);
  if (isPlain)
    return product;
  return term.number == -1 ? Value(arith::NegFOp::create(b, product))
                           : multiply(product, constant(term.number));
}

/// Removes from `term` the values `common`.
static Term divide(Term term, ArrayRef<Value> common) {
  for (Value value : common)
    term.values.erase(llvm::find(term.values, value));
  return term;
}

/// Returns the values that all terms have, as often as all have them.
static SmallVector<Value> findCommon(ArrayRef<Term> terms) {
  SmallVector<Value> common;
  Term first = terms.front();
  for (Value value : first.values) {
    SmallVector<Value> longer = common;
    longer.push_back(value);
    if (llvm::all_of(terms, [&](const Term &term) {
          return llvm::count(term.values, value) >= llvm::count(longer, value);
        }))
      common = longer;
  }
  return common;
}

/// Builds terms that have no value in common.
Value ActivationRewriter::buildTerms(ArrayRef<Term> terms) {
  auto isShort = [](const Term &t) { return t.values.size() + (t.number != 1) <= 1; };
  Sum rest(terms);
  auto first = llvm::find_if(rest, isShort);
  if (first == rest.end())
    first = rest.begin();
  Value sum = buildProduct(*first);
  rest.erase(first);
  for (Term &term : rest) {
    // The last factor is a sum with the number, or the number, or the last value.
    Value last;
    auto factor = llvm::find_if(term.values, [&](Value value) { return isSum(value); });
    if (factor != term.values.end()) {
      last = buildProduct({term.number, {*factor}});
      term.values.erase(factor);
    } else if (term.number != 1) {
      last = constant(term.number);
    } else {
      last = term.values.pop_back_val();
    }
    sum = term.values.empty()
              ? Value(arith::AddFOp::create(b, sum, last))
              : Value(math::FmaOp::create(b, buildProduct({1, term.values}), last, sum));
  }
  return sum;
}

Value ActivationRewriter::build(Sum sum) {
  if (sum.size() == 1)
    return buildProduct(sum.front());
  auto dividedBy = [](ArrayRef<Term> terms, ArrayRef<Value> common) {
    return Sum(llvm::map_range(terms, [&](const Term &term) { return divide(term, common); }));
  };
  if (SmallVector<Value> common = findCommon(sum); !common.empty())
    return multiply(buildProduct({1, common}), build(dividedBy(sum, common)));
  Value shared;
  int64_t most = 1;
  for (const Term &term : sum)
    for (Value value : term.values) {
      int64_t count = llvm::count_if(
          sum, [&](const Term &other) { return llvm::is_contained(other.values, value); });
      if (count > most)
        std::tie(shared, most) = std::pair(value, count);
    }
  if (!shared)
    return buildTerms(sum);
  Sum with, without;
  for (const Term &term : sum)
    (llvm::is_contained(term.values, shared) ? with : without).push_back(term);
  SmallVector<Value> common = findCommon(with);
  Value rest = build(without), inner = build(dividedBy(with, common));
  return math::FmaOp::create(b, buildProduct({1, common}), inner, rest);
}

void ActivationRewriter::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : body)
    ops.push_back(&op);
  for (Operation *op : ops) {
    SmallVector<Operation *> sums, slopes;
    if (auto tanh = dyn_cast<math::TanhOp>(op); tanh && findTanhUses(tanh, sums, slopes))
      rewriteTanh(tanh, sums, slopes);
    if (auto sum = dyn_cast<arith::AddFOp>(op))
      if (std::optional<LogisticOps> logistic = findLogistic(sum))
        rewriteLogistic(sum, *logistic);
    if (!isFolded(op))
      continue;
    if (dependsOnLogistic(op))
      dependent.insert(op->getResult(0));
    if (!dependent.contains(op->getResult(0)) ||
        llvm::all_of(op->getUsers(), [&](Operation *user) { return isFolded(user); }))
      continue;
    b.setInsertionPoint(op);
    b.setLoc(op->getLoc());
    Value result = build(expand(op->getResult(0)));
    op->getResult(0).replaceUsesWithIf(result,
                                       [&](OpOperand &use) { return !isFolded(use.getOwner()); });
  }
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

void fsdp::simplifyActivations(Block &body) {
  bool any = llvm::any_of(body, [](Operation &op) {
    SmallVector<Operation *> sums, slopes;
    if (auto tanh = dyn_cast<math::TanhOp>(op))
      return findTanhUses(tanh, sums, slopes);
    auto sum = dyn_cast<arith::AddFOp>(op);
    return sum && findLogistic(sum).has_value();
  });
  if (any)
    ActivationRewriter(body).run();
}
