//===- ExchangeRows.cpp - Looked-up rows as collectives ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Looks up T ids per rank in a table of n · R rows. Rank r holds the R rows that begin with row r ·
// R.
//
//   unshard_rows    ids of all   all_gather                      [n · T]
//                   picked       own rows at the ids, else 0     [n · T, D]
//                   rows         reduce_scatter sum of picked    [T, D]
//
//   reduce_rows     ids of all   all_gather                      [n · T]
//                   rows of all  all_gather                      [n · T, D]
//                   table        0, plus rows of all, in order   [R + 1, D]
//                   shard        · 1/n, without the last row
//
// 1. Build `first`, the number of the rank's first row, as element r of the list 0, R, 2R, ...
// 2. In place of a row that another rank owns, read 0. Add the gradient of a row of another rank to
//    an additional row R, which is dropped.
// 3. If one program holds the whole table (the reference), build gather_rows and scatter_add_rows.
//
// In the sum over the n ranks, at most one of the n terms is not 0, so the sum is exact in any
// type. The sum changes -0 to 0, and the reference program does the same. Every rank exchanges a
// row for every id, because one rank may own the rows of all ids. O(lookups) ops.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Reshape.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXCHANGEROWSPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class RowExchange {
public:
  RowExchange(OpBuilder &builder, Operation *op, UnitOp unit, MeshOp mesh)
      : b(builder), loc(op->getLoc()), unit(unit), mesh(mesh), ranks(mesh.getAxisSize("shard")),
        columns(unit.getParam(0).getType().getDimSize(1)), rows(unit.getShardSize() / columns),
        allRows(unit.getFlatSize() / columns) {}

  Value unshard(UnshardRowsOp op);
  Value reduce(ReduceRowsOp op);

private:
  Value reshape(Value value, ArrayRef<int64_t> shape) { return buildReshape(b, loc, value, shape); }
  Value gather(Value value);
  template <typename Op>
  Value mark(Op op);
  Value createFirst();
  Value pick(Value shard, Value ids, Type element);
  Value createLocalIds(Value ids);
  Value widen(Value value);

  FlatSymbolRefAttr meshName() { return FlatSymbolRefAttr::get(mesh.getSymNameAttr()); }
  ArrayAttr axes() { return b.getStrArrayAttr({"shard"}); }

  OpBuilder &b;
  Location loc;
  UnitOp unit;
  MeshOp mesh;
  int64_t ranks, columns;
  int64_t rows, allRows; ///< number of rows of one rank and of all ranks, with padding
};

struct ExchangeRowsPass : fsdp::impl::ExchangeRowsPassBase<ExchangeRowsPass> {
  void runOnOperation() override;
  void run(func::FuncOp func, MeshOp mesh);
};

} // namespace

/// Marks an op that exchanges rows. Reports use this mark to distinguish the op from collectives of
/// whole units. They also use it to distinguish the result of the op from activations.
template <typename Op>
Value RowExchange::mark(Op op) {
  op->setAttr(FSDPDialect::rowsAttr, FlatSymbolRefAttr::get(unit.getSymNameAttr()));
  return op.getResult();
}

/// Gathers the values of all ranks into one flat list, in rank order.
Value RowExchange::gather(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value flat = reshape(value, type.getNumElements());
  auto all = type.clone({type.getNumElements() * ranks});
  return mark(AllGatherOp::create(b, loc, all, flat, meshName(), axes()));
}

Value RowExchange::createFirst() {
  auto each = RankedTensorType::get({ranks}, b.getI64Type()),
       own = RankedTensorType::get({1}, b.getI64Type());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    Value rank = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
    return {arith::MulIOp::create(b, rank, arith::ConstantIntOp::create(b, rows, 64))};
  };
  Value firsts = createElementwise(b, loc, {}, createEmpty(b, loc, each), body).front();
  return createElementView(b, loc, OwnPieceOp::create(b, loc, own, firsts, meshName(), axes()), 0);
}

/// `ids` are the ids of all ranks. Builds the index of each id's row in the shard of this rank. The
/// index is `rows` if another rank owns the row.
Value RowExchange::createLocalIds(Value ids) {
  auto type =
      RankedTensorType::get(cast<RankedTensorType>(ids.getType()).getShape(), b.getI64Type());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    Value id = args[0].getType().isInteger(64)
                   ? args[0]
                   : Value(arith::ExtSIOp::create(b, b.getI64Type(), args[0]));
    Value local = arith::SubIOp::create(b, id, args[1]),
          count = arith::ConstantIntOp::create(b, rows, 64);
    // The comparison is unsigned, so that a negative number is not less than `count`.
    Value own = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, local, count);
    return {arith::SelectOp::create(b, own, local, count)};
  };
  return createElementwise(b, loc, {ids, createFirst()}, createEmpty(b, loc, type), body).front();
}

/// Builds a tensor with one row per id, of element type `element`. The row of an id is the row of
/// the table if this rank owns it, and zero otherwise.
Value RowExchange::pick(Value shard, Value ids, Type element) {
  Value table = reshape(shard, {rows, columns}), local = createLocalIds(ids);
  auto type = RankedTensorType::get({cast<RankedTensorType>(ids.getType()).getDimSize(0), columns},
                                    element);
  AffineMap all = b.getMultiDimIdentityMap(2);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto picked = linalg::GenericOp::create(
      b, loc, type, local, createEmpty(b, loc, type), ArrayRef{all.dropResult(1), all}, loops,
      [&](OpBuilder &nested, Location at, ValueRange args) {
        ImplicitLocOpBuilder b(at, nested);
        Value count = arith::ConstantIntOp::create(b, rows, 64),
              zero = arith::ConstantIntOp::create(b, 0, 64);
        Value own = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, args[0], count);
        Value row = arith::IndexCastOp::create(b, b.getIndexType(),
                                               arith::SelectOp::create(b, own, args[0], zero));
        Value x =
            tensor::ExtractOp::create(b, table, ValueRange{row, linalg::IndexOp::create(b, 1)});
        x = arith::SelectOp::create(b, own, castFloat(b, x, element),
                                    createConstant(b, element, 0));
        linalg::YieldOp::create(b, x);
      });
  return picked.getResult(0);
}

Value RowExchange::unshard(UnshardRowsOp op) {
  auto type = cast<RankedTensorType>(op.getRows().getType());
  if (mesh.getNumRanks() == 1) {
    Value table = reshape(op.getShard(), {allRows, columns});
    auto stored = type.clone(getElementTypeOrSelf(table));
    Value found = GatherRowsOp::create(b, loc, stored, table, op.getIds());
    auto addZero = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
      Type wide = getComputeType(args[1].getType());
      Value x = castFloat(b, castFloat(b, args[0], args[1].getType()), wide);
      return {
          castFloat(b, arith::AddFOp::create(b, x, createConstant(b, wide, 0)), args[1].getType())};
    };
    return createElementwise(b, loc, found, createEmpty(b, loc, type), addZero).front();
  }
  Value picked = pick(op.getShard(), gather(op.getIds()), type.getElementType());
  auto own = type.clone({type.getNumElements()});
  auto sum = ReductionKindAttr::get(b.getContext(), ReductionKind::sum);
  Value whole = reshape(picked, own.getNumElements() * ranks);
  Value rows = mark(FlatReduceScatterOp::create(b, loc, own, whole, meshName(), axes(), sum));
  return reshape(rows, type.getShape());
}

/// Converts the elements to the type in which gradients are added.
Value RowExchange::widen(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Type wide = getComputeType(type.getElementType());
  if (type.getElementType() == wide)
    return value;
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {castFloat(b, args[0], wide)};
  };
  return createElementwise(b, loc, value, createEmpty(b, loc, type.clone(wide)), body).front();
}

Value RowExchange::reduce(ReduceRowsOp op) {
  auto type = cast<RankedTensorType>(op.getShard().getType());
  auto sent = cast<RankedTensorType>(op.getRows().getType());
  Type wide = getComputeType(sent.getElementType());
  auto tableOf = [&](int64_t rows) { return RankedTensorType::get({rows, columns}, wide); };
  auto finish = [&](Value table, double factor) {
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
      Value mean = args[0];
      if (factor != 1)
        mean = arith::MulFOp::create(b, mean, createConstant(b, wide, factor));
      return {castFloat(b, castFloat(b, mean, sent.getElementType()), args[1].getType())};
    };
    return createElementwise(b, loc, reshape(table, type.getShape()), createEmpty(b, loc, type),
                             body)
        .front();
  };
  if (mesh.getNumRanks() == 1)
    return finish(mark(ScatterAddRowsOp::create(b, loc, tableOf(allRows), widen(op.getRows()),
                                                op.getIds(), Value())),
                  1);
  Value ids = gather(op.getIds());
  Value all = reshape(gather(op.getRows()), {sent.getDimSize(0) * ranks, columns});
  Value table = mark(ScatterAddRowsOp::create(b, loc, tableOf(rows + 1), widen(all),
                                              createLocalIds(ids), Value()));
  auto at = [&](int64_t value) -> OpFoldResult { return b.getIndexAttr(value); };
  Value own = tensor::ExtractSliceOp::create(b, loc, tableOf(rows), table, {at(0), at(0)},
                                             {at(rows), at(columns)}, {at(1), at(1)});
  Value gradient = finish(own, op.getReduction() == ReductionKind::avg ? 1.0 / ranks : 1.0);
  gradient.getDefiningOp()->setAttr(FSDPDialect::unitAttr, op.getUnitAttr());
  return gradient;
}

void ExchangeRowsPass::run(func::FuncOp func, MeshOp mesh) {
  func.walk([&](Operation *op) {
    auto lookup = dyn_cast<UnshardRowsOp>(op);
    auto reduction = dyn_cast<ReduceRowsOp>(op);
    if (!lookup && !reduction)
      return;
    auto name = lookup ? lookup.getUnitAttr() : reduction.getUnitAttr();
    OpBuilder builder(op);
    RowExchange exchange(builder, op, SymbolTable::lookupNearestSymbolFrom<UnitOp>(op, name), mesh);
    op->getResult(0).replaceAllUsesWith(lookup ? exchange.unshard(lookup)
                                               : exchange.reduce(reduction));
    op->erase();
    ++(lookup ? numLookups : numReductions);
  });
}

void ExchangeRowsPass::runOnOperation() {
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    auto name = func->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
    auto mesh = name ? SymbolTable::lookupNearestSymbolFrom<MeshOp>(func, name) : MeshOp();
    if (mesh)
      run(func, mesh);
  }
}
