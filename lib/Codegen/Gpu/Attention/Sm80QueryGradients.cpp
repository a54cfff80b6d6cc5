//===- Sm80QueryGradients.cpp - dQ with mma.sync ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits the first backward kernel. A block of threads owns a block of queries of one head:
//
//   δ = Σ O·dO for each query; δ and lse (inf without keys) to scratch;
//   fetch Q, dO, K[0], V[0];
//   for each block i of keys                   unless it is entirely masked
//     wait; barrier; fetch K[i + 1], V[i + 1];
//     S = Q · Kᵀ;  dP = dO · Vᵀ;  dS: Functions/;
//     dQ += dS · K;
//   scale · dQ;
//
// The kernel also sums contributions to captured tensors if the indices of the contributions do not
// depend on the key. If the indices of contributions depend on both query and key, this kernel only
// records the largest magnitude of these contributions. A second kernel with the same loop then
// adds them to tables (Sm80Captures.cpp).
//
// Each row of dQ is summed by only one block of threads, so the bits are reproducible. The
// disadvantage is that S and dP are computed both here and in Sm80KeyGradients.cpp, so that there
// are seven products instead of five.
//
//===----------------------------------------------------------------------===//

#include "Sm80Backward.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
class QueryGradients {
public:
  QueryGradients(Sm80Tiles &b, const Sm80Problem &problem, bool tables)
      : b(b), plan(problem.plan), config(plan.queries), shape(problem.shape), op(problem.op),
        kernel(problem.kernel), captures(problem.captures), tables(tables),
        perHead(captures.of(Dependence::None)), perRow(captures.of(Dependence::Row)),
        perElement(captures.of(Dependence::Both)),
        ranges(AttentionTiles(op).getKeyTiles(config.blockCols)),
        scoreLayout(Layout::mmaSums(config.warpRows(), config.blockCols)),
        resultLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.dim))) {}
  void emit();

private:
  bool wholeCols() const { return shape.cols % config.blockCols == 0; }
  void placeUnit();
  void placeTiles();
  void placeQueries();
  std::pair<Value, Value> normOf(Value row, Value exists);
  void fetch(Value turn);
  /// Sums of this lane's contributions over all elements (`head`) and over each row (`row`), and
  /// the largest magnitudes of this lane's contributions.
  struct Sums {
    SmallVector<Value> head, row, largest;
  };
  void contribute(Sums &sums, int64_t row, ValueAt at, const Site &site,
                  FragmentFunction::Values &values, Value keep);
  /// Returns the registers of dS, followed by the updated `sums`.
  SmallVector<Value> gradientOf(const Fragment &s, const Fragment &dp, Value firstCol, bool masked,
                                ArrayRef<Value> drawn, Sums sums);
  SmallVector<Value> processBlock(Value number, ValueRange state);
  Sums sumsOf(ValueRange values) const;
  static SmallVector<Value> flat(ArrayRef<Value> registers, const Sums &sums);
  void storeSums(const Sums &sums);

  Sm80Tiles &b;
  const Sm80Backward &plan;
  const Sm80Config config;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  const Sm80Captures &captures;
  bool tables;
  SmallVector<const Sm80Contribution *> perHead, perRow, perElement;
  SmallVector<TileRange> ranges;
  Layout scoreLayout, resultLayout;

  Head head;
  Value firstRow;
  GlobalRows qRows, doutRows, kRows, vRows;
  SharedTile qTile, doutTile, kTile, vTile;
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;
  SmallVector<Value> numbers, exist;
  SmallVector<Query> queries;
};
} // namespace

void QueryGradients::placeUnit() {
  auto [number, rowBlock] = plan.queryOrder.tileAt(b, b.block(), b.i32(0));
  Value own = b.rem(number, shape.heads);
  firstRow = b.mul(rowBlock, config.blockRows());
  head = {b.to64(b.div(number, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  auto slab = [&](Value tensor, Value ownHead) {
    return slabOf(b, headTensorOf(b, kernel, tensor), head.batch, ownHead);
  };
  qRows = slab(op.getQ(), head.head);
  doutRows = slab(op.getDout(), head.head);
  kRows = slab(op.getK(), head.kvHead);
  vRows = slab(op.getV(), head.kvHead);
}

void QueryGradients::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim),
          valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
  int64_t dout = config.blockRows() * pitch, k = dout + config.blockRows() * valuePitch,
          v = k + 2 * config.blockCols * pitch;
  qTile = {b.sharedAt(0), pitch};
  doutTile = {b.sharedAt(dout), valuePitch};
  kTile = {b.sharedAt(k), pitch};
  vTile = {b.sharedAt(v), valuePitch};
}

/// Returns lse · log2(e) and δ of a query. The four lanes that hold the query's row compute δ
/// together.
std::pair<Value, Value> QueryGradients::normOf(Value row, Value exists) {
  Value number = b.add(b.mul(head.batch, shape.heads), head.head);
  Pointer lseOfHead = b.shift(b.binding(op.getLse()), b.mul(number, shape.rows));
  Value lse = b.load(b.getF32Type(), b.shift(lseOfHead, b.to64(row)));
  Value isEmpty =
      arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, lse, b.number(-infinity));
  GlobalRows oRows = slabOf(b, headTensorOf(b, kernel, op.getO()), head.batch, head.head);
  Value delta = b.number(0), own = b.rem(b.lane(), 4);
  for (int64_t col = 0; col < shape.valueDim; col += 4) {
    Value at = b.add(own, col),
          inRow = col + 4 > shape.valueDim ? b.isLower(at, shape.valueDim) : Value();
    if (inRow)
      at = b.select(inRow, at, b.i32(0));
    auto of = [&](const GlobalRows &rows) {
      Value place = b.add(b.mul(b.to64(row), rows.stride), b.to64(at));
      return b.convertFloat(b.load(rows.place.type, b.shift(rows.place, place)), b.getF32Type());
    };
    Value o = of(oRows);
    delta = b.fma(inRow ? b.select(inRow, o, b.number(0)) : o, of(doutRows), delta);
  }
  delta = b.overQuad(delta, [&](Value x, Value y) { return b.addf(x, y); });
  isEmpty = b.either(isEmpty, arith::XOrIOp::create(b, b.loc, exists, b.boolean(true)));
  return {b.select(isEmpty, b.number(infinity), b.mulf(lse, b.number(log2e))),
          b.select(exists, delta, b.number(0))};
}

void QueryGradients::placeQueries() {
  Value first = b.add(b.add(firstRow, b.mul(b.warp(), config.warpRows())), b.rowOfLane());
  Value number = b.add(b.mul(head.batch, shape.heads), head.head),
        isFirst = b.isEqual(b.rem(b.lane(), 4), 0);
  Pointer scratch = b.scratch(b.getF32Type());
  for (int64_t i = 0; i < scoreLayout.rowsOfLane(); ++i) {
    Value row = b.add(first, 8 * i), exists = b.isLower(row, shape.rows),
          existing = b.min(row, b.i32(shape.rows - 1));
    auto [lse, delta] = normOf(existing, exists);
    numbers.push_back(row);
    queries.push_back(functions->query(existing, Value(), lse, delta));
    Value place = b.add(b.mul(number, plan.rowStride), b.to64(row));
    exist.push_back(exists);
    // If `tables` is true, an earlier kernel has already stored lse and δ.
    if (tables)
      continue;
    b.when(b.both(isFirst, b.isLower(row, plan.rowStride)), [&, lse = lse, delta = delta] {
      b.store(lse, b.shift(scratch, b.add(place, plan.lse)));
      b.store(delta, b.shift(scratch, b.add(place, plan.delta)));
    });
  }
}

void QueryGradients::fetch(Value turn) {
  Value first = b.mul(blocks->at(turn), config.blockCols);
  b.copyAsync(stageOf(b, kTile, config.blockCols, turn), kRows, first, config.blockCols,
              wholeCols());
  b.copyAsync(stageOf(b, vTile, config.blockCols, turn), vRows, first, config.blockCols,
              wholeCols());
}

QueryGradients::Sums QueryGradients::sumsOf(ValueRange values) const {
  int64_t rows = scoreLayout.rowsOfLane();
  Sums sums;
  if (tables)
    return sums;
  sums.head = llvm::to_vector(values.take_front(perHead.size()));
  sums.row = llvm::to_vector(values.slice(perHead.size(), perRow.size() * rows));
  sums.largest = llvm::to_vector(values.take_back(perElement.size()));
  return sums;
}

SmallVector<Value> QueryGradients::flat(ArrayRef<Value> registers, const Sums &sums) {
  SmallVector<Value> all(registers);
  llvm::append_range(all, sums.head);
  llvm::append_range(all, sums.row);
  llvm::append_range(all, sums.largest);
  return all;
}

/// Adds the contributions of an element that is in row `row` of this lane.
void QueryGradients::contribute(Sums &sums, int64_t row, ValueAt at, const Site &site,
                                FragmentFunction::Values &values, Value keep) {
  if (shape.rows % config.blockRows())
    keep = keep ? b.both(keep, exist[row]) : exist[row];
  for (auto [i, c] : llvm::enumerate(perElement)) {
    Value value = captures.valueOf(b, *c, at, keep);
    ContributeOp op = c->op;
    if (!tables) {
      Value size = math::AbsFOp::create(b, b.loc, value);
      // maximumf propagates NaN.
      sums.largest[i] = arith::MaximumFOp::create(b, b.loc, sums.largest[i], size);
      continue;
    }
    auto type = cast<RankedTensorType>(op.getCapture().getType());
    Value position = functions->grad.function.emitPosition(b, type, op.getIndices(), site, values);
    auto add = [&, c = c] { captures.addToTable(b, *c, position, value, captures.scaleOf(b, *c)); };
    keep ? b.when(keep, add) : add();
  }
  if (tables)
    return;
  for (auto [i, c] : llvm::enumerate(perHead))
    sums.head[i] = b.addf(sums.head[i], captures.valueOf(b, *c, at, keep));
  for (auto [i, c] : llvm::enumerate(perRow)) {
    Value &sum = sums.row[i * scoreLayout.rowsOfLane() + row];
    sum = b.addf(sum, captures.valueOf(b, *c, at, keep));
  }
}

/// Reduces the sums of this lane over a warp and over rows, and stores the results in scratch.
void QueryGradients::storeSums(const Sums &sums) {
  auto add = [&](Value x, Value y) { return b.addf(x, y); };
  for (auto [i, c] : llvm::enumerate(perHead)) {
    Value sum = b.overWarp(sums.head[i], add);
    int64_t rowBlocks = llvm::divideCeil(shape.rows, config.blockRows());
    Value unit = b.add(b.mul(b.to32(b.add(b.mul(head.batch, shape.heads), head.head)), rowBlocks),
                       b.div(firstRow, config.blockRows()));
    Value index = b.add(b.mul(unit, config.warps), b.warp());
    b.when(b.isEqual(b.lane(), 0), [&, c = c] { captures.storeSum(b, *c, index, sum); });
  }
  int64_t rows = scoreLayout.rowsOfLane();
  Value isFirst = b.isEqual(b.rem(b.lane(), 4), 0),
        number = b.mul(b.add(b.mul(head.batch, shape.heads), head.head), shape.rows);
  for (auto [i, c] : llvm::enumerate(perRow))
    for (int64_t row = 0; row < rows; ++row) {
      Value sum = b.overQuad(sums.row[i * rows + row], add);
      b.when(b.both(isFirst, exist[row]),
             [&, c = c] { captures.storeSum(b, *c, b.add(number, b.to64(numbers[row])), sum); });
    }
  for (auto [i, c] : llvm::enumerate(perElement)) {
    Value most = b.overWarp(sums.largest[i], [&](Value x, Value y) -> Value {
      return arith::MaximumFOp::create(b, b.loc, x, y);
    });
    b.when(b.isEqual(b.lane(), 0), [&, c = c] { captures.noteLargest(b, *c, most); });
  }
}

SmallVector<Value> QueryGradients::gradientOf(const Fragment &s, const Fragment &dp, Value firstCol,
                                              bool masked, ArrayRef<Value> drawn, Sums sums) {
  auto also = [&](int64_t row, ValueAt at, const Site &site, FragmentFunction::Values &values,
                  Value keep) { contribute(sums, row, at, site, values, keep); };
  SmallVector<Value> ds =
      functions->emitRows(s, dp.registers, queries, firstCol, shape.cols, masked, drawn, also);
  return flat(ds, sums);
}

SmallVector<Value> QueryGradients::processBlock(Value number, ValueRange state) {
  int64_t results = tables ? 0 : resultLayout.numRegisters();
  Fragment dq{resultLayout, llvm::to_vector(state.take_front(results))};
  Sums sums = sumsOf(state.drop_front(results));
  Value block = blocks->at(number), firstCol = b.mul(block, config.blockCols),
        next = b.add(number, 1);
  b.waitForCopies(0);
  b.barrier();
  b.when(b.isLess(next, blocks->count), [&] { fetch(next); });
  b.commit();
  SharedTile keys = stageOf(b, kTile, config.blockCols, number),
             values = stageOf(b, vTile, config.blockCols, number);
  SmallVector<Value> drawn = functions->drawRows(scoreLayout, queries, firstCol), all;
  Fragment none = b.fill(scoreLayout, b.number(0));
  Fragment s = b.multiplyRows(none, rowsOfWarp(b, qTile, config.warpRows()), keys,
                              Sm80Tiles::paddedCols(shape.dim));
  Fragment dp = b.multiplyRows(none, rowsOfWarp(b, doutTile, config.warpRows()), values,
                               Sm80Tiles::paddedCols(shape.valueDim));
  if (!drawn.empty())
    b.endBlock(); // otherwise factors of products take registers that values of functions then lack
  auto emit = [&](bool masked) { return gradientOf(s, dp, firstCol, masked, drawn, sums); };
  if (op.getMaskMod().empty() && wholeCols()) {
    all = emit(false);
  } else {
    SmallVector<Type> types(flat(s.registers, sums).size(), b.getF32Type());
    all = b.choose(
        blocks->isFree(block), types, [&] { return emit(false); }, [&] { return emit(true); });
  }
  sums = sumsOf(ValueRange(all).drop_front(s.registers.size()));
  if (tables)
    return {};
  dq = b.multiplyAcross(
      std::move(dq), {scoreLayout, llvm::to_vector(ArrayRef(all).take_front(s.registers.size()))},
      keys);
  return flat(dq.registers, sums);
}

void QueryGradients::emit() {
  placeUnit();
  placeTiles();
  functions.emplace(b, op, shape, head);
  Value zero = b.i32(0), last = b.min(b.add(firstRow, config.blockRows()), b.i32(shape.rows));
  blocks.emplace(b, ranges, functions->mask, head, firstRow, last);
  b.when(b.isLess(zero, blocks->count), [&] {
    bool whole = shape.rows % config.blockRows() == 0;
    b.copyAsync(qTile, qRows, firstRow, config.blockRows(), whole);
    b.copyAsync(doutTile, doutRows, firstRow, config.blockRows(), whole);
    fetch(zero);
    b.commit();
  });
  placeQueries();
  int64_t results = tables ? 0 : resultLayout.numRegisters();
  SmallVector<Value> state(results, b.number(0));
  if (!tables)
    state.append(perHead.size() + perRow.size() * scoreLayout.rowsOfLane() + perElement.size(),
                 b.number(0));
  state = b.loop(zero, blocks->count, 1, state,
                 [&](Value number, ValueRange state) { return processBlock(number, state); });
  if (tables)
    return;
  storeSums(sumsOf(ValueRange(state).drop_front(results)));
  HeadTensor out = headTensorOf(b, kernel, op.getDq());
  if (!out.place.base)
    return;
  Fragment dq{resultLayout, llvm::to_vector(ArrayRef(state).take_front(results))};
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble()));
  storeRows(b, dq, numbers, scale, slabOf(b, out, head.batch, head.head));
}

void attention::emitQueryGradients(Sm80Tiles &b, const Sm80Problem &problem, bool tables) {
  QueryGradients(b, problem, tables).emit();
}
