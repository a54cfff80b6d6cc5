//===- Sm80Forward.cpp - Attention without its scores, on a GPU -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block of threads has a block of rows of one head, a warp some rows of it; what the
// comments of AttentionForward.cpp say of a row holds here. K and V have two buffers each, so
// that copies run beside products:
//
//   fetch Q, K[0]; fetch V[0]
//   for each block i of columns that is not masked as a whole
//     wait for K[i]; barrier; fetch K[i + 1]
//     S = Q · Kᵀ, score_mod, mask; m, P, l as everywhere
//     wait for V[i]; barrier; fetch V[i + 1]
//     O = O · a + P · V
//   O / l, lse
//
// The barriers order both ways: behind the first, all warps see K[i] and have left the buffer
// that K[i + 1] goes to, the other one of K's; behind the second, the same of V. Which block
// comes i-th is computed from the ranges of AttentionTiles, for i + 1 one turn ahead.
//
//===----------------------------------------------------------------------===//

#include "Sm80Blocks.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
class Sm80Forward {
public:
  Sm80Forward(Sm80Tiles &b, const Sm80Config &config, const Shape &shape, AttentionOp op, func::FuncOp kernel)
      : b(b), config(config), shape(shape), op(op), kernel(kernel), ranges(AttentionTiles(op).getKeyTiles(config.blockCols)),
        scoreLayout(Layout::mmaSums(config.warpRows(), config.blockCols)),
        outputLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.valueDim))) {}
  void emit();

private:
  /// What a lane knows of one of its rows.
  struct Row {
    Value number;   ///< in the matrix
    Value existing; ///< the same, or the last row
    FragmentFunction::Values score, mask, weight;
  };
  /// The state of a loop over blocks: sums of O, then max and sum of each row.
  struct State {
    Fragment o;
    SmallVector<Value> max, sum;
    SmallVector<Value> flat() const;
  };
  bool foldsScale() { return op.getScoreMod().empty() && op.getScale().convertToDouble() > 0; }
  double factor() { return foldsScale() ? op.getScale().convertToDouble() * log2e : log2e; }
  bool wholeCols() const { return shape.cols % config.blockCols == 0; }
  bool canBeMasked() { return !op.getMaskMod().empty() || !wholeCols(); }
  void placeUnit();
  void placeTiles();
  void placeRows();
  void fetch(const SharedTile &tile, const GlobalRows &rows, Value turn);
  State unflatten(ValueRange values);
  State turn(Value number, State state);
  Fragment scoresOf(Value number, Value firstCol);
  Fragment modify(Fragment s, Value firstCol, bool masked);
  Fragment weigh(Fragment p, Value firstCol);
  Fragment softmax(const Fragment &s, State &state);
  void finish(State state);

  Sm80Tiles &b;
  const Sm80Config config;
  const Shape &shape;
  AttentionOp op;
  func::FuncOp kernel;
  SmallVector<TileRange> ranges;
  Layout scoreLayout, outputLayout;

  Head head;
  Value firstRow; ///< of the block
  GlobalRows qRows, kRows, vRows;
  SharedTile qTile, kTile, vTile;
  std::optional<FragmentFunction> score, mask, weight;
  SmallVector<Row> rows;
  std::optional<BlockSequence> blocks;
};
} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Which rows of which head. Blocks of the last rows, which see most under a causal mask, come first.
void Sm80Forward::placeUnit() {
  int64_t rowBlocks = llvm::divideCeil(shape.rows, config.blockRows());
  Value unit = b.block();
  Value rowBlock = b.sub(b.i32(rowBlocks - 1), b.rem(unit, rowBlocks)), number = b.div(unit, rowBlocks);
  firstRow = b.mul(rowBlock, config.blockRows());
  Value own = b.rem(number, shape.heads);
  head = {b.to64(b.div(number, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  auto slab = [&](Value tensor, Value ownHead, int64_t heads, int64_t count, int64_t cols) {
    return slabOf(b, b.binding(tensor), head.batch, ownHead, heads, count, cols);
  };
  qRows = slab(op.getQ(), head.head, shape.heads, shape.rows, shape.dim);
  kRows = slab(op.getK(), head.kvHead, shape.kvHeads, shape.cols, shape.dim);
  vRows = slab(op.getV(), head.kvHead, shape.kvHeads, shape.cols, shape.valueDim);
}

void Sm80Forward::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim), valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
  int64_t keys = config.blockRows() * pitch, values = keys + 2 * config.blockCols * pitch;
  qTile = {b.sharedAt(0), pitch};
  kTile = {b.sharedAt(keys), pitch};
  vTile = {b.sharedAt(values), valuePitch};
}

void Sm80Forward::placeRows() {
  Value first = b.add(b.add(firstRow, b.mul(b.warp(), config.warpRows())), b.rowOfLane());
  for (int64_t i = 0; i < scoreLayout.rowsOfLane(); ++i) {
    Value number = b.add(first, 8 * i), existing = b.min(number, b.i32(shape.rows - 1));
    rows.push_back({number, existing, score->ofRow(existing), mask->ofRow(existing), weight->ofRow(existing)});
  }
}

void Sm80Forward::fetch(const SharedTile &tile, const GlobalRows &rows, Value turn) {
  Value first = b.mul(blocks->at(turn), config.blockCols);
  b.copyAsync(stageOf(b, tile, config.blockCols, turn), rows, first, config.blockCols, wholeCols());
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// Scores as the functions make them. Columns first: what is known of one is used for all rows.
Fragment Sm80Forward::modify(Fragment s, Value firstCol, bool masked) {
  Value own = b.add(firstCol, b.colOfLane()), scale = b.number(op.getScale().convertToDouble());
  SmallVector<std::pair<FragmentFunction::Values, FragmentFunction::Values>> columns(scoreLayout.numCols());
  SmallVector<std::pair<Value, Value>> places(scoreLayout.numCols());
  for (int64_t reg = 0; reg < scoreLayout.numRegisters(); ++reg) {
    int64_t at = scoreLayout.place(reg).second;
    const Row &row = rows[scoreLayout.rowOf(reg)];
    if (!places[at].first) {
      Value col = b.add(own, at), existing = masked && !wholeCols() ? b.min(col, b.i32(shape.cols - 1)) : col;
      places[at] = {col, existing};
      columns[at] = {score->ofColumn(existing), masked ? mask->ofColumn(existing) : FragmentFunction::Values()};
    }
    auto [col, existing] = places[at];
    Value x = s.registers[reg];
    if (!foldsScale())
      x = b.mulf(x, scale);
    if (!score->empty())
      x = score->emit(row.score, columns[at].first, row.existing, existing, {x});
    if (masked) {
      Value keep = wholeCols() ? Value() : b.isLower(col, shape.cols);
      if (!mask->empty()) {
        Value kept = mask->emit(row.mask, columns[at].second, row.existing, existing, {});
        keep = keep ? b.both(keep, kept) : kept;
      }
      x = b.select(keep, x, b.number(-infinity));
    }
    s.registers[reg] = x;
  }
  return s;
}

Fragment Sm80Forward::scoresOf(Value number, Value firstCol) {
  Fragment s = b.multiplyRows(b.fill(scoreLayout, b.number(0)), rowsOfWarp(b, qTile, config.warpRows()),
                              stageOf(b, kTile, config.blockCols, number), Sm80Tiles::paddedCols(shape.dim));
  bool always = !score->empty() || !foldsScale();
  if (!canBeMasked())
    return always ? modify(s, firstCol, false) : s;
  Value free = blocks->isFree(b.div(firstCol, config.blockCols));
  SmallVector<Type> types(s.registers.size(), b.getF32Type());
  s.registers = b.choose(
      free, types, [&] { return always ? modify(s, firstCol, false).registers : s.registers; },
      [&] { return modify(s, firstCol, true).registers; });
  return s;
}

/// P over S, and the state for it.
Fragment Sm80Forward::softmax(const Fragment &s, State &state) {
  Fragment p = s;
  Value c = b.number(factor());
  auto larger = [&](Value x, Value y) -> Value { return arith::MaxNumFOp::create(b, b.loc, x, y); };
  SmallVector<Value> most(scoreLayout.rowsOfLane()), shift, correction, sums(scoreLayout.rowsOfLane());
  for (auto [reg, x] : llvm::enumerate(s.registers)) {
    Value &all = most[scoreLayout.rowOf(reg)];
    all = all ? larger(all, x) : x;
  }
  for (auto [i, all] : llvm::enumerate(most)) {
    Value after = larger(b.mulf(b.overQuad(all, larger), c), state.max[i]);
    Value isEmpty = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, after, b.number(-infinity));
    shift.push_back(arith::NegFOp::create(b, b.loc, b.select(isEmpty, b.number(0), after)));
    correction.push_back(b.exp2(b.addf(state.max[i], shift.back())));
    state.max[i] = after;
  }
  for (auto [reg, x] : llvm::enumerate(s.registers)) {
    int64_t row = scoreLayout.rowOf(reg);
    p.registers[reg] = b.exp2(b.fma(x, c, shift[row]));
    sums[row] = sums[row] ? b.addf(sums[row], p.registers[reg]) : p.registers[reg];
  }
  for (auto [i, sum] : llvm::enumerate(sums))
    state.sum[i] = b.fma(state.sum[i], correction[i], sum);
  for (auto [reg, x] : llvm::enumerate(state.o.registers))
    x = b.mulf(x, correction[outputLayout.rowOf(reg)]);
  return p;
}

/// P · weight_mod; a factor where the mask masks may be anything.
Fragment Sm80Forward::weigh(Fragment p, Value firstCol) {
  if (weight->empty())
    return p;
  Value own = b.add(firstCol, b.colOfLane());
  for (auto [reg, x] : llvm::enumerate(p.registers)) {
    const Row &row = rows[scoreLayout.rowOf(reg)];
    Value col = b.min(b.add(own, scoreLayout.place(reg).second), b.i32(shape.cols - 1));
    Value factor = weight->emit(row.weight, weight->ofColumn(col), row.existing, col, {});
    Value isNone = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, x, b.number(0));
    x = b.select(isNone, b.number(0), b.mulf(x, factor));
  }
  return p;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

SmallVector<Value> Sm80Forward::State::flat() const {
  SmallVector<Value> all(o.registers);
  llvm::append_range(all, max);
  llvm::append_range(all, sum);
  return all;
}

Sm80Forward::State Sm80Forward::unflatten(ValueRange values) {
  int64_t count = outputLayout.numRegisters(), perLane = scoreLayout.rowsOfLane();
  return {{outputLayout, llvm::to_vector(values.take_front(count))},
          llvm::to_vector(values.slice(count, perLane)),
          llvm::to_vector(values.take_back(perLane))};
}

Sm80Forward::State Sm80Forward::turn(Value number, State state) {
  Value firstCol = b.mul(blocks->at(number), config.blockCols), next = b.add(number, 1);
  Value more = b.isLess(next, blocks->count);
  auto begin = [&](const SharedTile &tile, const GlobalRows &rows) {
    b.waitForCopies(1);
    b.barrier();
    b.when(more, [&] { fetch(tile, rows, next); });
    b.commit();
  };
  begin(kTile, kRows);
  Fragment s = scoresOf(number, firstCol);
  Fragment p = weigh(softmax(s, state), firstCol);
  begin(vTile, vRows);
  state.o = b.multiplyAcross(state.o, p, stageOf(b, vTile, config.blockCols, number));
  return state;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// O and LSE of the rows that exist; 0 and -inf where there was no key.
void Sm80Forward::finish(State state) {
  SmallVector<Value> inverses;
  Pointer lse = b.destination(kernel, op.getLse());
  Value number = b.add(b.mul(head.batch, shape.heads), head.head);
  for (int64_t i = 0; i < scoreLayout.rowsOfLane(); ++i) {
    Value total = b.overQuad(state.sum[i], [&](Value x, Value y) { return b.addf(x, y); });
    Value isEmpty = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, total, b.number(0));
    Value inverse = arith::DivFOp::create(b, b.loc, b.number(1), total);
    inverses.push_back(b.select(isEmpty, b.number(0), inverse));
    if (!lse.base)
      continue;
    Value value = b.addf(b.mulf(state.max[i], b.number(ln2)), math::LogOp::create(b, b.loc, total));
    Value isFirst = b.isEqual(b.rem(b.lane(), 4), 0);
    b.when(b.both(isFirst, b.isLower(rows[i].number, shape.rows)), [&] {
      Pointer place = b.shift(b.shift(lse, b.mul(number, shape.rows)), b.to64(rows[i].number));
      b.store(b.select(isEmpty, b.number(-infinity), value), place);
    });
  }
  Pointer out = b.destination(kernel, op.getO());
  if (!out.base)
    return;
  SmallVector<Value> numbers = llvm::map_to_vector(rows, [](const Row &row) { return row.number; });
  storeRows(b, state.o, numbers, inverses, slabOf(b, out, head.batch, head.head, shape.heads, shape.rows, shape.valueDim));
}

void Sm80Forward::emit() {
  placeUnit();
  placeTiles();
  score.emplace(b, op.getScoreMod(), 1, shape, op.getCaptures(), head);
  mask.emplace(b, op.getMaskMod(), 0, shape, op.getCaptures(), head);
  weight.emplace(b, op.getWeightMod(), 0, shape, op.getCaptures(), head);
  placeRows();
  Value zero = b.i32(0), last = b.min(b.add(firstRow, config.blockRows()), b.i32(shape.rows));
  blocks.emplace(b, ranges, *mask, head, firstRow, last);
  b.when(b.isLess(zero, blocks->count), [&] {
    b.copyAsync(qTile, qRows, firstRow, config.blockRows(), shape.rows % config.blockRows() == 0);
    fetch(kTile, kRows, zero);
    b.commit();
    fetch(vTile, vRows, zero);
    b.commit();
  });
  int64_t perLane = scoreLayout.rowsOfLane();
  State first{b.fill(outputLayout, b.number(0)), SmallVector<Value>(perLane, b.number(-infinity)),
              SmallVector<Value>(perLane, b.number(0))};
  finish(unflatten(b.loop(zero, blocks->count, 1, first.flat(),
                          [&](Value number, ValueRange state) { return turn(number, unflatten(state)).flat(); })));
}

LogicalResult attention::lowerSm80Forward(func::FuncOp kernel, AttentionOp op, const GpuTarget &target, ModuleOp entries,
                                          GpuKernel &info) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Type element = cast<RankedTensorType>(op.getQ().getType()).getElementType();
  std::optional<Sm80Config> config = chooseForward(shape, element, target);
  assert(config && "whyNoGpuKernel has said so");
  Sm80Tiles b(op.getLoc(), op.getContext(), config->threads(), element);
  b.enter(entries, kernel, info.info.name, config->blocksPerSm, /*scratch=*/false);
  Sm80Forward(b, *config, shape, op, kernel).emit();
  b.leave();
  int64_t blocks = shape.batch * shape.heads * llvm::divideCeil(shape.rows, config->blockRows());
  info.launches.push_back({info.info.name, blocks, config->threads(), forwardNeeds(*config, shape, element).sharedBytes});
  return success();
}
