//===- GemmPacking.cpp - Packs the operands of a contraction ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   source, rows of k      panel: steps (of all rows), one after another
//     a0 a1 a2 a3 ..         a0 b0 c0 .. | a1 b1 c1 .. | a2 b2 c2 .. | ..
//     b0 b1 b2 b3 ..
//     c0 c1 c2 c3 ..       with pairs (bf16 dot products, tiles): a0a1 b0b1 .. | a2a3 b2b3 ..
//                          row tiles:   a0a1 a2a3 .. a30a31 | b0b1 b2b3 .. b30b31 | ..
//
// For products of f32 in tile registers, a panel consists of three such slices, one after another
// (F32Slices.h).
//
// There are three ways to pack, depending on the dimension that is contiguous in the source:
//
//   k      loads vectors along k from as many rows as a vector has lanes, and transposes them
//          in registers
//   rows   copies vector by vector, several panels side by side; interleaves pairs
//   none   copies element by element
//
// The code prefetches the source, because the source is not in the caches yet, and the hardware
// does not predict loads from rows that are far apart. Casts and other unary maps are applied
// between load and store. In the last panel, rows after the last row of the operand are copies of
// the last row. Steps after the last value of k are zero. For tile registers, k is padded to whole
// tiles.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Number of panels that are filled together, to read whole cache lines, if rows are contiguous.
static constexpr int64_t panelsPerGroup = 16;

/// When the code loads an element at k, it prefetches the element at k + `prefetchDistance`. If the
/// shared cache is distant, lines arrive more slowly, and the smaller distance avoids that lines in
/// the same set of the L1 cache replace each other.
static constexpr int64_t prefetchDistance = 12, distantPrefetchDistance = 5;

/// The elements of a panel that an element of the operand becomes, as vectors or scalars: one, or
/// several slices.
using Slices = amx::Slices;

/// Number of rows of a row tile that are copied side by side.
static constexpr int64_t rowsPerCopy = 4;

namespace {
class Packer {
public:
  /// `from` is the address of the operand's first row at the first value of k. `to` is the address
  /// of the panel of this row.
  Packer(CodeBuilder &b, const Plan &plan, const Side &side, Pointer from, Value kCount, Pointer to)
      : b(b), plan(plan), side(side), from(from), kCount(kCount), to(to), lanes(plan.lanes),
        perStep(plan.kPerStep()), panels(side.isLhs ? plan.lhsPanelsPerUse : 1),
        besideMicroKernel(side.isLhs ? plan.packsLhsOnUse : plan.prefetchesRhs) {}
  /// Packs one panel of `valid` rows.
  void packAlongK(Value valid);
  void packElements(Value valid);
  /// Packs all panels of `count` rows that are contiguous in the source.
  void packAlongRows(Value count);
  /// Pack one panel of row tiles from a source in which k is contiguous (packRowTilesAlongK()), or
  /// in which rows are contiguous (packRowTilesAlongRows()).
  void packRowTilesAlongK(Value valid);
  void packRowTilesAlongRows(Value valid);
  /// Sets the steps of one panel after the last value of k to zero, up to a multiple of 16 steps.
  void padSteps();

private:
  /// Applies the unary maps to a loaded vector, and converts the vector to the type that is packed:
  /// the type of the panel, or f32 for slices. Lanes outside `mask` stay zero.
  Value convert(Value value, Value mask);
  Value load(int64_t count, Value row, Value k, Value mask);
  Slices sliced(Value value) { return plan.slices > 1 ? amx::sliceF32(b, value) : Slices{value}; }
  Pointer element(Value row, Value k) {
    return b.shift(from, b.add(b.mul(row, side.stride), b.mul(k, side.kStride)));
  }
  Pointer sliceOf(const Pointer &panel, int64_t slice) {
    return b.shift(panel, b.constant(slice * plan.sliceSize(side.width)));
  }
  /// Returns the position of `step` in a panel. With Bf16Pairs, the odd step of each pair of steps
  /// is stored first.
  int64_t swapped(int64_t step) const {
    return plan.arithmetic == Arithmetic::Bf16Pairs ? step ^ 1 : step;
  }
  void storeStep(ArrayRef<Value> vectors, const Pointer &panel, Value step,
                 Value column = nullptr) {
    Value at = b.mul(step, side.width);
    if (column)
      at = b.add(at, column);
    for (auto [i, vector] : llvm::enumerate(vectors))
      b.store(vector, b.shift(panel, b.add(at, i * lanes)));
  }
  void packBlockAlongK(Value column, int64_t count, Value valid);
  void packRowsOfStep(Value row, Value valid, Value k, int64_t width);
  void storeRowsOfStep(Value row, Value k, int64_t width, SmallVector<Value> first,
                       ArrayRef<Value> second, const Pointer &slice);
  Value partOf(Value vector, int64_t panel);
  /// Returns a slice, or a converted value, in the type of the panel.
  Value packed(Value slice) { return plan.slices > 1 ? amx::sliceBf16(b, slice) : slice; }
  Value interleave(Value first, Value second);
  Slices loadPairs(Value row, Value count, Value k);

  CodeBuilder &b;
  const Plan &plan;
  const Side &side;
  Pointer from;
  Value kCount;
  Pointer to;
  int64_t lanes, perStep;
  int64_t panels;         ///< number of panels that packAlongK() fills together
  bool besideMicroKernel; ///< true if the micro-kernel prefetches the source, so that packing need
                          ///< not prefetch it
};
} // namespace

Value Packer::convert(Value value, Value mask) {
  auto vector = dyn_cast<VectorType>(value.getType());
  for (linalg::LinalgOp op : side.operand.access.maps)
    value = b.inlineBody(op, {value, Value()}, vector ? vector.getNumElements() : 0).front();
  value = b.convertFloat(value, plan.slices > 1 ? plan.accType : plan.packType);
  if (mask && !side.operand.access.maps.empty())
    value = b.select(mask, value, b.zero(value.getType()));
  return value;
}

Value Packer::load(int64_t count, Value row, Value k, Value mask) {
  auto type = VectorType::get({count}, side.operand.access.elementType);
  return convert(b.load(type, element(row, k), mask), mask);
}

/// Packs `count` rows of a panel, beginning at row `column` of the panel. `count` is at most the
/// number of lanes. Pairs are formed before they are transposed. Numbers with slices are transposed
/// before they are sliced, because the vector registers hold only one slice.
void Packer::packBlockAlongK(Value column, int64_t count, Value valid) {
  Type stepType = VectorType::get({lanes}, to.type);
  SmallVector<Value> rows;
  for (int64_t r = 0; r < count; ++r)
    rows.push_back(b.min(b.add(column, r), b.add(valid, -1)));
  int64_t perVector = plan.slices > 1 ? lanes : lanes * perStep;
  auto packVectors = [&](Value k) {
    Value mask = b.maskBelow(perVector, b.sub(kCount, k));
    SmallVector<Value> vectors;
    for (Value row : rows) {
      if (!besideMicroKernel)
        // Prefetches the source of the next panel.
        b.prefetch(element(b.add(row, side.width), k));
      Value vector = load(perVector, row, k, mask);
      if (plan.slices == 1 && vector.getType() != stepType)
        vector = vector::BitCastOp::create(b, b.loc, cast<VectorType>(stepType), vector);
      vectors.push_back(vector);
    }
    vectors.resize(lanes, vectors.front());
    SmallVector<Value> steps = b.transpose(vectors);
    Value first = b.div(k, perStep);
    for (int64_t j = 0; j < perVector / perStep; ++j) {
      Slices step;
      if (plan.slices == 1)
        step = {steps[swapped(j)]};
      else
        for (auto [one, other] : llvm::zip_equal(sliced(steps[2 * j]), sliced(steps[2 * j + 1])))
          step.push_back(interleave(one, other));
      for (auto [slice, pairs] : llvm::enumerate(step))
        for (int64_t panel = 0; panel < panels; ++panel)
          storeStep(panels > 1 ? partOf(pairs, panel) : pairs,
                    b.shift(sliceOf(to, slice), b.constant(panel * plan.panelSize(side.width))),
                    b.add(first, j), column);
    }
  };
  // k is padded to whole tiles, so that both vectors of the last tile are stored.
  b.loop(b.constant(0), kCount, lanes * perStep, [&](Value k) {
    if (perVector == lanes * perStep)
      packVectors(k);
    else
      b.loop(k, b.add(k, lanes * perStep), perVector, packVectors);
  });
}

void Packer::packAlongK(Value valid) {
  // The columns after the last whole vector are packed first. The store of a vector that is wider
  // than these columns also overwrites the first columns of the next step, which are packed later.
  if (panels > 1)
    return packBlockAlongK(b.constant(0), lanes, valid);
  int64_t whole = llvm::alignDown(side.width, lanes);
  if (whole < side.width)
    packBlockAlongK(b.constant(whole), side.width - whole, valid);
  if (whole == lanes)
    packBlockAlongK(b.constant(0), lanes, valid);
  else if (whole > 0)
    b.loop(b.constant(0), b.constant(whole), lanes,
           [&](Value column) { packBlockAlongK(column, lanes, valid); });
}

/// Returns the lanes of `vector` that belong to panel `panel`, if the vector fills several panels.
Value Packer::partOf(Value vector, int64_t panel) {
  return b.shuffle(vector, vector,
                   llvm::to_vector(llvm::seq(panel * side.width, (panel + 1) * side.width)));
}

/// Interleaves two vectors into pairs; each pair is a step.
Value Packer::interleave(Value first, Value second) {
  Value pairs;
  if (plan.slices > 1) {
    pairs = amx::pairSlices(b, first, second);
  } else {
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < lanes; ++lane)
      mask.append({lane, lanes + lane});
    pairs = b.shuffle(first, second, mask);
  }
  return vector::BitCastOp::create(b, b.loc, VectorType::get({lanes}, to.type), pairs);
}

/// Packs `width` rows at the value `k` and, if steps are pairs, also at `k` + 1. `width` is the
/// number of rows of one panel, or of all panels that one vector fills.
void Packer::packRowsOfStep(Value row, Value valid, Value k, int64_t width) {
  bool pairs = plan.arithmetic != Arithmetic::Fma;
  Value next = b.add(k, 1), hasNext = pairs ? b.isLess(next, kCount) : Value();
  SmallVector<Slices> first, second;
  for (int64_t column = 0; column < width; column += lanes) {
    Value at = b.add(row, column);
    Value count =
        b.min(b.sub(valid, b.constant(column)), b.constant(std::min(lanes, width - column)));
    first.push_back(sliced(load(lanes, at, k, b.maskBelow(lanes, count))));
    if (!pairs)
      continue;
    Value nextCount = b.select(hasNext, count, b.constant(0));
    second.push_back(sliced(load(lanes, at, next, b.maskBelow(lanes, nextCount))));
  }
  auto ofSlice = [](ArrayRef<Slices> columns, int64_t slice) {
    return llvm::map_to_vector(columns, [&](const Slices &column) { return column[slice]; });
  };
  for (int64_t slice = 0; slice < plan.slices; ++slice)
    storeRowsOfStep(row, k, width, ofSlice(first, slice),
                    pairs ? ofSlice(second, slice) : SmallVector<Value>(), sliceOf(to, slice));
}

/// Stores one slice of the values that packRowsOfStep() loads. `first` has the values at `k`, and
/// `second` has the values at `k` + 1. `slice` is the address of this slice in the first panel.
void Packer::storeRowsOfStep(Value row, Value k, int64_t width, SmallVector<Value> first,
                             ArrayRef<Value> second, const Pointer &slice) {
  if (plan.packsPairs())
    for (auto [one, other] : llvm::zip_equal(first, second))
      one = interleave(one, other);
  // Steps and columns are stored in ascending order. If a vector is wider than a panel, its store
  // also overwrites elements after the panel. These elements get their values from later stores.
  Value number = b.div(row, side.width);
  for (int64_t part = 0; part < width; part += side.width) {
    Pointer panel =
        b.shift(slice, b.mul(b.add(number, part / side.width), plan.panelSize(side.width)));
    auto ofPanel = [&](ArrayRef<Value> vectors) {
      if (width == side.width)
        return llvm::to_vector(vectors);
      return SmallVector<Value>{partOf(vectors.front(), part / side.width)};
    };
    if (plan.arithmetic == Arithmetic::Bf16Pairs) {
      storeStep(ofPanel(second), panel, k);
      storeStep(ofPanel(first), panel, b.add(k, 1));
    } else {
      storeStep(ofPanel(first), panel, b.div(k, perStep));
    }
  }
}

void Packer::packAlongRows(Value count) {
  int64_t width = side.width * plan.panelsPerVector(side.width);
  int64_t group = panelsPerGroup * side.width;
  b.loop(b.constant(0), count, group, [&](Value begin) {
    Value end = b.min(b.add(begin, group), count);
    b.loop(b.constant(0), kCount, plan.arithmetic == Arithmetic::Fma ? 1 : 2, [&](Value k) {
      b.loop(begin, end, width, [&](Value row) {
        int64_t distance = plan.parts > 1 ? distantPrefetchDistance : prefetchDistance;
        bool prefetches = plan.parts == 1 || !besideMicroKernel;
        for (int64_t column = 0; prefetches && column < width; column += lanes)
          b.prefetch(element(b.add(row, column), b.add(k, distance)));
        packRowsOfStep(row, b.sub(count, row), k, width);
      });
    });
  });
}

void Packer::packElements(Value valid) {
  Value last = b.add(valid, -1);
  auto place = [&](Value row, Value k, int64_t slice) {
    // A step consists of `perStep` elements of the panel's type.
    Pointer elements = {to.base, plan.packType, b.mul(sliceOf(to, slice).index, perStep)};
    Value step = perStep == 2 ? b.div(k, 2) : k, half = perStep == 2 ? b.rem(k, 2) : b.constant(0);
    if (plan.arithmetic == Arithmetic::Bf16Pairs)
      step = arith::XOrIOp::create(b, b.loc, k, b.constant(1));
    Value index = b.add(b.mul(step, side.width), row);
    if (side.rowTiles)
      index = b.add(b.mul(b.add(b.mul(b.div(step, tileSize), side.width), row), tileSize),
                    b.rem(step, tileSize));
    return b.shift(elements, b.add(b.mul(index, perStep), half));
  };
  auto eachRow = [&](function_ref<void(Value)> body) {
    b.loop(b.constant(0), b.constant(side.width), 1, body);
  };
  b.loop(b.constant(0), kCount, 1, [&](Value k) {
    eachRow([&](Value row) {
      const Access &access = side.operand.access;
      Value value = access.binding < 0 ? arith::ConstantOp::create(b, b.loc, access.splat)
                                       : b.load(access.elementType, element(b.min(row, last), k));
      for (auto [slice, part] : llvm::enumerate(sliced(convert(value, nullptr))))
        b.store(packed(part), place(row, k, slice));
    });
  });
  auto clear = [&](Value k) {
    eachRow([&](Value row) {
      for (int64_t slice = 0; slice < plan.slices; ++slice)
        b.store(b.zero(plan.packType), place(row, k, slice));
    });
  };
  if (plan.arithmetic == Arithmetic::Tiles)
    b.loop(kCount, b.mul(b.div(b.add(kCount, 2 * tileSize - 1), 2 * tileSize), 2 * tileSize), 1,
           clear);
  else if (plan.arithmetic != Arithmetic::Fma)
    b.when(b.isEqual(b.rem(kCount, 2), 1), [&] { clear(kCount); });
}

/// Copies 32 values of k (16 steps of a tile) of a few rows at a time, and prefetches these values
/// of the following rows. The hardware predicts the values that follow in each row.
void Packer::packRowTilesAlongK(Value valid) {
  auto stepType = VectorType::get({lanes}, to.type);
  b.loop(b.constant(0), b.constant(side.width), rowsPerCopy, [&](Value first) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < rowsPerCopy; ++i)
      rows.push_back(b.min(b.add(first, i), b.add(valid, -1)));
    b.loop(b.constant(0), kCount, tileSize * perStep, [&](Value k) {
      Value mask = b.maskBelow(tileSize * perStep, b.sub(kCount, k));
      SmallVector<Slices> vectors;
      for (Value row : rows) {
        b.prefetch(element(b.add(row, rowsPerCopy), k));
        vectors.push_back(sliced(load(tileSize * perStep, row, k, mask)));
      }
      Pointer target = b.shift(to, b.mul(b.div(k, perStep), side.width));
      for (auto [i, slices] : llvm::enumerate(vectors))
        for (auto [slice, vector] : llvm::enumerate(slices))
          b.store(vector::BitCastOp::create(b, b.loc, stepType, packed(vector)),
                  b.shift(sliceOf(target, slice), b.mul(b.add(first, i), tileSize)));
    });
  });
}

/// For 16 rows, interleaves the values at k and k + 1 into pairs, and transposes the pairs of 16
/// steps. Pairs of slices are stored in the tiles of the slices, and transposed there.
void Packer::packRowTilesAlongRows(Value valid) {
  auto stepType = VectorType::get({lanes}, to.type);
  auto rowAt = [&](const Pointer &tile, int64_t row) {
    return b.shift(tile, b.constant(row * tileSize));
  };
  auto storeTransposed = [&](ArrayRef<Value> steps, const Pointer &tile) {
    for (auto [row, vector] : llvm::enumerate(b.transpose(steps)))
      b.store(vector, rowAt(tile, row));
  };
  b.loop(b.constant(0), kCount, tileSize * perStep, [&](Value k) {
    Pointer tiles = b.shift(to, b.mul(b.div(k, perStep), side.width));
    b.loop(b.constant(0), b.constant(side.width), tileSize, [&](Value first) {
      Value count = b.min(b.max(b.sub(valid, first), b.constant(0)), b.constant(tileSize));
      Pointer tile = b.shift(tiles, b.mul(first, tileSize));
      if (plan.slices == 1) {
        SmallVector<Value> steps;
        for (int64_t step = 0; step < tileSize; ++step)
          steps.push_back(loadPairs(first, count, b.add(k, 2 * step)).front());
        return storeTransposed(steps, tile);
      }
      b.loop(b.constant(0), b.constant(tileSize), 1, [&](Value step) {
        Slices pairs = loadPairs(first, count, b.add(k, b.mul(step, 2)));
        for (auto [slice, vector] : llvm::enumerate(pairs))
          b.store(vector, b.shift(sliceOf(tile, slice), b.mul(step, tileSize)));
      });
      b.loop(b.constant(0), b.constant(plan.slices), 1, [&](Value slice) {
        Pointer ofSlice = b.shift(tile, b.mul(slice, plan.sliceSize(side.width)));
        SmallVector<Value> steps;
        for (int64_t step = 0; step < tileSize; ++step)
          steps.push_back(b.load(stepType, rowAt(ofSlice, step)));
        storeTransposed(steps, ofSlice);
      });
    });
  });
}

/// Loads the values at k and k + 1 of `count` rows that are contiguous. Returns pairs of them.
Slices Packer::loadPairs(Value row, Value count, Value k) {
  Slices halves[2], pairs;
  for (int64_t half : {0, 1}) {
    Value at = b.add(k, half);
    Value rows = b.select(b.isLess(at, kCount), count, b.constant(0));
    b.prefetch(element(b.add(row, side.width), at));
    halves[half] = sliced(load(tileSize, row, at, b.maskBelow(tileSize, rows)));
  }
  for (auto [first, second] : llvm::zip_equal(halves[0], halves[1]))
    pairs.push_back(interleave(first, second));
  return pairs;
}

void Packer::padSteps() {
  if (plan.k % (tileSize * perStep) == 0)
    return;
  Value pairs = b.div(b.add(kCount, 1), 2);
  Value end = b.mul(b.div(b.add(pairs, tileSize - 1), tileSize), tileSize);
  Value zero = b.zero(VectorType::get({lanes}, to.type));
  SmallVector<Value> row(side.width / lanes, zero);
  for (int64_t slice = 0; slice < plan.slices; ++slice)
    b.loop(pairs, end, 1, [&](Value step) { storeStep(row, sliceOf(to, slice), step); });
}

/// Packs `valid` rows as one panel of row tiles.
static void packRowTiles(Packer &packer, const Side &side, bool splat, Value valid) {
  if (!splat && side.kStride == 1)
    packer.packRowTilesAlongK(valid);
  else if (!splat && side.stride == 1)
    packer.packRowTilesAlongRows(valid);
  else
    packer.packElements(valid);
}

void gemm::emitPackPanels(CodeBuilder &b, const Kernel &kernel, const Side &side,
                          const Position &position, Value first, Value end, Value kCount,
                          Pointer to) {
  const Plan &plan = kernel.plan;
  bool splat = side.operand.access.binding < 0;
  auto packerAt = [&](Value row, const Pointer &panel) {
    Position at = position;
    setDigits(b, kernel.problem, at, row, side.digits);
    return Packer(b, plan, side, splat ? Pointer() : kernel.at(b, side.operand, at), kCount, panel);
  };
  bool isTiled = plan.arithmetic == Arithmetic::Tiles;
  if (!splat && side.stride == 1 && side.digits.size() == 1 && !side.rowTiles) {
    packerAt(first, to).packAlongRows(b.sub(end, first));
    if (isTiled)
      b.loop(first, end, side.width, [&](Value row) {
        Value number = b.div(b.sub(row, first), side.width);
        packerAt(row, b.shift(to, b.mul(number, plan.panelSize(side.width)))).padSteps();
      });
    return;
  }
  bool alongK = !splat && side.stride != 1 && side.kStride == 1 && !side.rowTiles;
  int64_t width = side.width * (alongK && side.isLhs ? plan.lhsPanelsPerUse : 1);
  b.loop(first, end, width, [&](Value row) {
    Value valid = b.min(b.constant(width), b.sub(end, row));
    Value number = b.div(b.sub(row, first), side.width);
    Packer packer = packerAt(row, b.shift(to, b.mul(number, plan.panelSize(side.width))));
    if (side.rowTiles)
      return packRowTiles(packer, side, splat, valid);
    if (!splat && side.stride == 1) {
      packer.packAlongRows(valid);
      if (isTiled)
        packer.padSteps();
    } else if (alongK)
      packer.packAlongK(valid);
    else
      packer.packElements(valid);
  });
}
