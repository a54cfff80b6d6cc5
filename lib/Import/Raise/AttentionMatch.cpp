//===- AttentionMatch.cpp - Two products around a softmax -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %s = product(%q, %k)
//   %f = elementwise(%s, ..)
//   %p = softmax(%f)
//   %o = product(%p, %v)
//
//  1. Follow the uses of the softmax through views and elementwise ops to the one product that
//     reads the weights P. The next steps express all positions by parts of the loops of this
//     product (LoopParts.h).
//  2. Trace the operand P of this product back to the softmax. The trace passes through factors
//     (dropout), through a select that sets fully masked rows to 0, and through the slice that
//     drops a sink (AttentionSink.cpp).
//  3. Trace the softmax's input back to the product Q·Kᵀ. An element of this product is called a
//     score, and the trace passes only through ops that depend on a score.
//  4. Trace Q, K and V back through views, copies and constant factors. If a loop part indexes
//     neither K nor V, the part counts rows, or it counts the query heads of a group. (At this
//     point, the trace has already passed the broadcast of K and V to grouped heads.)
//
// If a view splits a loop part, the match splits the part and starts again. Each attempt visits
// every op between the products once.
//
//===----------------------------------------------------------------------===//

#include "Raise/AttentionMatch.h"
#include "Raise/Surroundings.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// Upper bound on the number of loops of an op. The first loop of the product with V has the number
/// 0, and the first loop of product n in Surroundings::sources has the number (n + 1) · maxLoops.
static constexpr unsigned maxLoops = 64;

namespace {
class AttentionMatcher {
public:
  AttentionMatcher(AttentionMatch &match, std::optional<Sink> sink, Obstacle &obstacle)
      : m(match), sink(sink), obstacle(obstacle) {}

  /// Returns true if the ops match. If the method returns false and has set `needed`, the caller
  /// must split a loop part as `needed` describes, and try again. If the method returns false
  /// without setting `needed`, the ops are not attention.
  bool run(const Surroundings &around);
  std::optional<LoopParts::Split> needed;

private:
  bool fail(const Twine &reason, Operation *at) {
    if (!needed)
      obstacle = {reason.str(), at};
    return false;
  }
  MLIRContext *context() { return m.softmax.getContext(); }
  bool readWeights();
  bool isGuard(Point condition, bool whenTrue);
  bool holdsWeights(Point point, unsigned depth = 0);
  bool takeFactor(Point &point);
  bool readScores(const Surroundings &around);
  std::optional<Point> findScore(Point point, Operation *product, unsigned depth);
  bool readOperands();
  Point traceOperand(Point point, bool withScale);
  void collectIndices(Point point, DenseSet<unsigned> &indexed, DenseSet<Value> &seen);
  bool group();
  bool has(const Point &point, unsigned part) {
    return llvm::any_of(point.at, [&](AffineExpr e) { return e.isFunctionOfDim(part); });
  }
  /// Steps from a point to its definition. Steps from the result of a view to the view's source.
  std::optional<Point> back(const Point &point) {
    if (std::optional<Point> next = step(point))
      return next;
    return m.parts.throughReshape(point, needed);
  }

  AttentionMatch &m;
  std::optional<Sink> sink;
  Obstacle &obstacle;
  // Element of the softmax's result that the product with V reads. If the softmax has a column for
  // a sink, this column does not count in the position of the element.
  Point weights;
  Value valueOperand;
};
} // namespace

/// Returns whether `condition` has the truth value `whenTrue` for those rows whose elements are all
/// -inf, and for no other row.
bool AttentionMatcher::isGuard(Point condition, bool whenTrue) {
  Point p = settle(condition);
  while (p.op<arith::XOrIOp>() && constantAt(operandOf(p, 1)) == 1.0) {
    whenTrue = !whenTrue;
    p = settle(operandOf(p, 0));
  }
  auto op = p.isTensor() ? p.value.getDefiningOp<linalg::GenericOp>() : nullptr;
  if (!op || op.getNumReductionLoops() != 1 || op->getNumResults() != 1)
    return false;
  Operation *combiner = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  auto init = dyn_cast_or_null<IntegerAttr>(uniformConstant(op.getDpsInits()[0]));
  bool isAll = isa_and_nonnull<arith::AndIOp>(combiner);
  if (!combiner || !(isAll || isa<arith::OrIOp>(combiner)) || isAll != whenTrue || !init ||
      init.getValue().isZero() == isAll)
    return false;
  BlockArgument out = op.getRegionOutputArgs()[0];
  unsigned other = combiner->getOperand(0) == out ? 1 : 0;
  auto loops = loopsAt(op.getIndexingMapsArray().back(), p.at);
  if (combiner->getOperand(1 - other) != out || !loops)
    return false;
  AffineExpr key = weights.at[m.softmax.getDimension()];
  for (AffineExpr &loop : *loops)
    loop = loop ? loop : key;
  Point term = settle({combiner->getOperand(other), *loops});
  auto cmp = term.op<arith::CmpFOp>();
  if (!cmp)
    return false;
  using P = arith::CmpFPredicate;
  std::optional<double> bound = constantAt(operandOf(term, 1));
  bool compares = isAll ? cmp.getPredicate() == P::OEQ
                        : llvm::is_contained({P::UNE, P::ONE}, cmp.getPredicate());
  return compares && bound && std::isinf(*bound) && *bound < 0 &&
         equal(operandOf(term, 0), {m.softmax.getInput(), weights.at});
}

/// Returns whether a formula contains a result of the softmax.
bool AttentionMatcher::holdsWeights(Point point, unsigned depth) {
  if (isa<BlockArgument>(point.value) && !point.isTensor())
    point = readElement(point);
  if (point.isTensor())
    return fsdp::leadsTo(point.value, m.softmax);
  Operation *op = point.value.getDefiningOp();
  for (unsigned i = 0, e = op && depth < 64 ? op->getNumOperands() : 0; i < e; ++i)
    if (holdsWeights(operandOf(point, i), depth + 1))
      return true;
  return false;
}

/// If the point is `weights * factor` or `weights / factor`, moves the point to the weights,
/// records the factor, and returns true.
bool AttentionMatcher::takeFactor(Point &point) {
  bool divides = static_cast<bool>(point.op<arith::DivFOp>());
  if (!divides && !point.op<arith::MulFOp>())
    return false;
  bool first = holdsWeights(operandOf(point, 0)), second = holdsWeights(operandOf(point, 1));
  if (first == second || (divides && second))
    return false;
  using Factor = AttentionMatch::Factor;
  m.factors.push_back(
      {divides ? Factor::Divides : Factor::Multiplies, operandOf(point, first ? 1 : 0)});
  point = operandOf(point, first ? 0 : 1);
  return true;
}

/// Starts at the weights, an operand of the product with V. Traces the weights back to the softmax,
/// and records the factors on the way.
bool AttentionMatcher::readWeights() {
  auto maps = m.mixing.getIndexingMapsArray();
  SmallVector<AffineExpr> loops;
  for (auto [i, extent] : llvm::enumerate(m.mixing.getStaticLoopRanges()))
    loops.push_back(m.parts.getLoop(i, extent));
  bool first = fsdp::leadsTo(m.mixing.getDpsInputs()[0], m.softmax);
  if (first && fsdp::leadsTo(m.mixing.getDpsInputs()[1], m.softmax))
    return fail("both operands of this product depend on the softmax", m.mixing);
  Point point{m.mixing.getDpsInputs()[first ? 0 : 1], place(maps[first ? 0 : 1], loops)};
  m.v = {m.mixing.getDpsInputs()[first ? 1 : 0], place(maps[first ? 1 : 0], loops)};
  SmallVector<std::pair<Point, bool>> guards;
  while (point.value.getDefiningOp() != m.softmax) {
    if (sink && point.value.getDefiningOp() == sink->slice) {
      // matchSink() has checked that there are only type conversions between the softmax and the
      // slice.
      point.value = m.softmax.getResult()[0];
      break;
    }
    if (auto next = back(point)) {
      point = *next;
      continue;
    }
    if (point.op<arith::ExtFOp>() || point.op<arith::TruncFOp>()) {
      point = operandOf(point, 0);
      continue;
    }
    if (takeFactor(point))
      continue;
    if (point.op<arith::SelectOp>()) {
      bool zeroWhenTrue = constantAt(operandOf(point, 1)) == 0.0;
      if (zeroWhenTrue || constantAt(operandOf(point, 2)) == 0.0) {
        guards.push_back({operandOf(point, 0), zeroWhenTrue});
        point = operandOf(point, zeroWhenTrue ? 2 : 1);
        continue;
      }
    }
    Operation *at = point.value.getDefiningOp();
    return fail("the weights are changed between softmax and product", at ? at : m.mixing);
  }
  weights = point;
  for (auto &[condition, whenTrue] : guards) {
    using Factor = AttentionMatch::Factor;
    if (isGuard(condition, whenTrue))
      m.hasGuard = true;
    else if (holdsWeights(condition))
      return fail("the weights are changed between softmax and product", m.mixing);
    else
      m.factors.push_back({whenTrue ? Factor::Drops : Factor::Keeps, condition});
  }
  m.formula = {m.softmax.getInput(), weights.at};
  if (sink) {
    m.formula.value = sink->concat.getInputs()[sink->scores];
    m.sink = {sink->concat.getInputs()[1 - sink->scores], weights.at};
    m.sink->at[m.softmax.getDimension()] = getAffineConstantExpr(0, context());
  }
  return true;
}

/// Returns the element of the product that the formula at `point` reads. Returns nothing if the
/// formula reads no element of the product, or more than one.
std::optional<Point> AttentionMatcher::findScore(Point point, Operation *product, unsigned depth) {
  for (unsigned steps = 0; steps < 256; ++steps) {
    if (point.isTensor() && point.value.getDefiningOp() == product)
      return point;
    auto next = back(point);
    if (!next)
      break;
    point = *next;
  }
  Operation *op = point.isTensor() ? nullptr : point.value.getDefiningOp();
  std::optional<Point> found;
  for (unsigned i = 0, e = op && depth < 64 ? op->getNumOperands() : 0; i < e; ++i) {
    std::optional<Point> next = findScore(operandOf(point, i), product, depth + 1);
    if (next && found && next->at != found->at)
      return std::nullopt;
    found = next ? next : found;
  }
  return found;
}

bool AttentionMatcher::readScores(const Surroundings &around) {
  unsigned dims = weights.at.size();
  for (auto [number, source] : llvm::enumerate(around.sources)) {
    auto product = cast<linalg::LinalgOp>(source);
    std::optional<Point> score = findScore(m.formula, source, 0);
    if (needed)
      return false;
    if (!score)
      continue;
    // K must be the only operand of the product that has the loop parts of the keys.
    auto loops = loopsAt(product.getIndexingMapsArray()[2], score->at);
    if (!loops || dims == 0)
      continue;
    for (auto [i, extent] : llvm::enumerate(product.getStaticLoopRanges()))
      if (!(*loops)[i])
        (*loops)[i] = m.parts.getLoop((number + 1) * maxLoops + i, extent);
    Point x{product.getDpsInputs()[0], place(product.getIndexingMapsArray()[0], *loops)};
    Point y{product.getDpsInputs()[1], place(product.getIndexingMapsArray()[1], *loops)};
    auto keys = m.parts.termsOf(
        weights.at[m.softmax.getDimension()],
        cast<RankedTensorType>(m.formula.value.getType()).getDimSize(m.softmax.getDimension()));
    if (!keys)
      continue;
    auto hasKeys = [&](const Point &p) {
      return llvm::any_of(*keys, [&](auto &t) { return has(p, t.part); });
    };
    if (hasKeys(x) == hasKeys(y))
      continue;
    m.scoring = product;
    m.score = *score;
    m.q = hasKeys(x) ? y : x;
    m.k = hasKeys(x) ? x : y;
    for (auto &term : *keys)
      m.keys.push_back(term.part);
    return true;
  }
  return fail("its input is not an elementwise function of one product of rows and keys",
              m.softmax);
}

/// Traces an operand back through views, copies and, if `withScale`, products with a constant.
Point AttentionMatcher::traceOperand(Point point, bool withScale) {
  while (!needed) {
    if (auto view = m.parts.throughReshape(point, needed)) {
      point = *view;
      continue;
    }
    auto generic = point.value.getDefiningOp<linalg::GenericOp>();
    std::optional<Point> inner = generic ? step(point) : std::nullopt;
    if (!inner)
      return point;
    if (isa<BlockArgument>(inner->value) && isCopy(generic)) {
      point = readElement(*inner);
      continue;
    }
    bool divides = static_cast<bool>(inner->op<arith::DivFOp>());
    if (!withScale || (!divides && !inner->op<arith::MulFOp>()))
      return point;
    unsigned at = divides || constantAt(operandOf(*inner, 1)) ? 1 : 0;
    std::optional<double> factor = constantAt(operandOf(*inner, at));
    Point rest = operandOf(*inner, 1 - at);
    if (!factor || *factor == 0 || !std::isfinite(*factor) || !isa<BlockArgument>(rest.value))
      return point;
    m.scale = divides ? m.scale / *factor : m.scale * *factor;
    point = readElement(rest);
  }
  return point;
}

bool AttentionMatcher::readOperands() {
  m.q = traceOperand(m.q, true);
  m.k = traceOperand(m.k, true);
  m.v = traceOperand(m.v, false);
  if (needed)
    return false;
  for (const Point *p : {&m.q, &m.k, &m.v})
    for (auto [coordinate, extent] :
         llvm::zip_equal(p->at, cast<RankedTensorType>(p->value.getType()).getShape()))
      if (!m.parts.termsOf(coordinate, extent))
        return fail("this product reads only a part of an operand",
                    p == &m.v ? m.mixing : m.scoring);
  Type element = getElementTypeOrSelf(m.q.value.getType());
  if (element != getElementTypeOrSelf(m.k.value.getType()) ||
      element != getElementTypeOrSelf(m.v.value.getType()))
    return fail("Q, K and V have different types", m.mixing);
  if (!element.isF16() && !element.isBF16() && !element.isF32() && !element.isF64())
    return fail("the type of Q, K and V is not f16, bf16, f32 or f64", m.mixing);
  return true;
}

/// Collects the loop parts that the indices (linalg.index) in a formula depend on.
void AttentionMatcher::collectIndices(Point point, DenseSet<unsigned> &indexed,
                                      DenseSet<Value> &seen) {
  while (seen.insert(point.value).second) {
    if (auto next = back(point)) {
      point = *next;
      continue;
    }
    Operation *op = point.isTensor() ? nullptr : point.value.getDefiningOp();
    if (auto index = dyn_cast_or_null<linalg::IndexOp>(op))
      for (unsigned p = 0; p < m.parts.size(); ++p)
        if (point.at[index.getDim()] && point.at[index.getDim()].isFunctionOfDim(p))
          indexed.insert(p);
    for (unsigned i = 0, e = op ? op->getNumOperands() : 0; i < e; ++i)
      collectIndices(operandOf(point, i), indexed, seen);
    return;
  }
}

/// Assigns each loop part to batch, group, rows, keys, depth or width.
bool AttentionMatcher::group() {
  Point out{m.mixing->getResult(0), {}};
  SmallVector<AffineExpr> loops;
  for (auto [i, extent] : llvm::enumerate(m.mixing.getStaticLoopRanges()))
    loops.push_back(m.parts.getLoop(i, extent));
  out.at = place(m.mixing.getIndexingMapsArray()[2], loops);
  DenseSet<unsigned> placed(m.keys.begin(), m.keys.end());
  for (unsigned key : m.keys)
    if (!has(m.k, key) || !has(m.v, key) || has(m.q, key) || has(out, key))
      return fail("the keys of the softmax are not summed over with V", m.mixing);
  // Each element contains the loop parts of one coordinate of the weights, without the parts that
  // have already been assigned.
  SmallVector<SmallVector<unsigned>> coordinates;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(m.formula.value.getType()).getShape();
  for (auto [d, at] : llvm::enumerate(weights.at)) {
    auto terms = m.parts.termsOf(at, shape[d]);
    if (!terms)
      return fail("this product reads only a part of the weights", m.mixing);
    SmallVector<unsigned> own;
    for (auto &term : *terms)
      if (!placed.contains(term.part))
        own.push_back(term.part);
    placed.insert(own.begin(), own.end());
    coordinates.push_back(own);
  }
  auto isQueryOnly = [&](unsigned p) { return has(m.q, p) && !has(m.k, p) && !has(m.v, p); };
  // The loop parts of the rows must index Q, but neither K nor V. If several coordinates of the
  // weights have such loop parts, prefer the coordinates whose index the formula uses. Among the
  // preferred coordinates, take the longest, and if several are equally long, the last one.
  DenseSet<unsigned> indexed;
  DenseSet<Value> seen;
  collectIndices(m.formula, indexed, seen);
  std::pair<bool, int64_t> longest{false, 0};
  SmallVector<unsigned> *rows = nullptr;
  for (SmallVector<unsigned> &own : coordinates) {
    int64_t extent = 1;
    for (unsigned p : own)
      extent *= m.parts.getExtent(p);
    std::pair<bool, int64_t> rank{
        llvm::any_of(own, [&](unsigned p) { return indexed.contains(p); }), extent};
    if (!own.empty() && llvm::all_of(own, isQueryOnly) && rank >= longest) {
      longest = rank;
      rows = &own;
    }
  }
  if (rows)
    m.rows = *rows;
  for (SmallVector<unsigned> &own : coordinates)
    for (unsigned p : own)
      if (!llvm::is_contained(m.rows, p)) {
        if (!has(out, p))
          return fail("this product sums over more than the keys", m.mixing);
        (isQueryOnly(p) ? m.group : m.batch).push_back(p);
      }
  for (unsigned p = 0; p < m.parts.size(); ++p) {
    if (placed.contains(p) || m.parts.getExtent(p) == 1 ||
        !(has(m.q, p) || has(m.k, p) || has(m.v, p) || has(out, p)))
      continue;
    if (has(m.q, p) && has(m.k, p) && !has(m.v, p) && !has(out, p))
      m.depth.push_back(p);
    else if (has(m.v, p) && has(out, p) && !has(m.q, p) && !has(m.k, p))
      m.width.push_back(p);
    else
      return fail("a loop of this product is over neither batch, heads, rows, keys nor head "
                  "dimensions",
                  m.mixing);
  }
  if (llvm::any_of(m.rows, [&](unsigned p) { return !has(out, p); }))
    return fail("this product sums over rows", m.mixing);
  return !needed;
}

bool AttentionMatcher::run(const Surroundings &around) {
  if (!readWeights() || !readScores(around) || !readOperands() || !group())
    return false;
  return true;
}

std::optional<AttentionMatch> fsdp::matchAttention(linalg::SoftmaxOp softmax, Obstacle &obstacle) {
  Value weights = softmax.getResult()[0], scores = softmax.getInput();
  Surroundings around = findSurroundings(weights, scores, isMatrixProduct);
  if (around.products.empty() && around.sources.empty()) {
    around = findSurroundings(weights, scores, isSumOfProducts);
    if (!around.products.empty() && !around.sources.empty())
      obstacle = {"a single row of queries stays as products of matrices and vectors"};
    return std::nullopt;
  }
  if (around.products.empty() || around.sources.empty())
    return std::nullopt;
  std::optional<Sink> sink = matchSink(softmax, obstacle);
  if (!obstacle.reason.empty())
    return std::nullopt;
  if (around.other || around.products.size() > 1) {
    obstacle = {"the weights are read by more than one product",
                around.other ? around.other : around.products[1]};
    return std::nullopt;
  }
  LoopParts parts(softmax.getContext());
  for (unsigned attempts = 0; attempts < 32; ++attempts) {
    AttentionMatch match(softmax.getContext());
    match.parts = parts;
    match.softmax = softmax;
    match.mixing = cast<linalg::LinalgOp>(around.products[0]);
    AttentionMatcher matcher(match, sink, obstacle);
    if (matcher.run(around))
      return match;
    if (!matcher.needed)
      return std::nullopt;
    parts = match.parts;
    parts.split(matcher.needed->part, matcher.needed->inner);
  }
  obstacle = {"the views between these products split their loops too often", softmax};
  return std::nullopt;
}
