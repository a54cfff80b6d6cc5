//===- TileExpr.cpp - Integers that depend on a tile ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A sum is offset + Σ factor · term, where no term is a sum. The range of the sum is computed from
// the ranges of its terms, and narrowed by the fact that end >= begin + 1:
//
//   end - begin - 1   ->   [0, ..]     although begin and end alone are unbounded
//
// isAtLeast(a, b) uses the range of a - b. The function splits minima and maxima: min(x, y) + c >=
// 0 holds if both x + c >= 0 and y + c >= 0 hold.
//
// EvaluateTileExpr.cpp computes, emits and prints expressions.
//
//===----------------------------------------------------------------------===//

#include "TileExprNode.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Largest number of nodes of a tree. Larger trees are null, to limit the time of walks over trees.
static constexpr unsigned maxSize = 512;

static bool fits(IntegerRange range) {
  return range.lo <= range.hi && range.lo >= -TileExpr::limit && range.hi <= TileExpr::limit;
}

TileExpr TileExpr::make(Node node) {
  TileExpr expr;
  for (const TileExpr &operand : node.operands)
    node.size += operand ? operand.node->size : maxSize;
  if (fits(node.range) && node.size <= maxSize)
    expr.node = std::make_shared<const Node>(std::move(node));
  return expr;
}

TileExpr TileExpr::constant(int64_t value) {
  Node node{Kind::Constant};
  node.number = value;
  node.range = {value, value};
  return make(std::move(node));
}

TileExpr TileExpr::symbol(Symbol symbol, IntegerRange range) {
  Node node{Kind::Symbol};
  node.symbol = symbol;
  node.range = range;
  return make(std::move(node));
}

TileExpr TileExpr::scalar(Value value, IntegerRange range) {
  Node node{Kind::Scalar};
  node.value = value;
  node.range = {std::max(range.lo, -far), std::min(range.hi, far)};
  return make(std::move(node));
}

TileExpr TileExpr::opaque(Value value, IntegerRange range) {
  Node node{Kind::Opaque};
  node.value = value;
  node.range = range;
  return make(std::move(node));
}

TileExpr::Kind TileExpr::kind() const { return node->kind; }
IntegerRange TileExpr::range() const { return node->range; }
TileExpr::Symbol TileExpr::asSymbol() const { return node->symbol; }
Value TileExpr::value() const { return node->value; }
int64_t TileExpr::divisor() const { return node->number; }
ArrayRef<TileExpr> TileExpr::operands() const { return node->operands; }

std::optional<int64_t> TileExpr::asConstant() const {
  return node->range.lo == node->range.hi ? std::optional(node->range.lo) : std::nullopt;
}

SmallVector<TileExpr::Term, 4> TileExpr::terms() const {
  if (node->kind == Kind::Constant)
    return {};
  if (node->kind != Kind::Sum)
    return {Term{1, *this}};
  SmallVector<Term, 4> result;
  for (auto [factor, term] : llvm::zip_equal(node->factors, node->operands))
    result.push_back({factor, term});
  return result;
}

int64_t TileExpr::offset() const {
  return node->kind == Kind::Sum || node->kind == Kind::Constant ? node->number : 0;
}

bool fsdp::operator==(const TileExpr &a, const TileExpr &b) {
  if (a.node == b.node)
    return true;
  if (!a.node || !b.node)
    return false;
  const TileExpr::Node &x = *a.node, &y = *b.node;
  // Equal sums may have their terms in different orders.
  if (x.kind == TileExpr::Kind::Sum && y.kind == x.kind) {
    auto other = b.terms();
    return x.number == y.number && x.operands.size() == other.size() &&
           llvm::all_of(a.terms(), [&](const TileExpr::Term &term) {
             return llvm::any_of(other, [&](const TileExpr::Term &o) {
               return o.factor == term.factor && o.expr == term.expr;
             });
           });
  }
  return x.kind == y.kind && x.number == y.number && x.symbol == y.symbol && x.value == y.value &&
         x.factors == y.factors && llvm::equal(x.operands, y.operands);
}

/// Adds factor · range to `sum`. Returns false if a bound overflows.
static bool accumulate(IntegerRange &sum, int64_t factor, IntegerRange range) {
  if (factor < 0)
    std::swap(range.lo, range.hi);
  int64_t lo, hi;
  return !llvm::MulOverflow(factor, range.lo, lo) && !llvm::MulOverflow(factor, range.hi, hi) &&
         !llvm::AddOverflow(sum.lo, lo, sum.lo) && !llvm::AddOverflow(sum.hi, hi, sum.hi);
}

/// Narrows the range of a sum by the fact that end = begin + length with length >= 1. This has an
/// effect if the factors of `begin` and `end` have opposite signs.
static void meetLength(IntegerRange &range, int64_t offset, ArrayRef<TileExpr::Term> terms) {
  int64_t ofBegin = 0, ofEnd = 0;
  IntegerRange begin{0, 0}, length{1, 1}, other{offset, offset};
  for (auto &[factor, term] : terms) {
    bool isSymbol = term.kind() == TileExpr::Kind::Symbol;
    if (isSymbol && term.asSymbol() == TileExpr::Symbol::Begin) {
      ofBegin = factor;
      begin = term.range();
    } else if (isSymbol && term.asSymbol() == TileExpr::Symbol::End) {
      ofEnd = factor;
      length = {1, term.range().hi};
    } else if (!accumulate(other, factor, term.range())) {
      return;
    }
  }
  if (ofBegin == 0 || ofEnd == 0 || !accumulate(other, ofBegin + ofEnd, begin) ||
      !accumulate(other, ofEnd, length))
    return;
  range = {std::max(range.lo, other.lo), std::min(range.hi, other.hi)};
}

TileExpr TileExpr::sum(int64_t offset, SmallVector<Term, 4> terms) {
  llvm::erase_if(terms, [](const Term &term) { return term.factor == 0; });
  if (terms.empty())
    return constant(offset);
  if (offset == 0 && terms.size() == 1 && terms[0].factor == 1)
    return terms[0].expr;
  Node node{Kind::Sum};
  node.number = offset;
  node.range = {offset, offset};
  for (auto &[factor, term] : terms) {
    if (!accumulate(node.range, factor, term.range()))
      return {};
    node.factors.push_back(factor);
    node.operands.push_back(term);
  }
  if (!fits(node.range))
    return {};
  meetLength(node.range, offset, terms);
  return make(std::move(node));
}

TileExpr fsdp::operator+(TileExpr a, TileExpr b) {
  int64_t offset;
  if (!a || !b || llvm::AddOverflow(a.offset(), b.offset(), offset))
    return {};
  SmallVector<TileExpr::Term, 4> terms = a.terms();
  for (auto &[factor, term] : b.terms()) {
    auto same = llvm::find_if(
        terms, [&, &term = term](const TileExpr::Term &other) { return other.expr == term; });
    if (same == terms.end())
      terms.push_back({factor, term});
    else if (llvm::AddOverflow(same->factor, factor, same->factor))
      return {};
  }
  return TileExpr::sum(offset, std::move(terms));
}

TileExpr fsdp::operator*(TileExpr a, int64_t factor) {
  int64_t offset;
  if (!a || llvm::MulOverflow(a.offset(), factor, offset))
    return {};
  SmallVector<TileExpr::Term, 4> terms = a.terms();
  for (TileExpr::Term &term : terms)
    if (llvm::MulOverflow(term.factor, factor, term.factor))
      return {};
  return TileExpr::sum(offset, std::move(terms));
}

static int64_t floorOf(int64_t a, int64_t b) { return llvm::divideFloorSigned(a, b); }

TileExpr TileExpr::floorDiv(int64_t divisor) const {
  if (!node || divisor <= 0)
    return {};
  if (divisor == 1)
    return *this;
  if (SmallVector<Term, 4> all = terms();
      // Division is monotone, so a minimum, maximum or choice can be divided by dividing its
      // operands.
      all.size() == 1 && all[0].factor > 0) {
    const TileExpr &term = all[0].expr;
    auto in = [&](unsigned i) {
      return (term.operands()[i] * all[0].factor + offset()).floorDiv(divisor);
    };
    if (term.kind() == Kind::Min || term.kind() == Kind::Max)
      return extremum(term.kind(), in(0), in(1));
    if (term.kind() == Kind::Choose)
      return choose(term.operands()[0], in(1), in(2));
  }
  // Move terms whose factor is a multiple of the divisor out of the division.
  TileExpr whole = constant(0), rest = constant(floorOf(offset(), divisor) * -divisor + offset());
  whole = whole + floorOf(offset(), divisor);
  for (auto &[factor, term] : terms())
    (factor % divisor == 0 ? whole : rest) =
        (factor % divisor == 0 ? whole : rest) +
        term * (factor % divisor == 0 ? factor / divisor : factor);
  if (!rest)
    return {};
  IntegerRange inner = rest.range();
  if (floorOf(inner.lo, divisor) == floorOf(inner.hi, divisor))
    return whole + floorOf(inner.lo, divisor);
  Node quotient{Kind::FloorDiv};
  quotient.number = divisor;
  quotient.operands = {rest};
  quotient.range = {floorOf(inner.lo, divisor), floorOf(inner.hi, divisor)};
  return whole + make(std::move(quotient));
}

TileExpr TileExpr::ceilDiv(int64_t divisor) const {
  return (*this + (divisor - 1)).floorDiv(divisor);
}

/// Returns true if `difference` >= 0 can be proved. Visits at most `steps` trees.
static bool isNatural(TileExpr difference, unsigned &steps) {
  using Kind = TileExpr::Kind;
  if (!difference || steps == 0)
    return false;
  --steps;
  if (difference.range().lo >= 0)
    return true;
  for (auto &[factor, term] : difference.terms()) {
    bool isChoice = term.kind() == Kind::Choose;
    if (!isChoice && term.kind() != Kind::Min && term.kind() != Kind::Max)
      continue;
    TileExpr rest = difference - term * factor;
    auto holds = [&, factor = factor](TileExpr operand) {
      return isNatural(rest + operand * factor, steps);
    };
    bool all = isChoice || (term.kind() == Kind::Min) == (factor > 0);
    ArrayRef<TileExpr> operands = term.operands().drop_front(isChoice ? 1 : 0);
    if (all ? llvm::all_of(operands, holds) : llvm::any_of(operands, holds))
      return true;
  }
  return false;
}

bool fsdp::isAtLeast(TileExpr a, TileExpr b) {
  unsigned steps = 64;
  return a && b && isNatural(a - b, steps);
}

TileExpr TileExpr::extremum(Kind kind, TileExpr a, TileExpr b) {
  if (!a || !b)
    return {};
  bool isMax = kind == Kind::Max;
  if (isAtLeast(a, b))
    return isMax ? a : b;
  if (isAtLeast(b, a))
    return isMax ? b : a;
  // max(max(x, y), b) is max(x, b) if b >= y.
  for (const auto &[nested, other] : {std::pair(a, b), std::pair(b, a)})
    if (nested.kind() == kind)
      for (unsigned i : {0, 1})
        if (TileExpr inner = nested.operands()[i];
            isMax ? isAtLeast(other, inner) : isAtLeast(inner, other))
          return extremum(kind, nested.operands()[1 - i], other);
  Node node{kind};
  node.operands = {a, b};
  IntegerRange x = a.range(), y = b.range();
  node.range = isMax ? IntegerRange{std::max(x.lo, y.lo), std::max(x.hi, y.hi)}
                     : IntegerRange{std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
  return make(std::move(node));
}

TileExpr TileExpr::min(TileExpr a, TileExpr b) { return extremum(Kind::Min, a, b); }
TileExpr TileExpr::max(TileExpr a, TileExpr b) { return extremum(Kind::Max, a, b); }

TileExpr TileExpr::choose(TileExpr condition, TileExpr yes, TileExpr no) {
  if (!condition || !yes || !no)
    return {};
  if (condition.range().lo >= 0 || yes == no)
    return yes;
  if (condition.range().hi < 0)
    return no;
  // The condition may itself be a choice between two values. If each of these two values determines
  // the result, use the condition of the inner choice.
  if (auto terms = condition.terms(); terms.size() == 1 && terms[0].expr.kind() == Kind::Choose) {
    ArrayRef<TileExpr> inner = terms[0].expr.operands();
    auto decide = [&](TileExpr value) {
      return choose(value * terms[0].factor + condition.offset(), yes, no);
    };
    TileExpr onYes = decide(inner[1]), onNo = decide(inner[2]);
    if ((onYes == yes || onYes == no) && (onNo == yes || onNo == no))
      return choose(inner[0], onYes, onNo);
  }
  Node node{Kind::Choose};
  node.operands = {condition, yes, no};
  node.range = join(yes.range(), no.range());
  return make(std::move(node));
}

bool TileExpr::contains(llvm::function_ref<bool(TileExpr)> predicate) const {
  return predicate(*this) ||
         llvm::any_of(node->operands, [&](const TileExpr &o) { return o.contains(predicate); });
}

bool TileExpr::isPositional() const {
  return !contains([](TileExpr e) {
    return e.kind() == Kind::Scalar || e.kind() == Kind::Opaque ||
           (e.kind() == Kind::Symbol && e.asSymbol() != Symbol::Begin &&
            e.asSymbol() != Symbol::End);
  });
}
