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
// 2. Compute the four words of the block.
// 3. Transpose: each exchange sends, to the lane whose number differs in one bit, the half of the
//    words that this lane does not need. Columns need one exchange of two words, rows two.
//
// An element takes a quarter of the rounds. The numbers are the same as those of single elements.
//
//===----------------------------------------------------------------------===//

#include "SharedDraws.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

bool attention::canShareDraw(RandomElementOp op, Value k, const RegionDependence &dependences) {
  auto isOfHead = [&](Value v) { return dependences.of(v) == Dependence::None; };
  return getSharedBase(op, k, dependences) && isOfHead(op.getSeed()) && isOfHead(op.getStep()) &&
         isOfHead(op.getSample());
}

SharedDraws::SharedDraws(GpuBuilder &b, const FragmentFunction &function, bool keysAreRows)
    : b(b), function(function), keysAreRows(keysAreRows) {
  if (function.empty())
    return;
  RegionDependence dependences(function.function.getRegion());
  for (auto op : function.function.getRegion().getOps<RandomElementOp>())
    if (canShareDraw(op, function.function.keyArgument(), dependences)) {
      Values values = function.unit;
      RandomPlace place =
          function.function.emitPlace(b, op, function.siteAt(b.i32(0), b.i32(0), {}), values);
      // Otherwise LLVM keeps values of the first rounds in registers during the products of a tile.
      place.seed = b.opaque(place.seed);
      draws.push_back({op, place});
    }
}

/// Exchanges words with the lane whose number is this lane's number xor `lanes`. The lane of the
/// lower number keeps the words i and gets those of the other lane as words i + `distance`.
void SharedDraws::exchange(std::array<Value, 4> &words, unsigned distance, int64_t lanes) const {
  Value isUpper = b.isEqual(b.rem(b.div(b.lane(), lanes), 2), 1);
  for (unsigned i = 0; i < words.size(); ++i) {
    if (i & distance)
      continue;
    Value &low = words[i], &high = words[i + distance];
    Value other = b.exchange(b.select(isUpper, low, high), lanes);
    low = b.select(isUpper, other, low);
    high = b.select(isUpper, high, other);
  }
}

/// Returns the words of the four registers of a piece.
std::array<Value, 4> SharedDraws::emitWords(const Draw &draw, Value query, Value otherQuery,
                                            Value key) const {
  // `lane` is the number of this lane among those that share blocks. `first` is the first key of
  // the block that this lane computes.
  Value lane = keysAreRows ? b.rem(b.rowOfLane(), 4) : b.rem(b.lane(), 2);
  Value isOther = b.isEqual(b.rem(lane, 2), 1);
  Value first = b.sub(key, keysAreRows ? lane : b.mul(lane, 2));
  if (keysAreRows)
    first = b.add(first, b.mul(b.div(lane, 2), 8));
  Site site = function.siteAt(b.select(isOther, otherQuery, query), first, {});
  Values values = function.unit;
  Value base =
      b.to64(function.function.emit(b, function.function.sharedBase(draw.op), site, values));
  Value number = b.div(b.add(base, b.to64(first)), 4);
  std::array<Value, 4> words = buildRandomBlock(b, b.loc, getDraw(draw.op), draw.place, number);
  for (Value &word : words)
    word = b.to32(word);
  if (keysAreRows) {
    exchange(words, 1, 4);
    exchange(words, 2, 8);
  } else {
    exchange(words, 2, 1);
  }
  return words;
}

SharedDraws::Piece SharedDraws::emit(Value query, Value otherQuery, Value key) const {
  Piece piece;
  for (const Draw &draw : draws)
    for (auto [values, word] : llvm::zip_equal(piece, emitWords(draw, query, otherQuery, key))) {
      Value wide = arith::ExtUIOp::create(b, b.loc, b.getI64Type(), word);
      values[draw.op] = buildRandomNumber(b, b.loc, getDraw(draw.op), wide);
    }
  return piece;
}
