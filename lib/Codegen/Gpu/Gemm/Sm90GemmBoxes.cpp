//===- Sm90GemmBoxes.cpp - Epilogue of contractions in boxes ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tensors that the epilogue reads at each element of a tile are copied to the ring of stages,
// behind the factors of the tile. The copies run while the last factors are multiplied:
//
//   ring        .. | k 30 | k 31 | boxes 0 1 2 | boxes 3 | k 0 of the next tile | ..
//   consumers   .. products .......| panels 0 .. 3       | products ..
//
// For each panel of 64 columns, a warpgroup
//   1. waits for the boxes of the panel, reads them, and releases stages whose boxes all are read;
//   2. computes the results of its accumulators. A lane has pairs of adjacent elements. Vectors,
//      which are the same for all rows or for all columns, were loaded to registers one panel
//      ahead;
//   3. writes each box of results to one of two buffers in shared memory. A thread then starts the
//      copy of the box to global memory. If the kernel has several results, the warpgroup fills
//      both buffers before this thread copies them.
//
// The box of a 16-bit tensor has 64 columns, a box of an f32 tensor 32 columns. A row has 128
// bytes. Its chunks of 16 bytes are swizzled: chunk c of row r is at chunk c xor r mod 8. A lane's
// matrix row or pair is therefore at an address whose bits 5 and 6 are an exclusive or with the
// step.
//
//===----------------------------------------------------------------------===//

#include "Sm90GemmBoxes.h"
#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "Codegen/Kernel/Fragment.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;
using namespace mlir::fsdp::tile;

static constexpr int64_t panelBytes = Sm90Builder::panelBytes, panel = Sm90Builder::panelCols,
                         groupRows = Sm90Builder::groupRows,
                         groupThreads = Sm90Builder::groupThreads;
/// Pairs of elements of a lane in a panel, and in half a panel, which is a box of an f32 tensor.
/// Four pairs, of two rows and two groups of eight columns, extend over 32 bytes of rows of 16-bit
/// elements. Two pairs extend over 32 bytes of rows of f32.
static constexpr int64_t panelPairs = groupRows * panel / groupThreads / 2,
                         halfPairs = panelPairs / 2, stepPairs = 4, stepBytes = 32;

SmallVector<Value> gemm::coordinatesOf(GpuBuilder &b, const Operand &operand, int first, int second,
                                       const Position &position) {
  auto at = [&](int digit) { return position[digit] ? position[digit] : b.i32(0); };
  SmallVector<Value> coordinates = {at(first), at(second)};
  for (auto [digit, stride] : llvm::enumerate(operand.strides))
    if (static_cast<int>(digit) != first && static_cast<int>(digit) != second && stride != 0)
      coordinates.push_back(at(digit));
  return coordinates;
}

static GpuPlan withPairs(GpuPlan plan) {
  plan.storeCols = 2;
  return plan;
}

BoxEpilogue::BoxEpilogue(Sm90Builder &b, const Problem &problem, const GpuPlan &plan,
                         func::FuncOp kernel, EpilogueBoxes boxes)
    : b(b), problem(problem), plan(plan), pairs(withPairs(plan)),
      epilogue(b, problem, pairs, kernel), boxes(std::move(boxes)),
      panels(plan.config.blockCols / panel) {}

/// Returns the coordinates of a box of `panel`. In tensor maps, f32 elements count twice.
SmallVector<Value> BoxEpilogue::boxAt(const EpilogueBox &box, const Position &corner, int64_t panel,
                                      int64_t half) {
  SmallVector<Value> coordinates =
      coordinatesOf(b, *box.operand, plan.rhs.digits.back(), plan.lhs.digits.back(), corner);
  Value &col = coordinates.front();
  col = b.add(b.mul(col, box.boxes()), (panel * box.boxes() + half) * ::panel);
  return coordinates;
}

void BoxEpilogue::produce(const Position &corner, StageAt stageAt) {
  int64_t perStage = EpilogueBoxes::loadsPerStage(plan), all = panels * boxes.loadsPerPanel(),
          bytes = plan.config.blockRows * panelBytes, number = 0;
  GemmStage stage;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (auto [map, load] : llvm::enumerate(boxes.loads))
      for (int64_t half = 0; half < load.boxes(); ++half, ++number) {
        if (number % perStage == 0) {
          stage = stageAt(number / perStage);
          b.wait(stage.empty, b.sub(b.i32(1), stage.parity));
          b.expect(stage.full, std::min(perStage, all - number) * bytes);
        }
        b.copyBox(b.shiftBytes(stage.begin, number % perStage * bytes),
                  b.tensorMap(factorMaps + static_cast<int64_t>(map)),
                  boxAt(load, corner, panel, half), stage.full);
      }
}

/// Returns the row of the warpgroup in which a thread has its first pair.
static Value rowOf(GpuBuilder &b, Value thread) {
  return b.add(b.mul(b.div(thread, 32), 16), b.div(b.rem(thread, 32), 4));
}

/// Loads the vectors that the pairs of a panel need. Outside the result, loads its last elements,
/// whose results are not stored.
BoxEpilogue::Inputs BoxEpilogue::loadVectors(const Place &place, int64_t panel) {
  Layout layout = Layout::mmaSums(16, ::panel);
  Value firstRow = b.add(place.firstRow, rowOf(b, place.thread)),
        firstCol = b.add(b.add(place.firstCol, panel * ::panel), b.mul(b.rem(place.thread, 4), 2));
  bool hasRowTail = plan.lhs.size % plan.tileRows(),
       hasColTail = plan.rhs.size % plan.config.blockCols;
  Inputs inputs;
  for (int64_t i = 0; i < panelPairs; ++i) {
    auto [r, c] = layout.place(2 * i);
    Value row = b.add(firstRow, r), col = b.add(firstCol, c);
    if (hasRowTail)
      row = b.min(row, b.i32(plan.lhs.size - 1));
    if (hasColTail)
      col = b.min(col, b.i32(plan.rhs.size - 2));
    inputs.push_back(
        epilogue.loadAll({place.outer, row, col, Value()},
                         [&](const Operand &operand) { return !isVector(plan, operand); }));
  }
  return inputs;
}

/// Returns the offset, in a box of f32, of this lane's pair of the first step. Lanes of odd rows
/// begin with step 2 instead, so that half a warp accesses different banks.
Value BoxEpilogue::laneOfPairs(Value thread) {
  auto exclusive = [&](Value x, Value y) { return b.createOrFold<arith::XOrIOp>(b.loc, x, y); };
  Value row = rowOf(b, thread), pair = b.rem(thread, 4);
  Value chunk = exclusive(exclusive(b.div(pair, 2), b.rem(row, 8)), b.mul(b.rem(row, 2), 4));
  Value inChunk = b.add(b.mul(chunk, 16), b.mul(b.rem(pair, 2), 8));
  return b.add(b.mul(row, panelBytes), inChunk);
}

/// Returns the offset of the pair `i` of a box of f32 from the beginning of the box. `lane` is the
/// result of laneOfPairs().
static Value offsetOfPair(GpuBuilder &b, Value lane, int64_t i) {
  Value step = b.createOrFold<arith::XOrIOp>(b.loc, lane, b.i32(i / 2 * stepBytes));
  return b.add(step, i % 2 * 8 * panelBytes);
}

/// Exchanges the pairs of steps 0 and 2, and of steps 1 and 3, of a box of f32 in lanes of odd
/// rows.
static SmallVector<Value> exchangeSteps(GpuBuilder &b, Value thread, ArrayRef<Value> values) {
  Value isEven = b.isEqual(b.rem(rowOf(b, thread), 2), 0);
  SmallVector<Value> exchanged;
  for (auto [i, value] : llvm::enumerate(values))
    exchanged.push_back(b.select(isEven, value, values[i ^ halfPairs]));
  return exchanged;
}

/// Waits for the boxes of a panel. Returns, for each load, the addresses of its boxes' rows of this
/// warpgroup. Sets `done` to the stages whose last box belongs to this panel.
SmallVector<SmallVector<Value>> BoxEpilogue::awaitBoxes(const Place &place, int64_t panel,
                                                        StageAt stageAt,
                                                        SmallVectorImpl<GemmStage> &done) {
  int64_t perStage = EpilogueBoxes::loadsPerStage(plan), all = panels * boxes.loadsPerPanel(),
          number = panel * boxes.loadsPerPanel(), bytes = plan.config.blockRows * panelBytes;
  SmallVector<SmallVector<Value>> begins(boxes.loads.size());
  for (auto [own, load] : llvm::zip_equal(begins, boxes.loads))
    for (int64_t half = 0; half < load.boxes(); ++half, ++number) {
      GemmStage stage = stageAt(number / perStage);
      if (number % perStage == 0)
        b.wait(stage.full, stage.parity);
      Value offset = b.add(b.mul(place.group, groupRows * panelBytes), number % perStage * bytes);
      own.push_back(b.shiftBytes(stage.begin, offset));
      if (number % perStage == perStage - 1 || number == all - 1)
        done.push_back(stage);
    }
  return begins;
}

/// Reads pairs of a panel from the boxes of a load: those of step `step`, or if the elements are
/// f32 and the step is even, those of this step and the next one.
void BoxEpilogue::readPairs(const EpilogueBox &load, ArrayRef<Value> begins, int64_t step,
                            Value thread, Inputs &inputs) {
  Type type = load.operand->access.elementType;
  auto inputsOfStep = MutableArrayRef(inputs).drop_front(step * stepPairs);
  if (!load.isWide) {
    Value own =
        b.createOrFold<arith::XOrIOp>(b.loc, b.matrixRowOfThread(thread), b.i32(step * stepBytes));
    SmallVector<Value> words = b.loadMatrices(b.shiftBytes(begins.front(), own), false);
    for (auto [word, input] : llvm::zip_first(words, inputsOfStep))
      epilogue.setInput(input, *load.operand, unpackWord(b, word, type));
    return;
  }
  if (step % 2)
    return;
  SmallVector<Value> values;
  for (int64_t i = 0; i < halfPairs; ++i) {
    Value place = b.shiftBytes(begins[step / 2], offsetOfPair(b, laneOfPairs(thread), i));
    llvm::append_range(values, loadRow(b, {place, type, b.constant(0)}, 2, 2));
  }
  values = exchangeSteps(b, thread, values);
  for (int64_t i = 0; i < halfPairs; ++i)
    epilogue.setInput(inputsOfStep[i], *load.operand, {values[2 * i], values[2 * i + 1]});
}

/// Packs two results of 16 bits. Does not round them one by one if one instruction can round both.
static Value packPair(GpuBuilder &b, MutableArrayRef<Value> pair, Type type) {
  for (Value &result : pair) {
    auto narrowed = result.getDefiningOp<arith::TruncFOp>();
    bool isPacked = narrowed && narrowed.getIn().getType().isF32() && !narrowed.getRoundingmode();
    result = isPacked ? narrowed.getIn() : b.convertFloat(result, b.getF32Type());
  }
  return b.pack(pair[0], pair[1], type);
}

/// Appends the results of a step to `words`, which has a list for each tensor that is stored:
/// words of two elements of 16 bits, or f32 values.
void BoxEpilogue::compute(ArrayRef<Value> sums, const Inputs &inputs, int64_t step,
                          MutableArrayRef<Words> words) {
  for (int64_t i = step * stepPairs; i < (step + 1) * stepPairs; ++i) {
    SmallVector<GpuEpilogue::Row> results =
        epilogue.results(inputs[i], llvm::to_vector(sums.slice(2 * i, 2)));
    for (auto [own, result, store] : llvm::zip_equal(words, results, boxes.stores)) {
      if (!store.isWide)
        own.push_back(packPair(b, result, store.operand->access.elementType));
      else
        for (Value value : result)
          own.push_back(b.convertFloat(value, b.getF32Type()));
    }
  }
}

/// Computes the results of a panel. Reads the inputs step by step, so that they need fewer
/// registers.
SmallVector<BoxEpilogue::Words> BoxEpilogue::computePanel(const Place &place, int64_t panel,
                                                          ArrayRef<Value> sums, Inputs inputs,
                                                          StageAt stageAt, Release release) {
  SmallVector<GemmStage> done;
  SmallVector<SmallVector<Value>> begins = awaitBoxes(place, panel, stageAt, done);
  SmallVector<Words> words(boxes.stores.size());
  for (int64_t step = 0; step < panelPairs / stepPairs; ++step) {
    for (auto [load, own] : llvm::zip_equal(boxes.loads, begins))
      readPairs(load, own, step, place.thread, inputs);
    compute(sums, inputs, step, words);
  }
  if (!done.empty()) {
    // All lanes have read before the first lanes release, and before the next copies write.
    b.fenceAsync();
    b.syncWarp();
  }
  for (const GemmStage &stage : done)
    release(stage);
  return words;
}

/// Writes the words of a box to shared memory.
void BoxEpilogue::write(const EpilogueBox &store, int64_t half, const Words &words, Value target,
                        Value thread) {
  if (store.isWide) {
    SmallVector<Value> values =
        exchangeSteps(b, thread, ArrayRef(words).slice(half * 2 * halfPairs, 2 * halfPairs));
    for (int64_t i = 0; i < halfPairs; ++i) {
      Value place = b.shiftBytes(target, offsetOfPair(b, laneOfPairs(thread), i));
      b.storePair(values[2 * i], values[2 * i + 1], {place, b.getF32Type(), b.constant(0)});
    }
    return;
  }
  Value lane = b.matrixRowOfThread(thread);
  for (int64_t i = 0; i < panelPairs; i += stepPairs) {
    Value step = b.createOrFold<arith::XOrIOp>(b.loc, lane, b.i32(i / stepPairs * stepBytes));
    b.storeMatrices(b.shiftBytes(target, step), ArrayRef(words).slice(i, stepPairs));
  }
}

/// Stores the boxes of a panel from the two buffers. If boxes are written one at a time, a box is
/// written while the previous box is copied to global memory.
void BoxEpilogue::storePanel(const Place &place, int64_t panel, ArrayRef<Words> results) {
  int64_t perPanel = boxes.storesPerPanel(), together = boxes.storesTogether();
  Value barrier = b.add(place.group, 1), isFirst = b.isEqual(place.thread, 0);
  Position corner(problem.digits.size());
  setDigits(b, problem, corner, place.outer, plan.outer);
  setDigits(b, problem, corner, place.firstRow, plan.lhs.digits);
  setDigits(b, problem, corner, place.firstCol, plan.rhs.digits);
  struct Part {
    int64_t store, half;
  };
  SmallVector<Part> parts;
  for (auto [i, store] : llvm::enumerate(boxes.stores))
    for (int64_t half = 0; half < store.boxes(); ++half)
      parts.push_back({static_cast<int64_t>(i), half});
  for (int64_t from = 0; from < perPanel; from += together) {
    ArrayRef<Part> written = ArrayRef(parts).slice(from, std::min(together, perPanel - from));
    int64_t number = panel * perPanel + from;
    auto bufferOf = [&](int64_t i) {
      int64_t buffer = together == 1 ? number % 2 : i;
      return b.shiftBytes(place.chunk, buffer * groupRows * panelBytes);
    };
    // Wait until earlier copies have read the buffers that are written now. If one box is written
    // at a time, the latest copy reads the other buffer and may continue. The exception is the
    // first box of a tile if a tile has an odd number of boxes: it has the buffer of the latest
    // copy.
    int64_t pending = together > 1 || (number == 0 && panels * perPanel % 2) ? 0 : 1;
    b.when(isFirst, [&] { b.waitForStores(pending, /*sourceOnly=*/true); });
    b.syncNamed(barrier, groupThreads);
    for (auto [i, part] : llvm::enumerate(written))
      write(boxes.stores[part.store], part.half, results[part.store], bufferOf(i), place.thread);
    b.fenceAsync();
    b.syncNamed(barrier, groupThreads);
    b.when(isFirst, [&] {
      for (auto [i, part] : llvm::enumerate(written)) {
        int64_t map = factorMaps + static_cast<int64_t>(boxes.loads.size()) + part.store;
        b.storeBox(b.tensorMap(map), boxAt(boxes.stores[part.store], corner, panel, part.half),
                   bufferOf(i));
      }
      b.commitStores();
    });
  }
  // Otherwise ptxas computes results of several panels before it stores the first, with more
  // registers than a thread has. Waits for loads end the block, too.
  constexpr double leastWork = 8;
  bool isHeavy = boxes.stores.size() > 1 || workOfMaps(problem).issue >= leastWork;
  if (isHeavy && boxes.loads.empty() && panel + 1 < panels)
    b.endBlock();
}

void BoxEpilogue::finish(const Place &place, ArrayRef<Value> sums, Inputs inputs, StageAt stageAt,
                         Release release) {
  for (int64_t panel = 0; panel < panels; ++panel) {
    Inputs next = panel + 1 < panels ? loadVectors(place, panel + 1) : Inputs();
    ArrayRef<Value> own = sums.slice(panel * 2 * panelPairs, 2 * panelPairs);
    storePanel(place, panel, computePanel(place, panel, own, std::move(inputs), stageAt, release));
    inputs = std::move(next);
  }
}

void BoxEpilogue::end(Value thread) {
  b.when(b.isEqual(thread, 0), [&] { b.waitForStores(0, /*sourceOnly=*/false); });
}
