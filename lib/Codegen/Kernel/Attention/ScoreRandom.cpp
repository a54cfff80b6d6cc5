//===- ScoreRandom.cpp - Random elements on fragments -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The random generator produces blocks of four random words. The words of a block belong to four
// consecutive elements. Dropout numbers the elements in row-major order, so consecutive lanes have
// consecutive numbers:
//
//   element = 4·x + k   lanes of a register    e  e+1  e+2  e+3 | e+4 ..
//                       blocks                 block e/4        | block e/4 + 1 ..
//                       words                  w0   w1   w2  w3 | w0 ..
//
// If lane 0 is at the start of a block, each group of four lanes computes one block, and each lane
// uses one word of this block. Otherwise each lane computes the whole block of its element, and
// uses only one word of it. The random numbers are the same in either case.
//
//===----------------------------------------------------------------------===//

#include "ScoreFunction.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::tile;

static Value splatTo(CodeBuilder &b, Value value, int64_t lanes) {
  return isa<VectorType>(value.getType()) ? value : b.splat(value, lanes);
}

static Value toWords(CodeBuilder &b, Value value) {
  Type type = withElement(value.getType(), b.getI64Type());
  if (value.getType() == type)
    return value;
  return arith::ExtSIOp::create(b, b.loc, type, value);
}

/// Returns a vector with the words of several blocks in the order of the lanes: the four words of
/// the first block, then the four words of the second block. Vector i of `block` contains word i of
/// every block.
static Value interleave(CodeBuilder &b, std::array<Value, 4> block, int64_t lanes) {
  auto narrow = VectorType::get({lanes / 4}, b.getI32Type());
  for (Value &words : block)
    words = arith::TruncIOp::create(b, b.loc, narrow, words);
  SmallVector<int64_t> joined, order;
  for (int64_t i = 0; i < lanes / 2; ++i)
    joined.push_back(i);
  Value low = b.shuffle(block[0], block[1], joined), high = b.shuffle(block[2], block[3], joined);
  for (int64_t lane = 0; lane < lanes; ++lane)
    order.push_back(lane % 4 * (lanes / 4) + lane / 4);
  return b.shuffle(low, high, order);
}

/// Returns 1 / draw.keep in lanes whose random word (i32) is below the limit, and 0 in other lanes.
/// If draw.type is i1, returns true and false instead.
static Value keepBelow(CodeBuilder &b, const RandomDraw &draw, Value words, int64_t lanes) {
  auto vector = VectorType::get({lanes}, draw.type), bits = VectorType::get({lanes}, b.getI1Type());
  int64_t limit = getKeptBelow(draw.keep);
  Value kept;
  if (limit >> 32) {
    kept = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(bits, true));
  } else {
    APInt bound(32, static_cast<uint64_t>(limit));
    Value most = arith::ConstantOp::create(
        b, b.loc,
        DenseElementsAttr::get(VectorType::get({lanes}, b.getI32Type()), ArrayRef<APInt>(bound)));
    kept = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ult, words, most);
  }
  if (draw.type.isInteger(1))
    return kept;
  Attribute factor = b.getFloatAttr(draw.type, draw.keep > 0 ? 1 / draw.keep : 0);
  Value scale = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(vector, factor));
  return b.select(kept, scale, b.zero(vector));
}

/// If `element` is x + k, and x is known to be a multiple of 4, returns x. Lane 0 is then at the
/// start of a block. Otherwise returns null.
static Value getAlignedBase(Value element, Value k) {
  auto add = element.getDefiningOp<arith::AddIOp>();
  if (!add || (add.getLhs() != k && add.getRhs() != k) || add.getLhs() == add.getRhs())
    return {};
  Value base = add.getLhs() == k ? add.getRhs() : add.getLhs();
  auto product = base.getDefiningOp<arith::MulIOp>();
  APInt factor;
  if (product && (matchPattern(product.getRhs(), m_ConstantInt(&factor)) ||
                  matchPattern(product.getLhs(), m_ConstantInt(&factor))))
    return factor.srem(4) == 0 ? base : Value();
  return matchPattern(base, m_ConstantInt(&factor)) && factor.srem(4) == 0 ? base : Value();
}

Value tile::getSharedBase(RandomElementOp op, Value k, const RegionDependence &dependences) {
  Value base = getAlignedBase(op.getElement(), k);
  bool isRow = base && (dependences.of(base) | Dependence::Row) != Dependence::Both;
  return isRow && getElementsPerBlock(getDraw(op)) == 4 ? base : Value();
}

RandomPlace ScoreFunction::emitPlace(CodeBuilder &b, RandomElementOp op, const Site &site,
                                     Values &known) const {
  return {toWords(b, emit(b, op.getSeed(), site, known)),
          toWords(b, emit(b, op.getStep(), site, known)),
          toWords(b, emit(b, op.getSample(), site, known))};
}

Value ScoreFunction::emitRandom(CodeBuilder &b, RandomElementOp op, const Site &site,
                                Values &known) const {
  RandomDraw draw = getDraw(op);
  RandomPlace place = emitPlace(b, op, site, known);
  auto isScalar = [&](Value v) { return !isa<VectorType>(v.getType()); };
  bool isOnePlace = isScalar(place.seed) && isScalar(place.step) && isScalar(place.sample);
  Value base = sharedBase(op);
  if (draw.kind == RandomKind::bernoulli && site.lanes && site.lanes % 4 == 0 && base &&
      isOnePlace) {
    int64_t blocks = site.lanes / 4;
    Value first = b.add(toWords(b, emit(b, base, site, known)), site.column);
    Value number = b.add(b.splat(b.div(first, 4), blocks), b.iota(blocks, b.getI64Type()));
    RandomPlace lanes{b.splat(place.seed, blocks), b.splat(place.step, blocks),
                      b.splat(place.sample, blocks)};
    return keepBelow(b, draw,
                     interleave(b, buildRandomBlock(b, b.loc, draw, lanes, number), site.lanes),
                     site.lanes);
  }
  Value element = toWords(b, emit(b, op.getElement(), site, known));
  if (isOnePlace && isScalar(element))
    return buildRandomElement(b, b.loc, draw, place, element);
  for (Value *value : {&place.seed, &place.step, &place.sample, &element})
    *value = splatTo(b, *value, site.lanes);
  return buildRandomElement(b, b.loc, draw, place, element);
}
