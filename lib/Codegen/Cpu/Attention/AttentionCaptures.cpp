//===- AttentionCaptures.cpp - Gradients of captured tensors ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An fsdp.contribute adds a contribution to the gradient of a captured tensor. How contributions
// are summed depends on the arguments (b, h, q, k) that occur in the op's indices:
//
//   arguments        summed over                           stored sums
//   none, b, h       lanes of a row, a tile, then the head    one sum per head and chunk
//   q                lanes of each row, over the chunk        one per row and chunk
//   k                lanes of columns, over all rows          one per column
//   q and k          directly in a table                      private or owned (see below)
//
// The sums of heads, of rows and of columns are stored in the shared scratch. The last phase adds
// these sums to the elements of the gradient in the order of b, h, q or k, and chunk. If private
// tables need little memory, each unit has a table of its own, and the last phase adds the tables
// in the order of the units. Otherwise all units share one table, and no two units may write the
// same element. The work is then divided into units only along those arguments (b, h or k) that
// index the same dimension of the table in every contribution to the table. Along the other
// dimensions, each unit processes the elements in order. Therefore no sum depends on which worker
// runs which unit.
//
// If the elements of the result have the type of the sums, the shared table is the buffer of the
// result. Otherwise, the shared table is in scratch.
//
//===----------------------------------------------------------------------===//

#include "AttentionCaptures.h"
#include "Codegen/Kernel/Attention/AttentionContributions.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

/// Maximum total size of the private tables of a gradient, in bytes.
static constexpr int64_t mostPrivateBytes = 32 << 20;
static constexpr unsigned leading = leadingOfGrad;

static int64_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

Captures::Captures(AttentionGradOp op, func::FuncOp kernel, const Shape &shape)
    : op(op), kernel(kernel), shape(shape) {
  for (const CapturedFloat &captured : collectCapturedFloats(op)) {
    Type element = captured.type.getElementType();
    Type work =
        element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(op.getContext())) : element;
    bool isDirect = work == cast<RankedTensorType>(captured.result.getType()).getElementType();
    gradients.push_back({captured.type, work, false, isDirect, 0, 0, captured.result});
  }
  for (const Contributed &c : collectContributions(op))
    contributions.push_back({c.op, c.gradient, c.where, gradients[c.gradient].work, {}, {}, {}, 0});
}

Units Captures::chooseUnits(int64_t most) {
  Units units;
  auto cut = [&](int64_t limit) {
    units.chunks = 1;
    units.chunks = std::clamp<int64_t>(llvm::divideCeil(16, units.count(shape)), 1, limit);
  };
  cut(most);
  auto isOwned = [&](const Contribution &c) {
    return c.where == Dependence::Both && !gradients[c.gradient].isPrivate;
  };
  for (Gradient &gradient : gradients)
    gradient.isPrivate =
        gradient.type.getNumElements() * bytesOf(gradient.work) * units.count(shape) <=
        mostPrivateBytes;
  // The work may be divided into units along an argument only if, for each shared table, the
  // argument indexes the same dimension in all contributions to the table. (If there were
  // contributions to t[h, q] and t[q, h], two units could write the same element.)
  auto isOwner = [&](unsigned argument) {
    return llvm::all_of(llvm::seq<unsigned>(0, gradients.size()), [&](unsigned number) {
      auto places = llvm::to_vector(llvm::seq<int64_t>(0, gradients[number].type.getRank()));
      bool any = false;
      for (const Contribution &c : contributions) {
        if (c.gradient != number || !isOwned(c))
          continue;
        ContributeOp contribute = c.op;
        Value of = op.getScoreGrad().front().getArgument(leading + argument);
        llvm::erase_if(places, [&](int64_t place) { return contribute.getIndices()[place] != of; });
        any = true;
      }
      return !any || !places.empty();
    });
  };
  units.ownsBatch = isOwner(0);
  units.ownsHead = isOwner(1);
  bool ownsCols = isOwner(3);
  cut(ownsCols ? most : 1);
  chunks = units.chunks;
  return units;
}

void Captures::takeParts(Plan &plan, const Units &units, int64_t rows) {
  paddedRows = rows;
  int64_t lanes = plan.numbers.rowLanes, heads = shape.batch * shape.heads;
  for (Contribution &c : contributions) {
    int64_t bytes = bytesOf(c.work);
    switch (c.where) {
    case Dependence::None:
      c.row = plan.take(1, lanes, bytes);
      c.tile = plan.take(1, lanes, bytes);
      c.head = plan.take(shape.group, lanes, bytes);
      c.sharedOffset = plan.takeShared(heads * chunks * bytes);
      break;
    case Dependence::Row:
      c.head = plan.take(shape.group * paddedRows, lanes, bytes);
      c.sharedOffset = plan.takeShared(heads * chunks * shape.rows * bytes);
      break;
    case Dependence::Column:
      c.tile = plan.take(1, plan.blockCols, bytes);
      c.sharedOffset = plan.takeShared(heads * shape.cols * bytes);
      break;
    case Dependence::Both:
      break;
    }
  }
  for (auto [number, gradient] : llvm::enumerate(gradients)) {
    int64_t bytes = gradient.type.getNumElements() * bytesOf(gradient.work);
    if (!gradient.isDirect)
      gradient.sharedOffset = plan.takeShared(bytes);
    bool scatters = llvm::any_of(contributions, [&, number = number](const Contribution &c) {
      return c.gradient == number && c.where == Dependence::Both;
    });
    gradient.isPrivate &= scatters;
    if (gradient.isPrivate)
      gradient.tablesOffset = plan.takeShared(bytes * units.count(shape));
  }
}

Pointer Captures::sharedAt(Emitter &e, int64_t offset, Type type) {
  return {e.b.address(e.b.shift(e.shared, e.b.constant(offset))), type, e.b.constant(0)};
}

Pointer Captures::sumOf(Emitter &e, const Gradient &gradient) {
  return gradient.isDirect ? e.destination(kernel, gradient.result)
                           : sharedAt(e, gradient.sharedOffset, gradient.work);
}

Pointer Captures::tableOf(Emitter &e, const Gradient &gradient, Value unit) {
  if (!gradient.isPrivate)
    return sumOf(e, gradient);
  Pointer tables = sharedAt(e, gradient.tablesOffset, gradient.work);
  return e.b.shift(tables, e.b.mul(unit, gradient.type.getNumElements()));
}

/// Returns the address of `count` sums: the sums of a head and a chunk, or the sums of a head if
/// `chunk` is null.
Pointer Captures::totals(Emitter &e, const Contribution &c, const Head &head, Value chunk,
                         int64_t count) {
  Value number = e.b.add(e.b.mul(head.batch, shape.heads), head.head);
  if (chunk)
    number = e.b.add(e.b.mul(number, chunks), chunk);
  return e.b.shift(sharedAt(e, c.sharedOffset, c.work), e.b.mul(number, count));
}

void Captures::addInto(CodeBuilder &b, const Pointer &place, Value value) {
  b.store(arith::AddFOp::create(b, b.loc, b.load(value.getType(), place), value), place);
}

void Captures::clear(Emitter &e, const Pointer &place, int64_t count, Type type) {
  CpuTiles &b = e.b;
  b.loop(b.constant(0), b.constant(count), 1,
         [&](Value i) { b.store(b.zero(type), b.shift(place, i)); });
}

void Captures::beginUnit(Emitter &e, Value unit) {
  for (const Gradient &gradient : gradients)
    if (gradient.isPrivate)
      clear(e, tableOf(e, gradient, unit), gradient.type.getNumElements(), gradient.work);
}

void Captures::beginHead(Emitter &e, Value group) {
  for (const Contribution &c : contributions) {
    int64_t rows = c.where == Dependence::None ? 1 : c.where == Dependence::Row ? paddedRows : 0;
    if (rows)
      clear(e, e.b.shift(e.scratch(c.head, c.work), e.b.mul(group, rows * c.head.stride)),
            rows * c.head.stride, c.work);
  }
}

void Captures::beginBlock(Emitter &e, const Head &, Value) {
  for (const Contribution &c : contributions)
    if (c.where == Dependence::Column)
      clear(e, e.scratch(c.tile, c.work), c.tile.stride, c.work);
}

void Captures::beginTile(Emitter &e) {
  for (const Contribution &c : contributions)
    if (c.where == Dependence::None)
      for (const Part &part : {c.row, c.tile})
        e.b.store(e.b.zero(VectorType::get({part.stride}, c.work)), e.scratch(part, c.work));
}

void Captures::endRow(Emitter &e) {
  for (const Contribution &c : contributions)
    if (c.where == Dependence::None) {
      auto vector = VectorType::get({c.row.stride}, c.work);
      Pointer row = e.scratch(c.row, c.work);
      addInto(e.b, e.scratch(c.tile, c.work), e.b.load(vector, row));
      e.b.store(e.b.zero(vector), row);
    }
}

/// Adds the whole vector at once if the last index is k and no other index depends on k. Otherwise
/// adds the lanes one by one.
void Captures::addToTable(Emitter &e, KeptFunction &grad, const Contribution &c, const Site &site,
                          ScoreFunction::Values &known, Value value, Value keep, Value unit) {
  CpuTiles &b = e.b;
  Pointer table = tableOf(e, gradients[c.gradient], unit);
  ContributeOp contribute = c.op;
  ValueRange indices = contribute.getIndices();
  RankedTensorType type = gradients[c.gradient].type;
  Value k = op.getScoreGrad().front().getArgument(leading + 3);
  bool along = indices.back() == k && llvm::none_of(indices.drop_back(), [&](Value i) {
                 return (grad.function.dependenceOf(i) | Dependence::Row) == Dependence::Both;
               });
  if (along) {
    // Computes the indices of lane 0.
    Site first = site;
    first.lanes = 0;
    ScoreFunction::Values ofLane = known;
    ofLane.erase(k);
    Value position = grad.function.emitPosition(b, type, indices, first, ofLane);
    position = arith::ExtSIOp::create(b, b.loc, b.getI64Type(), position);
    Pointer place = b.shift(table, position);
    Value old = b.load(value.getType(), place, keep);
    b.store(arith::AddFOp::create(b, b.loc, old, value), place, keep);
    return;
  }
  Value position = grad.function.emitPosition(b, type, indices, site, known);
  for (int64_t lane = 0; lane < site.lanes; ++lane) {
    auto of = [&](Value v) -> Value {
      return isa<VectorType>(v.getType())
                 ? vector::ExtractOp::create(b, b.loc, v, ArrayRef<int64_t>{lane})
                 : v;
    };
    Value at = of(position);
    if (!at.getType().isInteger(64))
      at = arith::ExtSIOp::create(b, b.loc, b.getI64Type(), at);
    addInto(b, b.shift(table, at), of(value));
  }
}

void Captures::add(Emitter &e, KeptFunction &grad, const Site &site, ScoreFunction::Values &known,
                   Value keep, Value unit, Value group, Value row) {
  CpuTiles &b = e.b;
  for (Contribution &c : contributions) {
    Value value = e.splatted(grad.function.emit(b, c.op.getValue(), site, known));
    value = b.convertFloat(value, c.work);
    if (keep)
      value = b.select(keep, value, b.zero(value.getType()));
    switch (c.where) {
    case Dependence::None:
      addInto(b, e.scratch(c.row, c.work), value);
      break;
    case Dependence::Row: {
      Value number = b.add(b.mul(group, paddedRows), row);
      addInto(b, b.shift(e.scratch(c.head, c.work), b.mul(number, c.head.stride)), value);
      break;
    }
    case Dependence::Column: {
      // Each block begins at a column that is a multiple of the block's size. The remainder is
      // therefore the number of the column within its block.
      Value block = b.rem(site.column, c.tile.stride);
      addInto(b, b.shift(e.scratch(c.tile, c.work), block), value);
      break;
    }
    case Dependence::Both:
      addToTable(e, grad, c, site, known, value, keep, unit);
    }
  }
}

void Captures::endTile(Emitter &e, Value group) {
  for (const Contribution &c : contributions)
    if (c.where == Dependence::None) {
      Value sum = e.b.load(VectorType::get({c.tile.stride}, c.work), e.scratch(c.tile, c.work));
      addInto(e.b, e.b.shift(e.scratch(c.head, c.work), e.b.mul(group, c.head.stride)), sum);
    }
}

void Captures::endBlock(Emitter &e, const Head &head, Value firstCol, Value cols) {
  CpuTiles &b = e.b;
  for (const Contribution &c : contributions)
    if (c.where == Dependence::Column) {
      Pointer to = b.shift(totals(e, c, head, Value(), shape.cols), firstCol),
              from = e.scratch(c.tile, c.work);
      b.loop(b.constant(0), cols, 1,
             [&](Value col) { b.store(b.load(c.work, b.shift(from, col)), b.shift(to, col)); });
    }
}

void Captures::endHead(Emitter &e, const Head &head, Value group, Value chunk) {
  CpuTiles &b = e.b;
  for (const Contribution &c : contributions) {
    if (c.where != Dependence::None && c.where != Dependence::Row)
      continue;
    int64_t rows = c.where == Dependence::None ? 1 : shape.rows,
            padded = c.where == Dependence::None ? 1 : paddedRows;
    Pointer to = totals(e, c, head, chunk, rows), from = e.scratch(c.head, c.work);
    from = b.shift(from, b.mul(group, padded * c.head.stride));
    auto vector = VectorType::get({c.head.stride}, c.work);
    b.loop(b.constant(0), b.constant(rows), 1, [&](Value row) {
      Value sum = b.sumOfLanes(b.load(vector, b.shift(from, b.mul(row, c.head.stride))));
      b.store(b.first(sum), b.shift(to, row));
    });
  }
}

bool Captures::hasShared() const {
  return llvm::any_of(contributions, [&](const Contribution &c) {
    return c.where == Dependence::Both && !gradients[c.gradient].isPrivate;
  });
}

/// Emits the phase that clears the sums to which units add. Each unit of this phase clears the sums
/// of one gradient.
void Captures::emitClear(Emitter &e) {
  CpuTiles &b = e.b;
  for (auto [number, gradient] : llvm::enumerate(gradients)) {
    if (gradient.result.use_empty())
      continue;
    Value mine =
        b.both(b.isLess(e.begin, b.constant(number + 1)), b.isLess(b.constant(number), e.end));
    b.when(mine, [&, &gradient = gradient] {
      clear(e, sumOf(e, gradient), gradient.type.getNumElements(), gradient.work);
    });
  }
}

void Captures::emitFinish(Emitter &e, KeptFunction &grad, const Units &units) {
  CpuTiles &b = e.b;
  auto emitContribution = [&](const Contribution &c) {
    if (c.where == Dependence::Both)
      return;
    ContributeOp contribute = c.op;
    const Gradient &gradient = gradients[c.gradient];
    Pointer sum = sumOf(e, gradient);
    int64_t count = c.where == Dependence::None  ? 1
                    : c.where == Dependence::Row ? shape.rows
                                                 : shape.cols;
    int64_t parts = c.where == Dependence::Column ? 1 : chunks;
    b.loop(b.constant(0), b.constant(shape.batch * shape.heads), 1, [&](Value number) {
      Head head{b.div(number, shape.heads), b.rem(number, shape.heads), Value()};
      b.loop(b.constant(0), b.constant(count), 1, [&](Value i) {
        Site site = siteOf(b, head);
        (c.where == Dependence::Row ? site.q : site.column) = i;
        ScoreFunction::Values known;
        Value position =
            grad.function.emitPosition(b, gradient.type, contribute.getIndices(), site, known);
        if (!position.getType().isInteger(64))
          position = arith::ExtSIOp::create(b, b.loc, b.getI64Type(), position);
        Pointer to = b.shift(sum, position);
        b.loop(b.constant(0), b.constant(parts), 1, [&](Value chunk) {
          Pointer from = totals(e, c, head, parts == chunks ? chunk : Value(), count);
          addInto(b, to, b.load(c.work, b.shift(from, i)));
        });
      });
    });
  };
  for (auto [number, gradient] : llvm::enumerate(gradients)) {
    if (gradient.result.use_empty())
      continue;
    Value mine =
        b.both(b.isLess(e.begin, b.constant(number + 1)), b.isLess(b.constant(number), e.end));
    b.when(mine, [&, &gradient = gradient, number = number] {
      Pointer sum = sumOf(e, gradient), out = e.destination(kernel, gradient.result);
      int64_t count = gradient.type.getNumElements();
      if (!hasShared())
        clear(e, sum, count, gradient.work);
      if (gradient.isPrivate)
        b.loop(b.constant(0), b.constant(units.count(shape)), 1, [&](Value unit) {
          Pointer table = tableOf(e, gradient, unit);
          b.loop(b.constant(0), b.constant(count), 1, [&](Value i) {
            addInto(b, b.shift(sum, i), b.load(gradient.work, b.shift(table, i)));
          });
        });
      for (const Contribution &c : contributions)
        if (c.gradient == number)
          emitContribution(c);
      if (!gradient.isDirect)
        b.loop(b.constant(0), b.constant(count), 1, [&](Value i) {
          b.store(b.convertFloat(b.load(gradient.work, b.shift(sum, i)), out.type),
                  b.shift(out, i));
        });
    });
  }
}
