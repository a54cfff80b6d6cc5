//===- KeyScores.cpp - Gradients of scores with keys as rows ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KeyScores.h"
#include "Codegen/Gpu/Attention/Functions/SharedDraws.h"
#include "fsdp/Analysis/Gpu/AttentionOrder.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

KeyScores::KeyScores(GpuBuilder &b, const Sm80Problem &problem, int64_t blockKeys,
                     int64_t blockQueries, Layout layout, bool wantsK, bool wantsQ, bool tables)
    : blockKeys(blockKeys), blockQueries(blockQueries), layout(layout), b(b), shape(problem.shape),
      op(problem.op), captures(problem.captures), tables(tables),
      ranges(AttentionTiles(op).getRowTiles(blockQueries)),
      checksKeys((wantsQ || tables) && shape.cols % blockKeys != 0) {
  if (wantsK)
    perColumn = captures.of(Dependence::Column);
  if (wantsQ) {
    perHead = captures.of(Dependence::None);
    perRow = captures.of(Dependence::Row);
  }
  if (wantsQ || tables)
    perElement = captures.of(Dependence::Both);
}

void KeyScores::placeBlock(Value number, Value block) {
  firstKey = b.mul(block, blockKeys);
  batch = b.to64(b.div(number, shape.kvHeads));
  kvHead = b.to64(b.rem(number, shape.kvHeads));
}

void KeyScores::placeLane(Value warp) {
  numbers.clear();
  Value first = b.add(b.add(firstKey, b.mul(warp, layout.numRows())), b.rowOfLane());
  for (int64_t i = 0; i < layout.rowsOfLane(); ++i)
    numbers.push_back(b.add(first, 8 * i));
}

BlockSequence KeyScores::blocksOf(Value firstKey) const {
  Value last = b.min(b.add(firstKey, blockKeys), b.i32(shape.cols));
  return BlockSequence(b, ranges, functions->mask, head, firstKey, last);
}

Value KeyScores::blockAt(Value turn) {
  if (!backwards)
    return blocks->at(turn);
  Value last = b.sub(blocks->count, b.i32(1));
  return blocks->at(b.select(backwards, b.sub(last, turn), turn));
}

bool KeyScores::isEverFree() const { return mayVisitFree(ranges, shape.cols, blockKeys); }

void KeyScores::placeHead(Value group) {
  head = {batch, b.add(b.mul(kvHead, shape.group), b.to64(group)), kvHead};
  functions.emplace(b, op, shape, head);
  blocks.emplace(blocksOf(firstKey));
  keys.clear();
  for (Value key : numbers)
    keys.push_back(functions->key(b.min(key, b.i32(shape.cols - 1)),
                                  checksKeys ? b.isLower(key, shape.cols) : Value()));
}

Query KeyScores::queryAt(Value firstRow, int64_t at, Value lse, Value delta, bool masked) {
  Value row = b.add(b.add(firstRow, b.colOfLane()), at);
  bool checks = masked && !wholeRows();
  return functions->query(checks ? b.min(row, b.i32(shape.rows - 1)) : row,
                          checks ? b.isLower(row, shape.rows) : Value(), lse, delta);
}

void KeyScores::loadScales() {
  scales.clear();
  for (const Sm80Contribution *c : perElement)
    scales.push_back(captures.scaleOf(b, *c));
}

/// Adds the contributions of an element of row `row` of this lane to the sums of emptyColumns().
void KeyScores::addToSums(int64_t row, ValueAt at, Value keep, MutableArrayRef<Value> sums) {
  for (auto [i, c] : llvm::enumerate(perColumn)) {
    Value &sum = sums[i * layout.rowsOfLane() + row];
    sum = b.addf(sum, captures.valueOf(b, *c, at, keep));
  }
  sums = sums.drop_front(numColumns());
  for (auto [i, c] : llvm::enumerate(perHead))
    sums[i] = b.addf(sums[i], captures.valueOf(b, *c, at, keep));
  sums = sums.drop_front(perHead.size());
  for (auto [i, c] : llvm::enumerate(perElement))
    sums[i] =
        largerOrNan(b, sums[i], math::AbsFOp::create(b, b.loc, captures.valueOf(b, *c, at, keep)));
}

/// Adds the contributions of an element in column `at` of the tile to the sums by query.
void KeyScores::addToRows(int64_t at, ValueAt valueAt, Value keep, MutableArrayRef<Value> sums) {
  int64_t own = at % rowQueries / 8 * 2 + at % 2;
  for (auto [i, c] : llvm::enumerate(perRow)) {
    Value &sum = sums[i * sumsOfRow + own], value = captures.valueOf(b, *c, valueAt, keep);
    sum = sum ? b.addf(sum, value) : value;
  }
}

SmallVector<Value> KeyScores::draw(Value firstRow) {
  SharedDraws draws(b, functions->weight, layout, /*keysAreRows=*/true);
  return draws.emit(numbers[0], b.add(firstRow, b.colOfLane()), shape.rows);
}

SmallVector<Value> KeyScores::emit(ArrayRef<Value> s, ArrayRef<Value> dp, Value firstRow, Norm lse,
                                   Norm delta, bool masked, ArrayRef<Value> drawn,
                                   ArrayRef<Value> columns, AfterQueries after) {
  // Registers of 16 queries, or of 8 if sums of contributions are live with random numbers.
  const int64_t perQueries = mixes() && !columns.empty() ? 4 : 8;
  int64_t count = layout.numRegisters();
  // Fragments of mma.sync, which are not packed, leave fewer registers than those of wgmma. f32 is
  // multiplied with mma.sync.
  bool wantsK = !dp.empty(), isMma = !packed, isF32 = op.getQ().getType().getElementType().isF32();
  bool sumsElements = perHead.size() + perRow.size() + perElement.size(),
       divides =
           after && (isF32 || mixes() || !isEverFree() || (isMma ? !arePlain() : sumsElements));
  // If LLVM knows the number of the block, it computes values of all queries before the loops over
  // heads and blocks. These values do not fit the registers. LLVM can know the number if all
  // queries are in one block, or in few blocks without masks, whose loop it unrolls, or if only
  // some blocks have masked elements, because there may be one of them. With weight_mod, LLVM
  // computes random numbers before the loops in any case.
  int64_t fewBlocks = isMma && !isEverMasked() ? 4 : 1;
  if (isF32 || mixes() || shape.rows <= fewBlocks * blockQueries ||
      (isEverMasked() && isEverFree()))
    firstRow = b.opaque(firstRow);
  SmallVector<std::optional<Query>> queries(layout.numCols());
  SmallVector<Value> all(wantsK ? 2 * count : count), words(all.size() / 2), sums(columns), rows;
  SharedDraws draws(b, functions->weight, layout, /*keysAreRows=*/true);
  for (int64_t reg = 0; reg < count; ++reg) {
    int64_t at = layout.place(reg).second, row = layout.rowOf(reg);
    if (!queries[at])
      queries[at] = queryAt(firstRow, at, lse(at), delta(at), masked);
    rows.resize(perRow.size() * sumsOfRow);
    auto contribute = [&](ValueAt valueAt, const Site &site, FragmentFunction::Values &values,
                          Value keep) {
      if (tables)
        return captures.addToTables(b, functions->grad.function, scales, valueAt, site, values,
                                    keep);
      addToSums(row, valueAt, keep, sums);
      addToRows(at, valueAt, keep, rows);
    };
    auto [mixed, ds] = functions->emit(s[reg], wantsK ? dp[reg] : Value(), *queries[at], keys[row],
                                       masked, draws.at(drawn, reg), contribute);
    all[reg] = mixed;
    if (wantsK)
      all[count + reg] = ds;
    if (packed && reg % 2 == 1)
      for (size_t i = reg; i < all.size(); i += count)
        words[i / 2] = b.pack(all[i - 1], all[i], packed);
    if (divides && (reg + 1) % perQueries == 0) {
      if (after((reg + 1) / 4 * 8, rows))
        b.endBlock(/*productsRun=*/false, sums);
      if ((reg + 1) / 4 * 8 % rowQueries == 0)
        rows.clear();
    }
  }
  if (packed)
    all = words;
  llvm::append_range(all, sums);
  return all;
}

SmallVector<Value> KeyScores::weigh(ArrayRef<Value> s, Value firstRow, Norm lse, bool masked) {
  SmallVector<std::optional<Query>> queries(layout.numCols());
  SmallVector<Value> p;
  for (auto [reg, score] : llvm::enumerate(s)) {
    int64_t at = layout.place(reg).second;
    if (!queries[at])
      queries[at] = queryAt(firstRow, at, lse(at), Value(), masked);
    p.push_back(functions->weigh(score, *queries[at], keys[layout.rowOf(reg)], masked));
  }
  return p;
}

SmallVector<Value> KeyScores::differentiate(ArrayRef<Value> p, ArrayRef<Value> dp, Norm delta) {
  SmallVector<Value> deltas(layout.numCols()), ds;
  for (auto [reg, weight] : llvm::enumerate(p)) {
    Value &own = deltas[layout.place(reg).second];
    if (!own)
      own = delta(layout.place(reg).second);
    ds.push_back(b.mulf(weight, b.subf(dp[reg], own)));
  }
  return ds;
}

void KeyScores::storeOthers(ArrayRef<Value> others, Value warp, int64_t warps) {
  Value isFirst = b.isEqual(b.lane(), 0),
        block = b.add(b.mul(headNumber(), keyBlocks()), b.to64(b.div(firstKey, blockKeys)));
  for (auto [i, c] : llvm::enumerate(perHead)) {
    Value sum = b.overWarp(others[i], [&](Value x, Value y) { return b.addf(x, y); });
    b.when(isFirst,
           [&, c = c] { captures.storeSum(b, *c, b.add(b.mul(block, warps), b.to64(warp)), sum); });
  }
  for (auto [c, own] : llvm::zip_equal(llvm::concat<const Sm80Contribution *>(perElement, perRow),
                                       others.drop_front(perHead.size()))) {
    Value most = b.overWarp(own, [&](Value x, Value y) { return largerOrNan(b, x, y); });
    b.when(isFirst, [&, c = c] { captures.noteLargest(b, *c, most); });
  }
}

Value KeyScores::storeRow(int64_t number, Value query, Value sum, Value largest) {
  const Sm80Contribution &c = *perRow[number];
  Value keyBlock = b.to64(b.div(firstKey, blockKeys)),
        sums = b.add(b.mul(headNumber(), keyBlocks()), keyBlock),
        index = b.add(b.mul(sums, shape.rows), b.to64(query));
  auto store = [&] { captures.storePart(b, c, index, sum); };
  wholeRows() ? store() : b.when(b.isLower(query, shape.rows), store);
  return largerOrNan(b, largest, math::AbsFOp::create(b, b.loc, sum));
}

void KeyScores::storeColumns(ArrayRef<Value> columns) {
  int64_t rows = layout.rowsOfLane();
  Value isFirst = b.isEqual(b.rem(b.lane(), 4), 0), number = b.mul(headNumber(), shape.cols);
  for (auto [i, c] : llvm::enumerate(perColumn))
    for (int64_t row = 0; row < rows; ++row) {
      Value sum =
          b.overQuad(columns[i * rows + row], [&](Value x, Value y) { return b.addf(x, y); });
      b.when(b.both(isFirst, b.isLower(numbers[row], shape.cols)),
             [&, c = c] { captures.storeSum(b, *c, b.add(number, b.to64(numbers[row])), sum); });
    }
}
