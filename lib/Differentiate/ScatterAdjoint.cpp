//===- ScatterAdjoint.cpp - Adjoint of reads at computed indices ----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If a body reads an element of a captured tensor w by `tensor.extract`, the gradient of the
// element is added to the cotangent w̄ at the same indices. Gradients of equal indices are summed:
//
//   y[n, e] = f(w[ids[n], e])     updates[n, e] = reverse of f at (n, e)
//                                 rows[n]       = ids[n]
//                                 w̄ = fsdp.scatter_add_rows updates at rows
//
// 1. The columns of w̄ correspond to those trailing indices of the extract that are loop indices,
//    where the loop covers a whole dimension. In the example, e is the only such index.
// 2. One generic computes the updates by a reverse sweep of the body. The first loops of this
//    generic are the loops over rows. Another generic computes the row number, which is the
//    linearised index that the leading indices form.
// 3. w̄ is reshaped to [rows, columns]. If step 1 finds no column, the number of columns is 1.
//
//===----------------------------------------------------------------------===//

#include "StructuredAdjoint.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Reshape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::scatterAddRows(Value v, Value updates, Value ids, int64_t columns,
                          Cotangents &cotangents) {
  OpBuilder &b = cotangents.b;
  Location loc = updates.getLoc();
  auto type = cast<RankedTensorType>(v.getType());
  Type work = getWorkingType(type.getElementType());
  int64_t rows = cast<RankedTensorType>(ids.getType()).getNumElements();
  Value previous = cotangents.take(v);
  bool joins = previous && getElementTypeOrSelf(previous) == work;
  auto table = RankedTensorType::get({type.getNumElements() / columns, columns}, work);
  Value init = joins ? buildReshape(b, loc, previous, table.getShape()) : Value();
  updates = buildReshape(b, loc, convertElements(b, loc, updates, work), {rows, columns});
  ids = buildReshape(b, loc, ids, {rows});
  Value sum = ScatterAddRowsOp::create(b, loc, table, updates, ids, init);
  cotangents.add(v, buildReshape(b, loc, sum, type.getShape()));
  if (previous && !joins)
    cotangents.add(v, previous);
}

/// Returns, for each element of `ids`, the position of the first equal element. The positions are
/// floats, because there are kernels for minima of floats. The float type represents all positions
/// exactly.
static Value findFirst(OpBuilder &b, Location loc, Value ids) {
  auto type = cast<RankedTensorType>(ids.getType());
  double count = type.getDimSize(0);
  Type place = count < (1 << 24) ? Type(b.getF32Type()) : b.getF64Type();
  auto places = type.clone(place);
  auto constant = [&](OpBuilder &b, Location loc) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(place, count));
  };
  Value empty = tensor::EmptyOp::create(b, loc, places.getShape(), place);
  Value last = linalg::FillOp::create(b, loc, ValueRange(constant(b, loc)), empty).getResult(0);
  AffineMap row = AffineMap::get(2, 0, b.getAffineDimExpr(0)),
            column = AffineMap::get(2, 0, b.getAffineDimExpr(1));
  auto first = linalg::GenericOp::create(
      b, loc, places, ValueRange{ids, ids}, last, ArrayRef{row, column, row}, inferIterators(row),
      [&](OpBuilder &b, Location loc, ValueRange x) {
        Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x[0], x[1]);
        Value here =
            arith::IndexCastOp::create(b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, 1));
        here = arith::SIToFPOp::create(b, loc, place, here);
        Value term = arith::SelectOp::create(b, loc, equal, here, constant(b, loc));
        linalg::YieldOp::create(b, loc, ValueRange(arith::MinimumFOp::create(b, loc, x[2], term)));
      });
  return buildElementwise(b, loc, first.getResult(0), b.getI64Type(),
                          [](OpBuilder &b, Location loc, ValueRange x) -> Value {
                            return arith::FPToSIOp::create(b, loc, b.getI64Type(), x[0]);
                          });
}

Value fsdp::addEqualRows(OpBuilder &b, Location loc, Value updates, Value ids) {
  auto type = cast<RankedTensorType>(updates.getType());
  Type work = getWorkingType(type.getElementType());
  auto rows = RankedTensorType::get(
      {cast<RankedTensorType>(ids.getType()).getDimSize(0), type.getShape().back()}, work);
  updates = buildReshape(b, loc, convertElements(b, loc, updates, work), rows.getShape());
  return ScatterAddRowsOp::create(b, loc, rows, updates, findFirst(b, loc, ids), Value());
}

/// Adds `indices` to `values`, and also all values of the body from which `indices` are computed.
void StructuredAdjoint::sliceIndices(ValueRange indices, llvm::SetVector<Value> &values) {
  SmallVector<Value> worklist(indices);
  while (!worklist.empty()) {
    Value v = worklist.pop_back_val();
    if (v.getParentBlock() != &body || !values.insert(v))
      continue;
    if (Operation *def = v.getDefiningOp())
      llvm::append_range(worklist, def->getOperands());
  }
}

bool StructuredAdjoint::isConstantOver(ValueRange values, unsigned loop) {
  llvm::SetVector<Value> sliced;
  sliceIndices(values, sliced);
  return llvm::none_of(sliced, [&](Value v) {
    if (auto argument = dyn_cast<BlockArgument>(v))
      return op.getMatchingIndexingMap(op.getMatchingOpOperand(argument)).isFunctionOfDim(loop);
    auto index = v.getDefiningOp<linalg::IndexOp>();
    return index && index.getDim() == loop;
  });
}

/// Returns the number of trailing indices of `extract` that are loop indices. Each of these loops
/// covers a whole dimension of the tensor, and no other index depends on it.
unsigned StructuredAdjoint::countColumns(tensor::ExtractOp extract) {
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  unsigned columns = 0;
  for (int i = type.getRank() - 1; i >= 0; --i, ++columns) {
    auto loop = extract.getIndices()[i].getDefiningOp<linalg::IndexOp>();
    if (!loop || ranges[loop.getDim()] != type.getDimSize(i))
      break;
    SmallVector<Value> others(extract.getIndices());
    others.erase(others.begin() + i);
    if (!isConstantOver(others, loop.getDim()))
      break;
  }
  return columns;
}

/// Builds an i64 tensor of row numbers, whose dimensions are the loops of the rows. A row number is
/// the linearised index that the leading indices of `extract` form.
Value StructuredAdjoint::buildRowIds(tensor::ExtractOp extract, ArrayRef<unsigned> rowLoops,
                                     unsigned numRowIndices) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape;
  SmallVector<AffineExpr> renamed(op.getNumLoops(), b.getAffineConstantExpr(0));
  for (auto [position, loop] : llvm::enumerate(rowLoops)) {
    renamed[loop] = b.getAffineDimExpr(position);
    shape.push_back(ranges[loop]);
  }
  llvm::SetVector<Value> sliced;
  sliceIndices(extract.getIndices().take_front(numRowIndices), sliced);
  SmallVector<Value> sources, primals;
  SmallVector<AffineMap> maps;
  for (const Input &in : inputs)
    if (in.role == Input::Primal && sliced.contains(in.primal)) {
      sources.push_back(in.source);
      primals.push_back(in.primal);
      maps.push_back(in.map.replaceDimsAndSymbols(renamed, {}, rowLoops.size(), 0));
    }
  maps.push_back(b.getMultiDimIdentityMap(rowLoops.size()));
  ArrayRef<int64_t> extents = cast<RankedTensorType>(extract.getTensor().getType()).getShape();
  auto emitBody = [&](OpBuilder &b, Location loc, ValueRange x) {
    IRMapping mapping;
    mapping.map(primals, x.drop_back());
    for (Operation &o : body.without_terminator()) {
      if (o.getNumResults() != 1 || !sliced.contains(o.getResult(0)))
        continue;
      if (auto loop = dyn_cast<linalg::IndexOp>(o)) {
        unsigned position = cast<AffineDimExpr>(renamed[loop.getDim()]).getPosition();
        mapping.map(loop.getResult(), linalg::IndexOp::create(b, loc, position).getResult());
      } else {
        b.clone(o, mapping);
      }
    }
    Value row = arith::ConstantIndexOp::create(b, loc, 0);
    for (unsigned i = 0; i < numRowIndices; ++i) {
      Value index = mapping.lookupOrDefault(extract.getIndices()[i]);
      if (i == 0) {
        row = index;
        continue;
      }
      row = arith::MulIOp::create(b, loc, row, arith::ConstantIndexOp::create(b, loc, extents[i]));
      row = arith::AddIOp::create(b, loc, row, index);
    }
    linalg::YieldOp::create(b, loc,
                            ValueRange(arith::IndexCastOp::create(b, loc, b.getI64Type(), row)));
  };
  Value empty = tensor::EmptyOp::create(b, loc, shape, b.getI64Type());
  SmallVector<utils::IteratorType> loops(rowLoops.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, empty.getType(), sources, empty, maps, loops, emitBody)
      .getResult(0);
}

LogicalResult StructuredAdjoint::scatter(tensor::ExtractOp extract) {
  Sweep sweep(b.getContext(), loc);
  if (failed(sweepBody(sweep)))
    return failure();
  Value gradient = sweep.gradientOf(extract.getResult());
  if (!gradient)
    return success();
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  unsigned numColumnIndices = countColumns(extract),
           numRowIndices = type.getRank() - numColumnIndices;
  SmallVector<unsigned> columnLoops, rowLoops;
  int64_t columns = 1;
  for (unsigned i = numRowIndices; i < type.getRank(); ++i) {
    columnLoops.push_back(extract.getIndices()[i].getDefiningOp<linalg::IndexOp>().getDim());
    columns *= type.getDimSize(i);
  }
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    if (!llvm::is_contained(columnLoops, d))
      rowLoops.push_back(d);
  Value ids = buildRowIds(extract, rowLoops, numRowIndices);

  SmallVector<unsigned> order(rowLoops);
  llvm::append_range(order, columnLoops);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape;
  SmallVector<AffineExpr> dims;
  for (unsigned loop : order) {
    shape.push_back(ranges[loop]);
    dims.push_back(b.getAffineDimExpr(loop));
  }
  AffineMap map = AffineMap::get(op.getNumLoops(), 0, dims, b.getContext());
  auto updates = RankedTensorType::get(shape, getWorkingType(type.getElementType()));
  Value g = build(sweep, {map, updates, /*once=*/true, Value()}, gradient);
  scatterAddRows(extract.getTensor(), g, ids, columns, cotangents);
  return success();
}
