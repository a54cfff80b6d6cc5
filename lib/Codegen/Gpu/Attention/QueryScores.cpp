//===- QueryScores.cpp - Gradients of scores with queries as rows --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "QueryScores.h"
#include "Codegen/Gpu/Attention/Functions/SharedDraws.h"
#include "fsdp/Analysis/Gpu/AttentionOrder.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

QueryScores::QueryScores(GpuBuilder &b, const Sm80Problem &problem, int64_t blockQueries,
                         int64_t blockKeys, Layout layout, bool tables)
    : blockQueries(blockQueries), blockKeys(blockKeys), layout(layout), b(b), shape(problem.shape),
      op(problem.op), captures(problem.captures), tables(tables),
      perElement(captures.of(Dependence::Both)), ranges(AttentionTiles(op).getKeyTiles(blockKeys)) {
  if (tables)
    return;
  perHead = captures.of(Dependence::None);
  perRow = captures.of(Dependence::Row);
}

bool QueryScores::isEverFree() const { return mayVisitFree(ranges, shape.rows, blockQueries); }

void QueryScores::placeBlock(Value number, Value block) {
  this->number = number;
  Value own = b.rem(number, shape.heads);
  firstQuery = b.mul(block, blockQueries);
  head = {b.to64(b.div(number, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  functions.emplace(b, op, shape, head);
  Value last = b.min(b.add(firstQuery, blockQueries), b.i32(shape.rows));
  blocks.emplace(b, ranges, functions->mask, head, firstQuery, last);
}

void QueryScores::placeLane(Value warp, Norms norms) {
  Value first = b.add(b.add(firstQuery, b.mul(warp, layout.numRows())), b.rowOfLane());
  for (int64_t i = 0; i < layout.rowsOfLane(); ++i) {
    Value row = b.add(first, 8 * i), exists = b.isLower(row, shape.rows),
          existing = b.min(row, b.i32(shape.rows - 1));
    auto [lse, delta] = norms(row, existing, exists);
    numbers.push_back(row);
    exist.push_back(exists);
    queries.push_back(functions->query(existing, Value(), lse, delta));
  }
  if (tables)
    for (const Sm80Contribution *c : perElement)
      scales.push_back(captures.scaleOf(b, *c));
}

int64_t QueryScores::numSums() const {
  return tables ? 0 : perHead.size() + perRow.size() * layout.rowsOfLane() + perElement.size();
}

/// Adds the contributions of an element of row `row` of this lane to tables or to sums.
void QueryScores::contribute(int64_t row, ValueAt at, const Site &site,
                             FragmentFunction::Values &values, Value keep,
                             MutableArrayRef<Value> sums) {
  if (shape.rows % blockQueries)
    keep = keep ? b.both(keep, exist[row]) : exist[row];
  if (tables)
    return captures.addToTables(b, functions->grad.function, scales, at, site, values, keep);
  for (auto [i, c] : llvm::enumerate(perHead))
    sums[i] = b.addf(sums[i], captures.valueOf(b, *c, at, keep));
  sums = sums.drop_front(perHead.size());
  for (auto [i, c] : llvm::enumerate(perRow)) {
    Value &sum = sums[i * layout.rowsOfLane() + row];
    sum = b.addf(sum, captures.valueOf(b, *c, at, keep));
  }
  for (auto [c, largest] :
       llvm::zip_equal(perElement, sums.drop_front(perRow.size() * layout.rowsOfLane())))
    largest =
        largerOrNan(b, largest, math::AbsFOp::create(b, b.loc, captures.valueOf(b, *c, at, keep)));
}

SmallVector<Value> QueryScores::draw(Value firstKey) const {
  SharedDraws draws(b, functions->weight, layout, /*keysAreRows=*/false);
  return draws.emit(queries[0].number, b.add(firstKey, b.colOfLane()), shape.rows);
}

SmallVector<Value> QueryScores::emit(ArrayRef<Value> s, ArrayRef<Value> dp, Value firstKey,
                                     bool masked, ArrayRef<Value> drawn, ArrayRef<Value> sums) {
  if (masked || !functions->weight.empty()) // as in KeyScores::emit()
    firstKey = b.opaque(firstKey);
  Value own = b.add(firstKey, b.colOfLane());
  bool checks = masked && !wholeCols();
  SmallVector<std::optional<Key>> keys(layout.numCols());
  SharedDraws draws(b, functions->weight, layout, /*keysAreRows=*/false);
  SmallVector<Value> ds, next(sums);
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    int64_t at = layout.place(reg).second, row = layout.rowOf(reg);
    if (!keys[at]) {
      Value col = b.add(own, at);
      keys[at] = functions->key(checks ? b.min(col, b.i32(shape.cols - 1)) : col,
                                checks ? b.isLower(col, shape.cols) : Value());
    }
    auto also = [&](ValueAt valueAt, const Site &site, FragmentFunction::Values &values,
                    Value keep) { contribute(row, valueAt, site, values, keep, next); };
    ds.push_back(
        functions
            ->emit(s[reg], dp[reg], queries[row], *keys[at], masked, draws.at(drawn, reg), also)
            .second);
    // Otherwise ptxas computes contributions after dS, and keeps the values that they need. If
    // contributions are only summed by query, kernels take fewer registers without these ends.
    constexpr int64_t perKeys = 8; // registers of 16 keys
    if (perHead.size() + perElement.size() && (reg + 1) % perKeys == 0)
      b.endBlock(/*productsRun=*/false, next);
  }
  if (tables)
    return {};
  llvm::append_range(ds, next);
  return ds;
}

void QueryScores::storeSums(ArrayRef<Value> sums, Value warp, int64_t warps) {
  auto add = [&](Value x, Value y) { return b.addf(x, y); };
  Value isFirst = b.isEqual(b.lane(), 0);
  int64_t rows = layout.rowsOfLane(), rowBlocks = llvm::divideCeil(shape.rows, blockQueries);
  for (auto [i, c] : llvm::enumerate(perHead)) {
    Value sum = b.overWarp(sums[i], add),
          block = b.add(b.mul(number, rowBlocks), b.div(firstQuery, blockQueries)),
          index = b.add(b.mul(block, warps), warp);
    b.when(isFirst, [&, c = c] { captures.storeSum(b, *c, index, sum); });
  }
  sums = sums.drop_front(perHead.size());
  Value isFirstOfRow = b.isEqual(b.rem(b.lane(), 4), 0), first = b.mul(b.to64(number), shape.rows);
  for (auto [i, c] : llvm::enumerate(perRow))
    for (int64_t row = 0; row < rows; ++row) {
      Value sum = b.overQuad(sums[i * rows + row], add);
      b.when(b.both(isFirstOfRow, exist[row]),
             [&, c = c] { captures.storeSum(b, *c, b.add(first, b.to64(numbers[row])), sum); });
    }
  for (auto [c, own] : llvm::zip_equal(perElement, sums.drop_front(perRow.size() * rows))) {
    Value most = b.overWarp(own, [&](Value x, Value y) { return largerOrNan(b, x, y); });
    b.when(isFirst, [&, c = c] { captures.noteLargest(b, *c, most); });
  }
}
