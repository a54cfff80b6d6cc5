//===- Random.cpp - Random numbers by position ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies and canonicalizes fsdp.random. Builds the generator from arith ops, for the passes that
// lower fsdp.random and fsdp.random_element. The canonicalizations are:
//
//   random bernoulli with keep 0 or 1            ->  a constant
//   reshape that is the only use of random       ->  random of the new shape
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Philox.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::fsdp;

int64_t RandomOp::getElementsPerSample() {
  if (std::optional<uint64_t> given = getPerSample())
    return *given;
  auto type = cast<RankedTensorType>(getResult().getType());
  return type.getRank() && type.getDimSize(0) ? type.getNumElements() / type.getDimSize(0) : 1;
}

LogicalResult RandomOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  Type element = type.getElementType();
  bool bernoulli = getKind() == RandomKind::bernoulli;
  bool flag = element.isInteger(1) && bernoulli;
  if (!type.hasStaticShape()) // (C1)
    return emitOpError("expected a result of static shape, found ") << type;
  if (!(flag || element.isF16() || element.isBF16() || element.isF32() || element.isF64())) // (C1)
    return emitOpError("expected elements of f16, bf16, f32")
           << (bernoulli ? ", f64 or i1" : " or f64") << " for distribution '"
           << stringifyRandomKind(getKind()) << "', found " << type;
  if (getSite() > std::numeric_limits<uint32_t>::max()) // (C2)
    return emitOpError("expected a site from 0 to 2^32 - 1, found ")
           << static_cast<int64_t>(getSite());
  int64_t elements = getElementsPerSample();
  if (elements < (getPerSample() ? 1 : 0) || (elements && type.getNumElements() % elements)) // (C3)
    return emitOpError("expected 'per_sample' to be a positive divisor of the number of elements, ")
           << type.getNumElements() << ", found " << elements;
  if (elements > int64_t(1) << 33) // (C3): a sample has at most 2^32 blocks of two numbers
    return emitOpError("expected samples of at most 2^33 elements, found ") << elements;
  if (bernoulli && !getKeep()) // (C4)
    return emitOpError("expected 'keep' after 'bernoulli', found none");
  if (!bernoulli && getKeep()) // (C4)
    return emitOpError("expected no 'keep' after 'uniform', found 'keep' ")
           << getKeep()->convertToDouble();
  if (bernoulli &&
      !(getKeep()->convertToDouble() >= 0 && getKeep()->convertToDouble() <= 1)) // (C4)
    return emitOpError("expected 'keep' to be a probability, from 0 to 1, found ")
           << getKeep()->convertToDouble();
  return success();
}

OpFoldResult RandomOp::fold(FoldAdaptor) {
  if (!getKeep() || !(getKeep()->isZero() || getKeep()->isExactlyValue(1)))
    return {};
  auto type = cast<RankedTensorType>(getResult().getType());
  Builder b(getContext());
  return DenseElementsAttr::get(type, getKeep()->isZero() ? b.getZeroAttr(type.getElementType())
                                                          : b.getOneAttr(type.getElementType()));
}

namespace {
/// Replaces a reshape of random numbers by an fsdp.random of the new shape. A reshape does not
/// change the row-major index of an element, and this index determines its random number.
template <typename Reshape>
struct ReshapeRandom : OpRewritePattern<Reshape> {
  using OpRewritePattern<Reshape>::OpRewritePattern;
  LogicalResult matchAndRewrite(Reshape op, PatternRewriter &rewriter) const override {
    auto random = op.getSrc().template getDefiningOp<RandomOp>();
    if (!random || !random->hasOneUse())
      return failure();
    rewriter.setInsertionPoint(random);
    rewriter.replaceOpWithNewOp<RandomOp>(
        op, op.getResultType(), random.getKindAttr(), random.getKeepAttr(), random.getSeed(),
        random.getStep(), random.getFirst(), random.getSiteAttr(),
        rewriter.getI64IntegerAttr(random.getElementsPerSample()));
    return success();
  }
};
} // namespace

void RandomOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ReshapeRandom<tensor::ExpandShapeOp>, ReshapeRandom<tensor::CollapseShapeOp>>(
      context);
}

//===----------------------------------------------------------------------===//
// The generator (each 32-bit word is an i64 value)
//===----------------------------------------------------------------------===//

static constexpr int64_t wordMask = 0xffffffff;

namespace {
/// Builds i64 arithmetic at the location `loc`. `type` is i64 or a vector of i64.
struct Words {
  OpBuilder &b;
  Location loc;
  Type type = b.getI64Type();
  Value constant(int64_t v) {
    TypedAttr attr =
        type.isInteger(32) ? b.getI32IntegerAttr(static_cast<int32_t>(v)) : b.getI64IntegerAttr(v);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  /// If `type` is a vector, returns the vector type with the same shape and the element type
  /// `element`. Otherwise returns `element`.
  Type like(Type element) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value real(Type element, double v) {
    TypedAttr attr = b.getFloatAttr(element, v);
    if (auto vector = dyn_cast<VectorType>(like(element)))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value low(Value v) { return arith::AndIOp::create(b, loc, v, constant(wordMask)); }
  Value high(Value v) { return arith::ShRUIOp::create(b, loc, v, constant(32)); }
  Value mul(Value l, int64_t r) { return arith::MulIOp::create(b, loc, l, constant(r)); }
  Value add(Value l, Value r) { return arith::AddIOp::create(b, loc, l, r); }
  Value exclusive(Value x, Value y, Value z) {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, x, y), z);
  }
  Value select(Value c, Value l, Value r) { return arith::SelectOp::create(b, loc, c, l, r); }
  Value isEqual(Value v, int64_t to) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, v, constant(to));
  }
  Value shiftRight(Value v, int64_t by) { return arith::ShRUIOp::create(b, loc, v, constant(by)); }
  Value bits(Value v, int64_t mask) { return arith::AndIOp::create(b, loc, v, constant(mask)); }
};
} // namespace

std::array<Value, 4> fsdp::buildPhilox(OpBuilder &b, Location loc, std::array<Value, 4> c,
                                       Value key, MultiplyHigh multiplyHigh) {
  Words wide{b, loc, key.getType()}, w{b, loc, multiplyHigh ? b.getI32Type() : wide.type};
  auto toWord = [&](Value v) {
    return multiplyHigh ? Value(arith::TruncIOp::create(b, loc, w.type, v)) : v;
  };
  auto add = [&](Value l, int64_t r) {
    Value sum = w.add(l, w.constant(r));
    return multiplyHigh ? sum : w.low(sum);
  };
  // Returns the high and the low word of a product. The product of two 32-bit words fits in 64
  // bits, so the product is exact.
  auto multiply = [&](Value l, int64_t r) -> std::pair<Value, Value> {
    if (l.getType().isInteger(32))
      return {multiplyHigh(l, w.constant(r)), w.mul(l, r)};
    Value product = wide.mul(l, r);
    return {toWord(wide.high(product)), toWord(wide.low(product))};
  };
  Value k0 = toWord(wide.low(key)), k1 = toWord(wide.high(key));
  c[1] = toWord(c[1]);
  c[3] = toWord(c[3]);
  for (int round = 0; round < 10; ++round) {
    auto [high, low] = multiply(c[0], 0xd2511f53);
    auto [otherHigh, otherLow] = multiply(c[2], 0xcd9e8d57);
    c = {w.exclusive(otherHigh, c[1], k0), otherLow, w.exclusive(high, c[3], k1), low};
    if (round == 9)
      break;
    k0 = add(k0, 0x9e3779b9);
    k1 = add(k1, 0xbb67ae85);
  }
  return c;
}

/// Selects the word with the index `element` modulo the number of words, which is a power of two.
static Value pick(Words w, ArrayRef<Value> words, Value element) {
  Value x = words.back();
  for (int64_t i = words.size() - 2; i >= 0; --i)
    x = w.select(w.isEqual(w.bits(element, words.size() - 1), i), words[i], x);
  return x;
}

// Let x = s·(k + f)·2^e with the sign s, the exponent e, an integer k that fits in the mantissa of
// bf16, and 0 <= f < 1. The low 16 bits of x contain f·2^16. The addition of 16 random bits carries
// into k with probability f. If k overflows, the exponent is incremented.
Value fsdp::buildStochasticRounding(OpBuilder &b, Location loc, Value x, Value noise) {
  Type i32 = b.getI32Type();
  auto constant = [&](int32_t v) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(v));
  };
  Value bits = arith::BitcastOp::create(b, loc, i32, x);
  Value sum = arith::AddIOp::create(b, loc, bits, arith::TruncIOp::create(b, loc, i32, noise));
  Value kept = arith::AndIOp::create(b, loc, sum, constant(-65536));
  Value rounded = arith::BitcastOp::create(b, loc, x.getType(), kept);
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  rounded = arith::SelectOp::create(b, loc, isNan, x, rounded);
  return arith::TruncFOp::create(b, loc, b.getBF16Type(), rounded); // exact
}

/// Returns the number in [0, 1) whose mantissa is `x`. The conversion is exact, because `x` has as
/// many bits as the mantissa.
static Value toUnit(Words w, Value x, FloatType type) {
  Value number = arith::SIToFPOp::create(w.b, w.loc, w.like(type), x);
  Value unit = w.real(type, std::ldexp(1.0, -static_cast<int>(type.getFPMantissaWidth())));
  return arith::MulFOp::create(w.b, w.loc, number, unit);
}

/// Builds a uniform f64 number from two words of a block.
static Value buildUniformF64(Words w, ArrayRef<Value> block, Value element, FloatType type) {
  Value lo = pick(w, {block[0], block[2]}, element), hi = pick(w, {block[1], block[3]}, element);
  Value both =
      arith::OrIOp::create(w.b, w.loc, arith::ShLIOp::create(w.b, w.loc, hi, w.constant(32)), lo);
  return toUnit(w, w.shiftRight(both, 64 - type.getFPMantissaWidth()), type);
}

Value fsdp::buildRandomNumber(OpBuilder &b, Location loc, const RandomDraw &draw, Value word) {
  Words w{b, loc, word.getType()};
  if (draw.kind == RandomKind::uniform) {
    auto type = cast<FloatType>(draw.type);
    return toUnit(w, w.shiftRight(word, 32 - type.getFPMantissaWidth()), type);
  }
  Value kept = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, word,
                                     w.constant(getKeptBelow(draw.keep)));
  return buildBernoulli(b, loc, draw, kept);
}

Value fsdp::buildBernoulli(OpBuilder &b, Location loc, const RandomDraw &draw, Value kept) {
  if (draw.type.isInteger(1))
    return kept;
  Words w{b, loc, kept.getType()};
  return w.select(kept, w.real(draw.type, draw.keep > 0 ? 1 / draw.keep : 0), w.real(draw.type, 0));
}

int64_t fsdp::getElementsPerBlock(const RandomDraw &draw) {
  return draw.kind == RandomKind::uniform && draw.type.isF64() ? 2 : 4;
}

std::array<Value, 4> fsdp::buildRandomBlock(OpBuilder &b, Location loc, const RandomDraw &draw,
                                            const RandomPlace &place, Value block,
                                            MultiplyHigh multiplyHigh) {
  Words w{b, loc, block.getType()};
  return buildPhilox(b, loc, {block, w.low(place.sample), w.low(place.step), w.constant(draw.site)},
                     place.seed, multiplyHigh);
}

Value fsdp::buildRandomElement(OpBuilder &b, Location loc, const RandomDraw &draw,
                               const RandomPlace &place, Value element) {
  Words w{b, loc, element.getType()};
  Value number = w.shiftRight(element, llvm::Log2_64(getElementsPerBlock(draw)));
  std::array<Value, 4> block = buildRandomBlock(b, loc, draw, place, number);
  if (getElementsPerBlock(draw) == 2)
    return buildUniformF64(w, block, element, cast<FloatType>(draw.type));
  return buildRandomNumber(b, loc, draw, pick(w, block, element));
}

Value fsdp::buildRandomElement(OpBuilder &b, Location loc, RandomOp op, ValueRange key,
                               Value linear) {
  Words w{b, loc};
  RandomDraw draw{op.getKind(), op.getKeep() ? op.getKeep()->convertToDouble() : 0,
                  static_cast<int64_t>(op.getSite()),
                  cast<RankedTensorType>(op.getResult().getType()).getElementType()};
  Value perSample = w.constant(std::max<int64_t>(1, op.getElementsPerSample()));
  Value element = arith::RemUIOp::create(b, loc, linear, perSample);
  Value sample = w.add(key[2], arith::DivUIOp::create(b, loc, linear, perSample));
  return buildRandomElement(b, loc, draw, {key[0], key[1], sample}, element);
}

RandomDraw fsdp::getDraw(RandomElementOp op) {
  return {op.getKind(), op.getKeep() ? op.getKeep()->convertToDouble() : 0,
          static_cast<int64_t>(op.getSite()), op.getResult().getType()};
}

int64_t fsdp::getKeptBelow(double keep) { return std::llround(std::ldexp(keep, 32)); }
