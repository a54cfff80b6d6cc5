//===- SharedDraws.cpp - Random numbers for several lanes -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block of the random generator has four words, for four consecutive keys of a query (see
// ScoreRandom.cpp). Ten rounds compute a block, and no lane holds four consecutive keys. A lane
// holds four elements of a piece of 16 x 8: two rows r and r + 8, two columns c and c + 1. Lanes
// whose elements are in the same blocks compute one block each, and exchange words:
//
//   keys in columns: two lanes hold four keys     keys in rows: four lanes hold four keys
//
//           k0 k1 | k2 k3                              q0 q1 | q0 + 8 q1 + 8
//     q     a0 a1 | a2 a3   lane 0 computes a     k0   a0 b0 | c0 d0      lane 0 computes a
//     q + 8 b0 b1 | b2 b3   lane 1 computes b     k1   a1 b1 | c1 d1      lane 1 computes b
//                                                 k2   a2 b2 | c2 d2      lane 2 computes c
//                                                 k3   a3 b3 | c3 d3      lane 3 computes d
//
// 1. Select the query and the first key of this lane's block.
// 2. Compute the four words of the block. Keep four bits: whether dropout keeps each element.
// 3. Repeat for all pieces of the tile, in a loop, and put the bits in the order of registers into
//    words of 32 bits.
// 4. Transpose: each exchange sends the words to the lane whose number differs in one bit, and
//    takes the half of its bits that this lane needs. Columns need one exchange, rows two.
//
// This happens before the products of the tile, so that the values of the generator, about 40, need
// no registers beside scores. An element takes a quarter of the rounds. The numbers are the same as
// those of single elements.
//
//===----------------------------------------------------------------------===//

#include "SharedDraws.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

bool attention::canShareDraw(RandomElementOp op, Value k, const RegionDependence &dependences) {
  auto isOfHead = [&](Value v) { return dependences.of(v) == Dependence::None; };
  return op.getKind() == RandomKind::bernoulli && getSharedBase(op, k, dependences) &&
         isOfHead(op.getSeed()) && isOfHead(op.getStep()) && isOfHead(op.getSample());
}

SharedDraws::SharedDraws(GpuBuilder &b, const FragmentFunction &function, Layout layout,
                         bool keysAreRows)
    : b(b), function(function), layout(layout), keysAreRows(keysAreRows) {
  if (function.empty())
    return;
  RegionDependence dependences(function.function.getRegion());
  for (auto op : function.function.getRegion().getOps<RandomElementOp>())
    if (canShareDraw(op, function.function.keyArgument(), dependences))
      draws.push_back(op);
}

/// Exchanges bits with the lane whose number is this lane's number xor `lanes`. Bit i of four is
/// for word i. The lane of the lower number keeps the bits i without the bit `distance`, and gets
/// those of the other lane as bits i + `distance`.
Value SharedDraws::exchange(Value word, unsigned distance, int64_t lanes) const {
  Value isUpper = b.isEqual(b.rem(b.div(b.lane(), lanes), 2), 1),
        low = b.i32(distance == 1 ? 0x55555555 : 0x33333333), other = b.exchange(word, lanes),
        by = b.i32(distance), all = b.i32(-1);
  Value fromUpper = arith::ShLIOp::create(b, b.loc, other, by),
        fromLower = arith::ShRUIOp::create(b, b.loc, other, by),
        own = b.select(isUpper, arith::XOrIOp::create(b, b.loc, low, all), low);
  Value rest = arith::XOrIOp::create(b, b.loc, own, all);
  return b.either(arith::AndIOp::create(b, b.loc, word, own),
                  arith::AndIOp::create(b, b.loc, b.select(isUpper, fromLower, fromUpper), rest));
}

/// Computes the block of `query` and of four keys from `key`. Returns four bits: bit i is set if
/// the element of key i is kept.
Value SharedDraws::keptOf(RandomElementOp op, const RandomPlace &place, Value query,
                          Value key) const {
  Site site = function.siteAt(query, key, {});
  FragmentFunction::Values values = function.unit;
  Value base = b.to64(function.function.emit(b, function.function.sharedBase(op), site, values)),
        number = b.div(b.add(base, b.to64(key)), 4), bits = b.i32(0);
  auto multiplyHigh = [&](Value x, Value y) {
    return callIntrinsic(b, b.loc, "llvm.nvvm.mulhi.ui", {x, y});
  };
  RandomDraw draw = getDraw(op);
  int64_t limit = getKeptBelow(draw.keep);
  for (auto [i, word] :
       llvm::enumerate(buildRandomBlock(b, b.loc, draw, place, number, multiplyHigh))) {
    Value bound = b.i32(static_cast<int32_t>(limit)), bit = b.i32(INT64_C(1) << i),
          kept = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ult, word, bound);
    bits = b.either(bits, limit >> wordBits ? bit : b.select(kept, bit, b.i32(0)));
  }
  return bits;
}

/// Returns the words of a random op. `query` and `key` are those of this lane's block in the first
/// piece. The last bits of the words are used.
SmallVector<Value> SharedDraws::emitWords(RandomElementOp op, Value query, Value key,
                                          int64_t queries) const {
  constexpr int64_t rows = 16, cols = 8, bitsOfPiece = 4;
  FragmentFunction::Values values = function.unit;
  RandomPlace place = function.function.emitPlace(b, op, function.siteAt(query, key, {}), values);
  // Otherwise LLVM keeps values of the first rounds in registers during the products of a tile.
  for (Value *value : {&place.seed, &place.step, &place.sample})
    *value = b.opaque(*value);
  int64_t perRow = layout.numCols() / cols, pieces = layout.numRows() / rows * perRow,
          together = pieces % 2 == 0 ? 2 : 1;
  SmallVector<Value> words(wordsOfDraw(), b.i32(0));
  words = b.loop(b.i32(0), b.i32(pieces), together, words, [&](Value first, ValueRange before) {
    Value bits = b.i32(0);
    for (int64_t i = 0; i < together; ++i) {
      Value piece = b.add(first, i), row = b.mul(b.div(piece, perRow), rows),
            col = b.mul(b.rem(piece, perRow), cols);
      Value ownQuery = b.min(b.add(query, keysAreRows ? col : row), b.i32(queries - 1)),
            ownKey = b.add(key, keysAreRows ? row : col);
      bits = b.either(bits, arith::ShLIOp::create(b, b.loc, keptOf(op, place, ownQuery, ownKey),
                                                  b.i32(bitsOfPiece * i)));
    }
    SmallVector<Value> after(before);
    for (auto [i, word] : llvm::enumerate(after)) {
      Value next = i + 1 < after.size() ? before[i + 1] : bits;
      word = LLVM::FshrOp::create(b, b.loc, b.getI32Type(), next, before[i],
                                  b.i32(bitsOfPiece * together));
    }
    return after;
  });
  for (Value &word : words)
    word = keysAreRows ? exchange(exchange(word, 1, 4), 2, 8) : exchange(word, 2, 1);
  return words;
}

SmallVector<Value> SharedDraws::emit(Value row, Value col, int64_t queries) const {
  if (draws.empty())
    return {};
  // `lane` is the number of this lane among those that share blocks.
  // LLVM would otherwise keep values of the lane in registers during the products.
  Value thread = b.opaque(b.thread()),
        lane = keysAreRows ? b.rem(b.div(thread, 4), 4) : b.rem(thread, 2), odd = b.rem(lane, 2);
  Value query = keysAreRows ? b.add(col, odd) : b.add(row, b.mul(odd, 8)),
        key = keysAreRows ? b.add(b.sub(row, lane), b.mul(b.div(lane, 2), 8))
                          : b.sub(col, b.mul(lane, 2));
  SmallVector<Value> words;
  for (RandomElementOp op : draws)
    llvm::append_range(words, emitWords(op, query, key, queries));
  return words;
}

FragmentFunction::Values SharedDraws::at(ArrayRef<Value> words, int64_t reg) const {
  int64_t count = wordsOfDraw(), bit = wordBits * count - layout.numRegisters() + reg;
  FragmentFunction::Values values;
  for (size_t i = 0; i < draws.size(); ++i) {
    RandomElementOp op = draws[i];
    // Otherwise LLVM tests the bits of all elements before a branch for masks.
    Value word = b.opaque(words[i * count + bit / wordBits]),
          own = arith::AndIOp::create(b, b.loc, word,
                                      b.i32(static_cast<int32_t>(1U << bit % wordBits)));
    Value kept = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, own, b.i32(0));
    values[op] = buildBernoulli(b, b.loc, getDraw(op), kept);
  }
  return values;
}
