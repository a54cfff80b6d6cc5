//===- AttentionTiles.cpp - Rows and keys that a tile visits ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   q - k >= 0   for rows [q0, q1)   ->   k in [0, q1) for some row, in [0, q0 + 1) for all
//
// 1. MaskFormula.cpp converts mask_mod to a formula of conditions `tree >= 0`.
// 2. Each condition is solved for the variable of the loop (k in the example), even if k occurs in
//    a division. The variable of the tile (q) is replaced by one end of the tile. The range of
//    keys to visit is computed with the end that allows the most keys. The mask-free range is
//    computed with the end that allows the fewest keys. If a condition cannot be solved, the range
//    to visit is the whole loop and the mask-free range is empty.
// 3. The ranges of `a and b` are the intersections of each range of a with each range of b. The
//    ranges of `a or b` are the ranges of a and the ranges of b. Two ranges are joined if they have
//    the same lower or the same upper bound, or if it is not known which of them begins first.
//    Further ranges are joined until at most four are left.
// 4. The ranges to visit are made disjoint. Each mask-free range is clamped to its range to visit.
//
// The bounds are expressions, so the time of the analysis depends on the number of conditions, but
// not on the extents of the tensors.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/AttentionTiles.h"
#include "MaskFormula.h"

using namespace mlir;
using namespace mlir::fsdp;
using Kind = TileExpr::Kind;
using Symbol = TileExpr::Symbol;

static constexpr unsigned maxRanges = 4;

namespace {
/// A range to visit ([visitBegin, visitEnd)) and its mask-free range ([fullBegin, fullEnd)) before
/// step 4. The ranges to visit of all parts together contain every element of the loop that the
/// mask keeps for at least one element of the tile. The mask keeps each element of a mask-free
/// range for all elements of the tile.
struct Part {
  TileExpr visitBegin, visitEnd, fullBegin, fullEnd;
};
using Parts = SmallVector<Part>;

/// Solves formulas for the loop's variable over a tile of the other variable.
class RangeSolver {
public:
  RangeSolver(Symbol loop, Symbol tile, int64_t extent, int64_t tileExtent)
      : loop(loop), tile(tile), zero(TileExpr::constant(0)), extent(TileExpr::constant(extent)),
        begin(TileExpr::symbol(Symbol::Begin, {0, std::max<int64_t>(tileExtent - 1, 0)})),
        end(TileExpr::symbol(Symbol::End, {1, std::max<int64_t>(tileExtent, 1)})) {}

  SmallVector<TileRange> solve(const MaskFormula &mask);

private:
  struct Bounds {
    TileExpr begin, end;
  };
  Parts partsOf(const MaskFormula &mask);
  Bounds solveAtom(TileExpr atom, bool some);
  /// Returns the largest or, if `largest` is false, the least value of `expr` over the tile.
  /// Returns null if this value is unknown.
  TileExpr extremeOverTile(TileExpr expr, bool largest);
  bool hasLoop(TileExpr expr) {
    return expr.contains(
        [&](TileExpr e) { return e.kind() == Kind::Symbol && e.asSymbol() == loop; });
  }
  void mergeParts(Parts &parts, unsigned count);

  Symbol loop, tile;
  TileExpr zero, extent, begin, end;
};
} // namespace

TileExpr RangeSolver::extremeOverTile(TileExpr expr, bool largest) {
  if (!expr)
    return {};
  TileExpr result = TileExpr::constant(expr.offset());
  for (auto &[factor, term] : expr.terms()) {
    bool up = largest == (factor > 0);
    TileExpr extreme = term;
    auto operand = [&, &term = term](unsigned i) {
      return extremeOverTile(term.operands()[i], up);
    };
    switch (term.kind()) {
    case Kind::Symbol:
      if (term.asSymbol() == tile)
        extreme = up ? end + -1 : begin;
      else if (term.asSymbol() == loop)
        return {};
      break;
    case Kind::Opaque:
      extreme = TileExpr::constant(up ? term.range().hi : term.range().lo);
      break;
    case Kind::FloorDiv:
      extreme = operand(0).floorDiv(term.divisor());
      break;
    case Kind::Min:
      extreme = TileExpr::min(operand(0), operand(1));
      break;
    case Kind::Max:
      extreme = TileExpr::max(operand(0), operand(1));
      break;
    case Kind::Choose:
      extreme = up ? TileExpr::max(operand(1), operand(2)) : TileExpr::min(operand(1), operand(2));
      break;
    default:
      break;
    }
    result = result + extreme * factor;
  }
  return result;
}

/// Returns a range of iterations of the loop. If `some` is true, the range contains each iteration
/// in which `atom >= 0` holds for at least one element of the tile. If `some` is false, the range
/// contains only iterations in which `atom >= 0` holds for all elements of the tile.
RangeSolver::Bounds RangeSolver::solveAtom(TileExpr atom, bool some) {
  Bounds unclear{zero, some ? extent : zero};
  TileExpr inLoop, rest = TileExpr::constant(atom.offset());
  int64_t factor = 0;
  for (auto &[f, term] : atom.terms()) {
    bool isSolved =
        hasLoop(term) && !inLoop && (term.kind() == Kind::Symbol || term.kind() == Kind::FloorDiv);
    if (isSolved) {
      inLoop = term;
      factor = f;
      // Only one term can be solved for the variable of the loop. Replace each further term that
      // contains the variable by the term's largest or least value.
    } else if (hasLoop(term)) {
      rest = rest + TileExpr::constant((f > 0) == some ? term.range().hi : term.range().lo) * f;
    } else {
      rest = rest + term * f;
    }
  }
  rest = extremeOverTile(rest, some);
  if (!rest)
    return unclear;
  if (!inLoop)
    return {zero, TileExpr::choose(rest, extent, zero)};
  // The condition is now factor · x + rest >= 0.
  bool isLower = factor > 0;
  TileExpr bound = isLower ? (rest * -1).ceilDiv(factor) : rest.floorDiv(-factor);
  if (!bound)
    return unclear;
  if (inLoop.kind() == Kind::Symbol)
    return isLower ? Bounds{TileExpr::max(bound, zero), extent}
                   : Bounds{zero, TileExpr::min(bound + 1, extent)};
  // ⌊y / n⌋ >= bound  =  y - n · bound >= 0;   ⌊y / n⌋ <= bound  =  n · bound + n - 1 - y >= 0
  int64_t n = inLoop.divisor();
  TileExpr inner = inLoop.operands()[0];
  TileExpr next = isLower ? inner - bound * n : bound * n + (n - 1) - inner;
  return next ? solveAtom(next, some) : unclear;
}

/// Returns a mask-free range for the union of the parts `a` and `b`. If the mask-free ranges of `a`
/// and `b` have the same lower or the same upper bound, returns the union of these two ranges.
/// Otherwise, returns the longer of the two ranges.
static std::pair<TileExpr, TileExpr> uniteFull(const Part &a, const Part &b) {
  if (a.fullBegin == b.fullBegin)
    return {a.fullBegin, TileExpr::max(a.fullEnd, b.fullEnd)};
  if (a.fullEnd == b.fullEnd)
    return {TileExpr::min(a.fullBegin, b.fullBegin), a.fullEnd};
  TileExpr lead = (a.fullEnd - a.fullBegin) - (b.fullEnd - b.fullBegin);
  return {TileExpr::choose(lead, a.fullBegin, b.fullBegin),
          TileExpr::choose(lead, a.fullEnd, b.fullEnd)};
}

static Part unite(const Part &a, const Part &b) {
  auto [fullBegin, fullEnd] = uniteFull(a, b);
  return {TileExpr::min(a.visitBegin, b.visitBegin), TileExpr::max(a.visitEnd, b.visitEnd),
          fullBegin, fullEnd};
}

/// Returns true if the range [begin, end) is provably empty.
static bool isEmpty(const TileExpr &begin, const TileExpr &end) { return isAtLeast(begin, end); }

/// Joins parts whose ranges to visit have the same lower or the same upper bound. Then joins
/// further parts until at most `count` parts are left.
void RangeSolver::mergeParts(Parts &parts, unsigned count) {
  llvm::erase_if(parts, [](const Part &p) { return isEmpty(p.visitBegin, p.visitEnd); });
  // Make all empty mask-free ranges equal to [visitBegin, visitBegin).
  for (Part &p : parts)
    if (isEmpty(p.fullBegin, p.fullEnd))
      p.fullBegin = p.fullEnd = p.visitBegin;
  for (unsigned i = 0; i < parts.size(); ++i)
    for (unsigned j = i + 1; j < parts.size();) {
      bool alike =
          parts[i].visitBegin == parts[j].visitBegin || parts[i].visitEnd == parts[j].visitEnd;
      if (alike) {
        parts[i] = unite(parts[i], parts[j]);
        parts.erase(parts.begin() + j);
        i = 0, j = 1;
      } else {
        ++j;
      }
    }
  while (parts.size() > count) {
    Part last = parts.pop_back_val();
    parts.back() = unite(parts.back(), last);
  }
}

Parts RangeSolver::partsOf(const MaskFormula &mask) {
  switch (mask.kind) {
  case MaskFormula::True:
    return {{zero, extent, zero, extent}};
  case MaskFormula::False:
    return {};
  case MaskFormula::Unknown:
    return {{zero, extent, zero, zero}};
  case MaskFormula::Atom: {
    Bounds visit = solveAtom(mask.atom, true), full = solveAtom(mask.atom, false);
    return {{visit.begin, visit.end, full.begin, full.end}};
  }
  case MaskFormula::And: {
    Parts result{{zero, extent, zero, extent}};
    for (const MaskFormula &operand : mask.parts) {
      Parts product;
      for (const Part &b : partsOf(operand))
        for (const Part &a : result)
          product.push_back(
              {TileExpr::max(a.visitBegin, b.visitBegin), TileExpr::min(a.visitEnd, b.visitEnd),
               TileExpr::max(a.fullBegin, b.fullBegin), TileExpr::min(a.fullEnd, b.fullEnd)});
      mergeParts(product, maxRanges);
      result = std::move(product);
    }
    return result;
  }
  case MaskFormula::Or: {
    Parts result;
    for (const MaskFormula &operand : mask.parts) {
      llvm::append_range(result, partsOf(operand));
      mergeParts(result, maxRanges);
    }
    return result;
  }
  }
  llvm_unreachable("all kinds are above");
}

/// Sorts the parts by `visitBegin`. Joins two parts if it cannot be proved which of them begins
/// first.
static void sortParts(Parts &parts) {
  for (unsigned i = 0; i < parts.size(); ++i) {
    auto isFirst = [&](const Part &p) {
      return llvm::all_of(ArrayRef(parts).drop_front(i), [&](const Part &other) {
        return isAtLeast(other.visitBegin, p.visitBegin);
      });
    };
    auto *first = std::find_if(parts.begin() + i, parts.end(), isFirst);
    if (first != parts.end()) {
      std::swap(parts[i], *first);
      continue;
    }
    Part last = parts.pop_back_val();
    parts.back() = unite(parts.back(), last);
    --i; // retry position i
  }
}

static TileExpr clamp(TileExpr x, TileExpr lo, TileExpr hi) {
  return TileExpr::max(lo, TileExpr::min(x, hi));
}

SmallVector<TileRange> RangeSolver::solve(const MaskFormula &mask) {
  Parts parts = partsOf(mask);
  // A bound is null if its tree would be too large. Replace a null bound of a range to visit by the
  // corresponding bound of the whole loop. Replace a mask-free range that has a null bound by the
  // empty range.
  for (Part &p : parts) {
    p.visitBegin = p.visitBegin ? p.visitBegin : zero;
    p.visitEnd = p.visitEnd ? p.visitEnd : extent;
    if (!p.fullBegin || !p.fullEnd)
      p.fullBegin = p.fullEnd = zero;
  }
  sortParts(parts);
  SmallVector<TileRange> ranges;
  TileExpr done = zero;
  for (const Part &p : parts) {
    TileRange r;
    r.begin = TileExpr::max(p.visitBegin, done);
    r.end = TileExpr::max(p.visitEnd, r.begin);
    r.fullBegin = clamp(p.fullBegin, r.begin, r.end);
    r.fullEnd = clamp(p.fullEnd, r.fullBegin, r.end);
    done = TileExpr::max(done, p.visitEnd);
    if (!done || !r.begin || !r.end || !r.fullBegin || !r.fullEnd)
      return {{zero, zero, zero, extent}};
    ranges.push_back(r);
  }
  return ranges;
}

/// Returns the predicate of the equivalent comparison with swapped operands: a < b is equivalent to
/// b > a.
static arith::CmpIPredicate mirrored(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::slt:
    return P::sgt;
  case P::sgt:
    return P::slt;
  case P::sle:
    return P::sge;
  case P::sge:
    return P::sle;
  case P::ult:
    return P::ugt;
  case P::ugt:
    return P::ult;
  case P::ule:
    return P::uge;
  case P::uge:
    return P::ule;
  default:
    return predicate;
  }
}

/// Appends comparisons that are terms of the conjunction `condition`. Appends only comparisons in
/// which one operand depends only on the row, and the other operand depends only on the column.
static void collectComparisons(Value condition, MaskReader &reader,
                               SmallVectorImpl<SideComparison> &comparisons) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collectComparisons(both.getLhs(), reader, comparisons);
    collectComparisons(both.getRhs(), reader, comparisons);
  }
  auto cmp = condition.getDefiningOp<arith::CmpIOp>();
  if (!cmp)
    return;
  auto readsData = [&](Value side) {
    TileExpr expr = reader.readInteger(side);
    return !expr || expr.contains([](TileExpr e) { return e.kind() == Kind::Opaque; });
  };
  if (!readsData(cmp.getLhs()) && !readsData(cmp.getRhs()))
    return;
  Dependence lhs = reader.getDependence().of(cmp.getLhs()),
             rhs = reader.getDependence().of(cmp.getRhs());
  if (lhs == Dependence::Row && rhs == Dependence::Column)
    comparisons.push_back({cmp.getPredicate(), cmp.getLhs(), cmp.getRhs()});
  else if (lhs == Dependence::Column && rhs == Dependence::Row)
    comparisons.push_back({mirrored(cmp.getPredicate()), cmp.getRhs(), cmp.getLhs()});
}

void AttentionTiles::analyse(Region &maskMod, ArrayRef<int64_t> ofDims) {
  extents.assign(ofDims.begin(), ofDims.end());
  MaskFormula mask = MaskFormula::of(true);
  if (!maskMod.empty()) {
    MaskReader reader(maskMod, extents);
    Value kept = maskMod.front().getTerminator()->getOperand(0);
    mask = reader.read(kept);
    collectComparisons(kept, reader, comparisons);
  }
  keys = RangeSolver(Symbol::Column, Symbol::Row, extents[3], extents[2]).solve(mask);
  rows = RangeSolver(Symbol::Row, Symbol::Column, extents[2], extents[3]).solve(mask);
}

template <typename Op>
static SmallVector<int64_t> extentsOf(Op op) {
  ArrayRef<int64_t> q = cast<RankedTensorType>(op.getQ().getType()).getShape();
  return {q[0], q[1], q[2], cast<RankedTensorType>(op.getK().getType()).getDimSize(2)};
}

AttentionTiles::AttentionTiles(AttentionOp op) { analyse(op.getMaskMod(), extentsOf(op)); }
AttentionTiles::AttentionTiles(AttentionGradOp op) { analyse(op.getMaskMod(), extentsOf(op)); }

SmallVector<TileRange> AttentionTiles::inTiles(ArrayRef<TileRange> ranges, int64_t extent,
                                               int64_t size) {
  SmallVector<TileRange> tiles;
  TileExpr zero = TileExpr::constant(0), done = zero;
  for (const TileRange &r : ranges) {
    TileRange t;
    t.begin = TileExpr::max(r.begin.floorDiv(size), done);
    TileExpr end = TileExpr::max(r.end.ceilDiv(size), t.begin);
    t.end =
        isAtLeast(r.end, r.begin + 1) ? end : TileExpr::choose(r.end - r.begin + -1, end, t.begin);
    t.fullBegin = clamp(r.fullBegin.ceilDiv(size), t.begin, t.end);
    t.fullEnd = clamp(r.fullEnd.floorDiv(size), t.fullBegin, t.end);
    done = t.end;
    // If a bound is null because its tree would be too large, visit all tiles.
    if (!done || !t.begin || !t.fullBegin || !t.fullEnd)
      return {{zero, zero, zero, TileExpr::constant(extent).ceilDiv(size)}};
    tiles.push_back(t);
  }
  return tiles;
}

bool AttentionTiles::isUnmasked() const {
  return keys.size() == 1 && keys[0].fullBegin.asConstant() == 0 &&
         keys[0].fullEnd.asConstant() == extents[3];
}

/// Returns true if a bound of a range contains a tree for which `predicate` is true.
bool AttentionTiles::hasBound(llvm::function_ref<bool(TileExpr)> predicate) const {
  return llvm::any_of(keys, [&](const TileRange &r) {
    return llvm::any_of(ArrayRef{r.begin, r.fullBegin, r.fullEnd, r.end},
                        [&](TileExpr e) { return e.contains(predicate); });
  });
}

bool AttentionTiles::readsData() const {
  return hasBound([](TileExpr e) { return e.kind() == Kind::Scalar || e.kind() == Kind::Opaque; });
}

std::optional<bool>
AttentionTiles::allRows(llvm::function_ref<bool(const TileSymbols<int64_t> &)> test) const {
  auto isSymbol = [](Symbol s) {
    return [s](TileExpr e) { return e.kind() == Kind::Symbol && e.asSymbol() == s; };
  };
  int64_t batches = hasBound(isSymbol(Symbol::Batch)) ? extents[0] : 1,
          heads = hasBound(isSymbol(Symbol::Head)) ? extents[1] : 1;
  if (readsData() || batches * heads > (int64_t(1) << 20) ||
      batches * heads * extents[2] > (int64_t(1) << 20))
    return std::nullopt;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t q = 0; q < extents[2]; ++q)
        if (!test({q, q + 1, b, h}))
          return false;
  return true;
}

DenseMap<Value, IntegerRange> fsdp::findScalars(ArrayRef<TileRange> ranges) {
  DenseMap<Value, IntegerRange> scalars;
  for (const TileRange &range : ranges)
    for (const TileExpr &bound : {range.begin, range.fullBegin, range.fullEnd, range.end})
      bound.contains([&](TileExpr e) {
        if (e.kind() == Kind::Scalar || e.kind() == Kind::Opaque)
          scalars[e.value()] = e.range();
        return false;
      });
  return scalars;
}

bool AttentionTiles::hasKeyInEveryRow() const {
  return allRows([&](const TileSymbols<int64_t> &row) {
           return llvm::any_of(keys, [&](const TileRange &r) {
             return r.fullBegin.evaluate(row) < r.fullEnd.evaluate(row);
           });
         })
      .value_or(false);
}

bool AttentionTiles::isFullyMasked() const {
  return allRows([&](const TileSymbols<int64_t> &row) {
           return llvm::all_of(keys, [&](const TileRange &r) {
             return r.begin.evaluate(row) >= r.end.evaluate(row);
           });
         })
      .value_or(false);
}

TileState AttentionTiles::classify(const TileSymbols<int64_t> &rowsOfTile, int64_t k0,
                                   int64_t k1) const {
  bool isVisited = false;
  for (const TileRange &r : keys) {
    if (r.fullBegin.evaluate(rowsOfTile) <= k0 && k1 <= r.fullEnd.evaluate(rowsOfTile))
      return TileState::Unmasked;
    isVisited |= r.begin.evaluate(rowsOfTile) < k1 && k0 < r.end.evaluate(rowsOfTile);
  }
  return isVisited ? TileState::Partial : TileState::Masked;
}
