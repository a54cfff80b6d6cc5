//===- SquareSums.cpp - Sums of squares of gradients ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The order of additions is the same on every mesh: first the blocks of a piece, then the pieces of
// a unit, then the units (AddStepBlock.cpp has a picture). The order inside a kernel may depend on
// the shapes of its tensors, so a program with all pieces of a gradient reads one piece at a time.
//
//===----------------------------------------------------------------------===//

#include "SquareSums.h"
#include "Elementwise.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isGradientSplit(UnitOp unit, StringRef axis) {
  return axis == tensorAxis ? unit->hasAttr(tensorSplitAttr)
                            : llvm::is_contained(unit.getOptimizerAxes(), axis);
}

Type fsdp::getSquaresType(const Program &program) {
  bool anyF64 = llvm::any_of(program.getReturn().getOperands().drop_front(),
                             [](Value grad) { return getElementTypeOrSelf(grad).isF64(); });
  Builder builder(func::FuncOp(program.func).getContext());
  return anyF64 ? builder.getF64Type() : builder.getF32Type();
}

/// Returns the size of the blocks whose squares are summed first: the largest power of two up to
/// 1024 that divides a piece.
static int64_t getBlockSize(int64_t pieceSize) {
  return std::min<int64_t>(1024, pieceSize & -pieceSize);
}

/// Builds, for each row of a matrix, the sum of its elements or, if `square`, of their squares.
static Value createRowSums(OpBuilder &builder, Location loc, Value matrix, Type type, bool square) {
  auto rows = cast<RankedTensorType>(matrix.getType()).getDimSize(0);
  Value zeros = createZeros(builder, loc, RankedTensorType::get({rows}, type));
  MLIRContext *context = builder.getContext();
  AffineMap identity = builder.getMultiDimIdentityMap(2);
  AffineMap row = AffineMap::get(2, 0, getAffineDimExpr(0, context));
  return linalg::GenericOp::create(
             builder, loc, zeros.getType(), matrix, zeros, ArrayRef{identity, row},
             ArrayRef{utils::IteratorType::parallel, utils::IteratorType::reduction},
             [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
               ImplicitLocOpBuilder b(nestedLoc, nested);
               Value x = castFloat(b, args[0], type);
               if (square)
                 x = arith::MulFOp::create(b, x, x);
               linalg::YieldOp::create(b, ValueRange{arith::AddFOp::create(b, args[1], x)});
             })
      .getResult(0);
}

/// Views a 1-D tensor as a matrix with `columns` columns.
static Value createRows(OpBuilder &builder, Location loc, Value flat, int64_t columns) {
  auto type = cast<RankedTensorType>(flat.getType());
  SmallVector<int64_t> shape{type.getDimSize(0) / columns, columns};
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), flat,
                                       ArrayRef<ReassociationIndices>{{0, 1}});
}

/// Builds the sum of the squares of a 1-D tensor, a scalar.
static Value createPieceSquares(OpBuilder &builder, Location loc, Value piece, Type type) {
  int64_t size = cast<RankedTensorType>(piece.getType()).getDimSize(0), block = getBlockSize(size);
  Value blocks = createRowSums(builder, loc, createRows(builder, loc, piece, block), type,
                               /*square=*/true);
  Value sum = createRowSums(builder, loc, createRows(builder, loc, blocks, size / block), type,
                            /*square=*/false);
  return createElementView(builder, loc, sum, 0);
}

/// Builds the sum ((x0 + x1) + x2) + ... of scalars.
static Value createChain(OpBuilder &builder, Location loc, ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts.front();
  Value out = createEmpty(builder, loc, parts.front().getType());
  return createElementwise(builder, loc, parts, out,
                           [](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value sum = args.front();
                             for (Value part : args.drop_front().drop_back())
                               sum = arith::AddFOp::create(b, sum, part);
                             return {sum};
                           })
      .front();
}

Value fsdp::createVector(OpBuilder &builder, Location loc, ArrayRef<Value> scalars) {
  auto type = cast<RankedTensorType>(scalars.front().getType());
  Value out = createEmpty(builder, loc, type.clone({int64_t(scalars.size())}));
  return createElementwise(builder, loc, scalars, out,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value index = linalg::IndexOp::create(b, 0);
                             Value value = args.front();
                             for (auto [i, arg] : llvm::enumerate(args.drop_back().drop_front())) {
                               Value here = arith::ConstantIndexOp::create(b, i + 1);
                               Value isHere =
                                   arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, here);
                               value = arith::SelectOp::create(b, isHere, arg, value);
                             }
                             return {value};
                           })
      .front();
}

/// Builds the index at + i · stride.
static OpFoldResult addIndices(OpBuilder &builder, Location loc, OpFoldResult at, OpFoldResult i,
                               int64_t stride) {
  std::optional<int64_t> fixedAt = getConstantIntValue(at), fixedI = getConstantIntValue(i);
  if (fixedAt && fixedI)
    return builder.getIndexAttr(*fixedAt + *fixedI * stride);
  if (fixedI == 0)
    return at;
  Value index = getValueOrCreateConstantIndexOp(builder, loc, i);
  if (stride != 1)
    index = arith::MulIOp::create(builder, loc, index,
                                  arith::ConstantIndexOp::create(builder, loc, stride));
  if (fixedAt == 0)
    return index;
  return arith::AddIOp::create(builder, loc, index,
                               getValueOrCreateConstantIndexOp(builder, loc, at))
      .getResult();
}

/// Builds a sum of consecutive pieces, beginning with piece `at`. The sum has `counts.front()`
/// terms, which are added in order. Without `counts`, the sum is the one that `getPiece` builds.
/// Otherwise each term is a sum of pieces with `counts.drop_front()`. The additions are a chain of
/// ops, or a loop if there are more than 16 terms.
static Value createSum(OpBuilder &builder, Location loc, Type type, ArrayRef<int64_t> counts,
                       OpFoldResult at, function_ref<Value(OpBuilder &, OpFoldResult)> getPiece) {
  constexpr int64_t longestChain = 16;
  if (counts.empty())
    return getPiece(builder, at);
  int64_t stride = llvm::product_of(counts.drop_front());
  auto getPart = [&](OpBuilder &b, OpFoldResult i) {
    OpFoldResult first = addIndices(b, loc, at, i, stride);
    return createSum(b, loc, type, counts.drop_front(), first, getPiece);
  };
  if (counts.front() <= longestChain) {
    SmallVector<Value> parts;
    for (int64_t i = 0; i < counts.front(); ++i)
      parts.push_back(getPart(builder, builder.getIndexAttr(i)));
    return createChain(builder, loc, parts);
  }
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  // The sum of +0 and a square is exactly the square.
  Value zero = createZeros(builder, loc, RankedTensorType::get({}, type));
  auto loop =
      scf::ForOp::create(builder, loc, constant(0), constant(counts.front()), constant(1), zero);
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  Value part = getPart(inside, loop.getInductionVar());
  auto add = [](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {arith::AddFOp::create(b, args[1], args[0])};
  };
  Value sum = createElementwise(inside, loc, part, loop.getRegionIterArg(0), add).front();
  scf::YieldOp::create(inside, loc, sum);
  return loop.getResult(0);
}

Value fsdp::createSquares(OpBuilder &builder, Location loc, Value grad, int64_t pieceSize,
                          ArrayRef<int64_t> counts, Type type) {
  auto gradType = cast<RankedTensorType>(grad.getType());
  auto getPiece = [&](OpBuilder &b, OpFoldResult index) {
    Value piece = grad;
    if (gradType.getDimSize(0) != pieceSize)
      piece = tensor::ExtractSliceOp::create(
          b, loc, gradType.clone({pieceSize}), grad,
          addIndices(b, loc, b.getIndexAttr(0), index, pieceSize),
          OpFoldResult(b.getIndexAttr(pieceSize)), OpFoldResult(b.getIndexAttr(1)));
    return createPieceSquares(b, loc, piece, type);
  };
  return createSum(builder, loc, type, counts, builder.getIndexAttr(0), getPiece);
}
