//===- WriteScoreFunctions.cpp - Writing of the attention regions ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the regions of fsdp.attention from a formula that ScoreFunctions.cpp has split:
//
//   select(c, x · 0.125 + t[h, q, k], -inf)  ->  score_mod { s + t[h, i, j] }  mask_mod { c }
//
//  1. Elements of tensors other than Q·Kᵀ become elements of captured operands, at indices that are
//     computed from b, h, i and j.
//  2. Scalar ops are copied. If math functions compute a tensor that does not depend on the score,
//     the tensor is captured and not recomputed for each score.
//  3. weight_mod computes the factors that are applied after the softmax. An element of fsdp.random
//     becomes fsdp.random_element.
//  4. If there is a sink, score_mod yields its score for the last key, and mask_mod keeps this key.
//  5. If a region must not contain an op of the formula, return the op, which the caller reports.
//
//===----------------------------------------------------------------------===//

#include "Raise/ScoreFunctions.h"
#include "Structure/Structured.h"
#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/IR/Attention.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Writes formulas into one region of the op.
class ScoreFunctions::Writer {
public:
  Writer(ScoreFunctions &f, AttentionOp op, Region &region, bool hasScore, Obstacle &obstacle)
      : f(f), op(op), wide(getElementTypeOrSelf(op.getLse().getType())), hasScore(hasScore),
        obstacle(obstacle), b(op.getContext()) {
    Location loc = op.getLoc();
    Block &block = region.emplaceBlock();
    if (hasScore)
      block.addArgument(wide, loc);
    for (unsigned i = 0; i < 4; ++i)
      block.addArgument(b.getIndexType(), loc);
    for (Value capture : op.getCaptures())
      block.addArgument(capture.getType(), loc);
    b.setInsertionPointToEnd(&block);
  }

  /// Writes the ops that compute the formula of a point, and returns the result. If the formula
  /// contains an op that a region must not contain, sets `obstacle` and returns null.
  Value get(const Point &point);
  Value condition(const Mask &mask);
  Value factor(const AttentionMatch::Factor &factor, Value product);
  Value isSink();
  void yield(Value value);
  OpBuilder &builder() { return b; }

private:
  Value make(const Point &point);
  Value extract(Value tensor, ValueRange at);
  Value copy(const Point &point);
  Value negate(Value condition);
  Value simplify(Operation *made);
  Value random(RandomOp source, ArrayRef<AffineExpr> at);
  Value whole(AffineExpr expr);
  Value index(AffineExpr expr);
  Value part(unsigned part);
  Value fail(const Twine &reason, Operation *at) {
    if (obstacle.reason.empty())
      obstacle = {reason.str(), at};
    return {};
  }
  Value argument(unsigned i) { return b.getInsertionBlock()->getArgument(i); }
  Value constantIndex(int64_t v) { return arith::ConstantIndexOp::create(b, op.getLoc(), v); }

  ScoreFunctions &f;
  AttentionOp op;
  Type wide;
  bool hasScore;
  Obstacle &obstacle;
  OpBuilder b;
  Value sinkTest; // result of isSink
  DenseMap<Key, Value> written;
  DenseMap<unsigned, Value> writtenParts;
};

/// Computes the index of the loop part `part` from the index b, h, i or j to which the part
/// belongs.
Value ScoreFunctions::Writer::part(unsigned part) {
  if (Value known = writtenParts.lookup(part))
    return known;
  for (auto [dim, parts] : llvm::enumerate(f.indices)) {
    const unsigned *at = llvm::find(parts, part);
    if (at == parts.end())
      continue;
    int64_t inner = 1;
    for (const unsigned *p = at + 1; p != parts.end(); ++p)
      inner *= f.m.parts.getExtent(*p);
    Value value = argument(dim + hasScore);
    if (inner != 1)
      value = arith::DivUIOp::create(b, op.getLoc(), value, constantIndex(inner));
    if (at != parts.begin())
      value =
          arith::RemUIOp::create(b, op.getLoc(), value, constantIndex(f.m.parts.getExtent(part)));
    return writtenParts[part] = value;
  }
  return f.m.parts.getExtent(part) == 1 ? constantIndex(0) : Value();
}

/// Returns the argument b, h, i or j that equals the expression. Returns null if no argument equals
/// it.
Value ScoreFunctions::Writer::whole(AffineExpr expr) {
  for (auto [dim, parts] : llvm::enumerate(f.indices)) {
    int64_t extent = 1;
    for (unsigned p : parts)
      extent *= f.m.parts.getExtent(p);
    auto terms = f.m.parts.termsOf(expr, extent);
    SmallVector<unsigned> wideParts;
    llvm::copy_if(parts, std::back_inserter(wideParts),
                  [&](unsigned p) { return f.m.parts.getExtent(p) != 1; });
    if (terms && !terms->empty() &&
        llvm::equal(*terms, wideParts,
                    [](const LoopParts::Term &t, unsigned p) { return t.part == p; }))
      return argument(dim + hasScore);
  }
  return {};
}

/// Computes an expression of loop parts. Returns null if a part belongs to none of b, h, i and j.
Value ScoreFunctions::Writer::index(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constantIndex(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return part(dim.getPosition());
  if (Value dimension = whole(expr))
    return dimension;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  Value lhs = binary ? index(binary.getLHS()) : Value(),
        rhs = binary ? index(binary.getRHS()) : Value();
  if (!lhs || !rhs)
    return {};
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, op.getLoc(), lhs, rhs);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, op.getLoc(), lhs, rhs);
  default:
    return {};
  }
}

/// Captures `tensor` and builds a read of its element `at`. Converts a narrow float to the type of
/// the score.
Value ScoreFunctions::Writer::extract(Value tensor, ValueRange at) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type element = type.getElementType();
  if (!type.hasStaticShape() || element.isIndex() || !isAttentionScalar(element))
    return fail("a tensor of this type cannot be captured", tensor.getDefiningOp());
  unsigned own = 4 + hasScore,
           number = llvm::find(op.getCaptures(), tensor) - op.getCaptures().begin();
  if (number == op.getCaptures().size()) {
    op.getCapturesMutable().append(tensor);
    for (Region *region : {&op.getScoreMod(), &op.getMaskMod(), &op.getWeightMod()})
      if (!region->empty())
        region->front().addArgument(type, op.getLoc());
  }
  Value value = tensor::ExtractOp::create(b, op.getLoc(), argument(own + number), at);
  bool narrow =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() < wide.getIntOrFloatBitWidth();
  return narrow ? Value(arith::ExtFOp::create(b, op.getLoc(), wide, value)) : value;
}

/// Builds an fsdp.random_element for element `at` of an fsdp.random. Computes the number of the
/// element's sample, and the element's index in this sample.
Value ScoreFunctions::Writer::random(RandomOp source, ArrayRef<AffineExpr> at) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(source.getResult().getType());
  // Join adjacent dimensions that together are one dimension of fsdp.attention, such as the kv
  // heads and the query heads of each kv head.
  SmallVector<std::pair<AffineExpr, int64_t>> dims;
  for (auto [expr, extent] : llvm::zip_equal(at, type.getShape())) {
    if (!expr)
      return fail("this is not read by batch, head, row and key", source);
    AffineExpr joined = dims.empty() ? AffineExpr() : dims.back().first * extent + expr;
    if (joined && whole(joined))
      dims.back() = {joined, dims.back().second * extent};
    else
      dims.push_back({expr, extent});
  }
  int64_t perSample = source.getElementsPerSample(), inner = 1;
  unsigned first = dims.size(); // number of the first dimension that is not a sample dimension
  while (first > 0 && inner < perSample)
    inner *= dims[--first].second;
  auto count = [&](unsigned from, unsigned to) {
    Value linear;
    for (auto [expr, extent] : ArrayRef(dims).slice(from, to - from)) {
      Value next = index(expr);
      if (!next)
        return fail("this is not read by batch, head, row and key", source);
      linear = linear
                   ? arith::AddIOp::create(
                         b, loc, arith::MulIOp::create(b, loc, linear, constantIndex(extent)), next)
                   : next;
    }
    return linear ? linear : constantIndex(0);
  };
  Value sample = count(0, inner == perSample ? first : dims.size()), element = sample;
  if (inner == perSample)
    element = count(first, dims.size());
  if (!sample || !element)
    return {};
  if (inner != perSample) {
    element = arith::RemUIOp::create(b, loc, element, constantIndex(perSample));
    sample = arith::DivUIOp::create(b, loc, sample, constantIndex(perSample));
  }
  Value seed = extract(source.getSeed(), {}), step = extract(source.getStep(), {}),
        start = extract(source.getFirst(), {});
  sample = arith::AddIOp::create(b, loc, start,
                                 arith::IndexCastOp::create(b, loc, b.getI64Type(), sample));
  Type drawn = type.getElementType();
  if (isa<FloatType>(drawn) && source.getKind() == RandomKind::bernoulli)
    drawn = wide;
  Value value = RandomElementOp::create(b, loc, drawn, source.getKindAttr(), source.getKeepAttr(),
                                        seed, step, sample, element, source.getSiteAttr());
  bool narrow =
      isa<FloatType>(drawn) && drawn.getIntOrFloatBitWidth() < wide.getIntOrFloatBitWidth();
  return narrow ? Value(arith::ExtFOp::create(b, loc, wide, value)) : value;
}

/// Copies a scalar op and the ops that compute its operands. Converts narrow floats to the type of
/// the score.
Value ScoreFunctions::Writer::copy(const Point &point) {
  Operation *source = point.value.getDefiningOp();
  bool known = isa_and_nonnull<arith::ArithDialect, math::MathDialect>(source->getDialect());
  if (!known || !isMemoryEffectFree(source) || source->getNumRegions() != 0 ||
      source->getNumResults() != 1 || isa<arith::BitcastOp>(source))
    return fail("'" + source->getName().getStringRef() +
                    "' is not allowed in a function of attention",
                source);
  if (!llvm::all_of(source->getOperandTypes(), isAttentionScalar) ||
      !isAttentionScalar(point.value.getType()))
    return fail("functions of attention do not compute with this type", source);
  IRMapping mapping;
  for (unsigned i = 0, e = source->getNumOperands(); i < e; ++i) {
    Value operand = get(operandOf(point, i));
    if (!operand)
      return {};
    mapping.map(source->getOperand(i), operand);
  }
  // If an op reads a value twice, it reads the same element twice, so one mapping is enough.
  Operation *made = b.clone(*source, mapping);
  if (isa<FloatType>(made->getResult(0).getType()))
    made->getResult(0).setType(wide);
  return simplify(made);
}

Value ScoreFunctions::Writer::make(const Point &p) {
  Location loc = op.getLoc();
  if (std::optional<double> constant = f.constantOf(p)) {
    Type type = getElementTypeOrSelf(p.value.getType());
    if (isa<FloatType>(type))
      return arith::ConstantOp::create(b, loc, b.getFloatAttr(wide, *constant));
    Attribute attr;
    if (matchPattern(p.value, m_Constant(&attr)) && isa<IntegerAttr>(attr))
      return arith::ConstantOp::create(b, loc, cast<TypedAttr>(attr));
    return arith::ConstantOp::create(b, loc, type,
                                     b.getIntegerAttr(type, static_cast<int64_t>(*constant)));
  }
  if (p.isTensor()) {
    if (p.value.getDefiningOp() == f.m.scoring) {
      if (!hasScore || p.at != f.m.score.at)
        return fail("a mask or a factor depends on the scores", f.m.scoring);
      return argument(0);
    }
    if (auto source = p.value.getDefiningOp<RandomOp>())
      return random(source, p.at);
    SmallVector<Value> at;
    for (AffineExpr expr : p.at)
      at.push_back(expr ? index(expr) : Value());
    if (llvm::is_contained(at, Value()))
      return fail("this is not read by batch, head, row and key", p.value.getDefiningOp());
    return extract(p.value, at);
  }
  Operation *source = p.value.getDefiningOp();
  if (!source)
    return fail("the formula reads a value without a known position", f.m.softmax);
  if (isa<FloatType>(p.value.getType()) &&
      p.value.getType().getIntOrFloatBitWidth() > wide.getIntOrFloatBitWidth())
    return fail("this is computed in a wider type than the scores of attention", source);
  for (auto *map : {&f.passed, &f.passedFinite})
    if (auto it = map->find(f.keyOf(p)); it != map->end() && hasScore)
      return get(operandOf(p, it->second));
  if (auto at = dyn_cast<linalg::IndexOp>(source)) {
    Value value = p.at[at.getDim()] ? index(p.at[at.getDim()]) : Value();
    return value ? value : fail("an index is over neither batch, head, row nor key", source);
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(source))
    return get(operandOf(p, 0));
  if (auto lookup = dyn_cast<tensor::ExtractOp>(source)) {
    SmallVector<Value> at;
    for (unsigned i = 1, e = source->getNumOperands(); i < e; ++i)
      at.push_back(get(operandOf(p, i)));
    return llvm::is_contained(at, Value()) ? Value() : extract(lookup.getTensor(), at);
  }
  return copy(p);
}

Value ScoreFunctions::Writer::get(const Point &point) {
  Point p = f.settle(point);
  if (llvm::is_contained(p.at, AffineExpr()))
    return fail("this is not read by batch, head, row and key", p.value.getDefiningOp());
  Key key = f.keyOf(p);
  if (Value known = written.lookup(key))
    return known;
  Value value = make(p);
  written[key] = value;
  return value;
}

Value ScoreFunctions::Writer::condition(const Mask &mask) {
  Point point = mask.condition;
  // Read the mask as a table of i1, which has no gradient.
  if (mask.isNumber) {
    OpBuilder outside(op);
    point.value =
        arith::ConstantOp::create(outside, op.getLoc(), keptElements(mask.condition.value));
  }
  Value keep = get(point);
  return keep && mask.negated ? negate(keep) : keep;
}

/// Returns the opposite of a condition.
Value ScoreFunctions::Writer::negate(Value condition) {
  if (auto cmp = condition.getDefiningOp<arith::CmpIOp>())
    return arith::CmpIOp::create(b, op.getLoc(), arith::invertPredicate(cmp.getPredicate()),
                                 cmp.getLhs(), cmp.getRhs());
  if (auto opposite = condition.getDefiningOp<arith::XOrIOp>();
      opposite && matchPattern(opposite.getRhs(), m_One()))
    return opposite.getLhs();
  Value yes = arith::ConstantOp::create(b, op.getLoc(), b.getBoolAttr(true));
  return arith::XOrIOp::create(b, op.getLoc(), condition, yes);
}

/// Returns the result of an op, or an equal value that is simpler to compute. If the op compares
/// `select(c, x, y)` with z, where x, y and z are constants, returns c, the negation of c, or a
/// constant. A comparison of a mask of numbers with 0 thereby becomes a condition that lets kernels
/// skip tiles.
Value ScoreFunctions::Writer::simplify(Operation *made) {
  Value result = made->getResult(0);
  if (isa<arith::XOrIOp>(made) && result.getType().isInteger(1) &&
      matchPattern(made->getOperand(1), m_One()))
    return negate(made->getOperand(0));
  if (!isa<arith::CmpFOp, arith::CmpIOp>(made))
    return result;
  auto select = made->getOperand(0).getDefiningOp<arith::SelectOp>();
  Attribute yes, no, bound;
  if (!select || !matchPattern(select.getTrueValue(), m_Constant(&yes)) ||
      !matchPattern(select.getFalseValue(), m_Constant(&no)) ||
      !matchPattern(made->getOperand(1), m_Constant(&bound)))
    return result;
  auto holds = [&](Attribute value) {
    if (auto cmp = dyn_cast<arith::CmpFOp>(made))
      return arith::applyCmpPredicate(cmp.getPredicate(), cast<FloatAttr>(value).getValue(),
                                      cast<FloatAttr>(bound).getValue());
    return arith::applyCmpPredicate(cast<arith::CmpIOp>(made).getPredicate(),
                                    cast<IntegerAttr>(value).getValue(),
                                    cast<IntegerAttr>(bound).getValue());
  };
  if (holds(yes) == holds(no))
    return arith::ConstantOp::create(b, op.getLoc(), b.getBoolAttr(holds(yes)));
  return holds(yes) ? select.getCondition() : negate(select.getCondition());
}

/// Builds the test whether the key is the last key, which is the sink.
Value ScoreFunctions::Writer::isSink() {
  if (!sinkTest) {
    int64_t last = cast<RankedTensorType>(op.getK().getType()).getDimSize(2) - 1;
    sinkTest = arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::eq,
                                     argument(3 + hasScore), constantIndex(last));
  }
  return sinkTest;
}

/// Ends the region. A tensor that has one element per key has no element for the sink. For the
/// sink, the region reads the element of the previous key, and then discards the value that it
/// computes from this element.
void ScoreFunctions::Writer::yield(Value value) {
  Location loc = op.getLoc();
  Value key = argument(3 + hasScore);
  YieldOp::create(b, loc, value);
  Block *block = b.getInsertionBlock();
  bool reads = llvm::any_of(block->getOps<tensor::ExtractOp>(),
                            [](tensor::ExtractOp read) { return !read.getIndices().empty(); });
  Operation *test = sinkTest ? sinkTest.getDefiningOp() : nullptr;
  if (!f.m.sink || !reads ||
      llvm::all_of(key.getUsers(), [&](Operation *user) { return user == test; }))
    return;
  b.setInsertionPointToStart(block);
  int64_t keys = cast<RankedTensorType>(op.getK().getType()).getDimSize(2) - 1;
  auto bounded = arith::MinUIOp::create(b, loc, key, constantIndex(keys - 1));
  key.replaceUsesWithIf(
      bounded, [&](OpOperand &use) { return use.getOwner() != test && use.getOwner() != bounded; });
  b.setInsertionPointToEnd(block);
}

/// Builds `product` times a factor.
Value ScoreFunctions::Writer::factor(const AttentionMatch::Factor &factor, Value product) {
  using Factor = AttentionMatch::Factor;
  Location loc = op.getLoc();
  Value value = get(factor.value);
  if (!value)
    return {};
  if (factor.kind == Factor::Divides)
    return arith::DivFOp::create(b, loc, product, value);
  if (factor.kind == Factor::Multiplies)
    return arith::MulFOp::create(b, loc, product, value);
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(wide, 0));
  bool keeps = factor.kind == Factor::Keeps;
  return arith::SelectOp::create(b, loc, value, keeps ? product : zero, keeps ? zero : product);
}

/// Writes the factors by which the model multiplies the weights into weight_mod. Returns false if a
/// factor reads floats from memory, because weight_mod has no gradient.
bool ScoreFunctions::writeFactors(AttentionOp op, Obstacle &obstacle) {
  if (m.factors.empty())
    return true;
  Writer weight(*this, op, op.getWeightMod(), false, obstacle);
  OpBuilder &b = weight.builder();
  Value product = arith::ConstantOp::create(
      b, op.getLoc(), b.getFloatAttr(getElementTypeOrSelf(op.getLse().getType()), 1));
  for (const AttentionMatch::Factor &factor : m.factors)
    if (product = weight.factor(factor, product); !product)
      return false;
  weight.yield(product);
  for (auto read : op.getWeightMod().getOps<tensor::ExtractOp>())
    if (isa<FloatType>(read.getType())) {
      obstacle = {"the weights are changed between softmax and product by floats read from memory",
                  m.factors.front().value.value.getDefiningOp()};
      return false;
    }
  return true;
}

bool ScoreFunctions::write(AttentionOp op, Obstacle &obstacle) {
  Writer score(*this, op, op.getScoreMod(), true, obstacle);
  Value s = score.get(m.formula);
  if (!s || (m.sink && !isSinkAllowed(op, obstacle)))
    return false;
  if (m.sink) {
    Value sink = score.get(*m.sink);
    if (!sink)
      return false;
    s = arith::SelectOp::create(score.builder(), op.getLoc(), score.isSink(), sink, s);
  }
  score.yield(s);
  Writer mask(*this, op, op.getMaskMod(), false, obstacle);
  Value keep;
  for (const Mask &part : masks) {
    Value condition = mask.condition(part);
    if (!condition)
      return false;
    keep = keep ? Value(arith::AndIOp::create(mask.builder(), op.getLoc(), keep, condition))
                : condition;
  }
  if (m.sink && keep)
    keep = arith::OrIOp::create(mask.builder(), op.getLoc(), mask.isSink(), keep);
  mask.yield(keep ? keep
                  : Value(arith::ConstantOp::create(mask.builder(), op.getLoc(),
                                                    mask.builder().getBoolAttr(true))));
  return writeFactors(op, obstacle);
}

AttentionOp ScoreFunctions::build(OpBuilder &b, Value q, Value k, Value v, Obstacle &obstacle) {
  auto qType = cast<RankedTensorType>(q.getType()), vType = cast<RankedTensorType>(v.getType());
  ArrayRef<int64_t> shape = qType.getShape();
  Type element = qType.getElementType(), wide = element.isF64() ? element : Type(b.getF32Type());
  auto oType = RankedTensorType::get({shape[0], shape[1], shape[2], vType.getDimSize(3)}, element);
  auto op = AttentionOp::create(
      b, m.mixing.getLoc(), oType, RankedTensorType::get(shape.drop_back(), wide), q, k, v,
      ValueRange(), b.getF64FloatAttr(scale), /*ring=*/IntegerAttr(), UnitAttr());
  bool written = write(op, obstacle);
  bool hasFinite = !passedFinite.empty(), isLow = written && mayMask(op);
  bool isProven =
      written && !isLow && (AttentionTiles(op).hasKeyInEveryRow() || keepsKeyInEveryRow(op));
  if (written && (isProven || assumeKeys || !(hasFinite || isLow)))
    return op;
  if (written)
    obstacle = {"the mask uses finite numbers, and a row may be masked completely; if every row "
                "keeps a key, give --raise-attention=assume-keys",
                m.formula.value.getDefiningOp()};
  op.erase();
  return {};
}
