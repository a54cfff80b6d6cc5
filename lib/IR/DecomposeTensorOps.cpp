//===- DecomposeTensorOps.cpp - Random numbers and gemm as linalg ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   random   r[i..] = philox(seed, step, first, site, row-major i)
//   gemm     t = op(A)·op(B) in f32 or f64;  y = epilogue(alpha·t + beta·C + bias)
//
// A gemm is lowered to a single contraction if alpha is 1, beta is 0 or 1, there is neither bias
// nor epilogue, and all floats are f32 or f64. The init of this contraction is a tensor of zeros if
// beta is 0, and C if beta is 1.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Decompositions.h"
#include "fsdp/IR/Philox.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using utils::IteratorType;

SmallVector<Value> fsdp::lowerToLinalg(RandomOp op, OpBuilder &b) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  unsigned rank = type.getRank();
  AffineMap none = AffineMap::get(rank, 0, b.getContext());
  SmallVector<AffineMap> maps{none, none, none, b.getMultiDimIdentityMap(rank)};
  SmallVector<IteratorType> loops(rank, IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  auto body = [&](OpBuilder &b, Location l, ValueRange key) {
    Value linear = arith::ConstantOp::create(b, l, b.getI64IntegerAttr(0));
    for (unsigned d = 0; d < rank; ++d) {
      Value size = arith::ConstantOp::create(b, l, b.getI64IntegerAttr(type.getDimSize(d)));
      Value at = arith::IndexCastOp::create(b, l, b.getI64Type(), linalg::IndexOp::create(b, l, d));
      linear = arith::AddIOp::create(b, l, arith::MulIOp::create(b, l, linear, size), at);
    }
    linalg::YieldOp::create(b, l, buildRandomElement(b, l, op, key.take_front(3), linear));
  };
  SmallVector<Value> key{op.getSeed(), op.getStep(), op.getFirst()};
  return {
      linalg::GenericOp::create(b, op.getLoc(), type, key, empty, maps, loops, body).getResult(0)};
}

/// Adds the parts of `value`, which are the indices of dimension `loop`, so that only part
/// (coordinate div copies) has a term that is not zero. Returns this part, which has type `type`.
static Value buildPick(OpBuilder &b, Value value, RankedTensorType type, unsigned loop,
                       int64_t copies, Value coordinate) {
  Location loc = value.getLoc();
  Type element = type.getElementType();
  unsigned rank = type.getRank() + 1;
  AffineMap all = b.getMultiDimIdentityMap(rank), scalar = AffineMap::get(rank, 0, b.getContext());
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops[loop] = utils::IteratorType::reduction;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  init = linalg::FillOp::create(b, loc, zero, init).getResult(0);
  return linalg::GenericOp::create(
             b, loc, type, ValueRange{value, coordinate}, init,
             ArrayRef{all, scalar, all.dropResult(loop)}, loops,
             [&](OpBuilder &at, Location, ValueRange args) {
               Value index = linalg::IndexOp::create(at, loc, loop);
               Value number = arith::IndexCastOp::create(at, loc, at.getI64Type(), index);
               Value part = args[1];
               if (copies > 1) {
                 Value divisor = arith::ConstantOp::create(at, loc, at.getI64IntegerAttr(copies));
                 part = arith::DivSIOp::create(at, loc, part, divisor);
               }
               Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, number, part);
               Value none = arith::ConstantOp::create(at, loc, at.getZeroAttr(element));
               Value term = arith::SelectOp::create(at, loc, isOwn, args[0], none);
               Value sum = arith::AddFOp::create(at, loc, args[2], term);
               linalg::YieldOp::create(at, loc, sum);
             })
      .getResult(0);
}

Value fsdp::buildOwnPart(OpBuilder &b, Value whole, const TensorSplit &split, int64_t parts,
                         Value coordinate) {
  Location loc = whole.getLoc();
  auto type = cast<RankedTensorType>(whole.getType());
  int64_t count = split.blocks.size();
  // Give the blocks, if there are several, and the parts of a block dimensions of their own.
  SmallVector<int64_t> all, own;
  SmallVector<ReassociationIndices> toAll, toOwn;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    SmallVector<int64_t> sizes{type.getDimSize(dim)};
    if (dim == split.dim)
      sizes = {count, parts, split.blocks.front() / parts};
    toAll.emplace_back();
    toOwn.emplace_back();
    for (auto [i, size] : llvm::enumerate(sizes)) {
      if (dim == split.dim && i == 0 && count == 1)
        continue;
      if (dim != split.dim || i != 1) {
        toOwn.back().push_back(own.size());
        own.push_back(size);
      }
      toAll.back().push_back(all.size());
      all.push_back(size);
    }
  }
  Value expanded = tensor::ExpandShapeOp::create(b, loc, type.clone(all), whole, toAll);
  Value part =
      buildPick(b, expanded, type.clone(own), split.dim + (count > 1), split.copies, coordinate);
  return count > 1 ? tensor::CollapseShapeOp::create(b, loc, part, toOwn) : part;
}

Value fsdp::convertFloat(OpBuilder &b, Location loc, Value v, Type to) {
  auto from = cast<FloatType>(v.getType());
  if (from == to)
    return v;
  if (from.getWidth() < cast<FloatType>(to).getWidth())
    return arith::ExtFOp::create(b, loc, to, v);
  // Convert between bf16 and f16, which have equal width, through f32.
  if (from.getWidth() == cast<FloatType>(to).getWidth())
    v = arith::ExtFOp::create(b, loc, b.getF32Type(), v);
  return arith::TruncFOp::create(b, loc, to, v);
}

static Value applyEpilogue(OpBuilder &b, Location l, Epilogue epilogue, Value x) {
  auto constant = [&](double v) -> Value {
    return arith::ConstantOp::create(b, l, b.getFloatAttr(x.getType(), v));
  };
  auto mul = [&](Value p, Value q) -> Value { return arith::MulFOp::create(b, l, p, q); };
  auto add = [&](Value p, Value q) -> Value { return arith::AddFOp::create(b, l, p, q); };
  switch (epilogue) {
  case Epilogue::none:
    return x;
  case Epilogue::relu:
    return arith::MaximumFOp::create(b, l, x, constant(0));
  case Epilogue::gelu_tanh: {
    Value cubic = add(x, mul(constant(0.044715), mul(x, mul(x, x))));
    Value t = math::TanhOp::create(b, l, mul(constant(0.79788456080286535588), cubic));
    return mul(mul(constant(0.5), x), add(constant(1), t));
  }
  }
  llvm_unreachable("an epilogue without a rule");
}

/// Builds init + op(A)·op(B).
static Value buildProduct(GemmOp op, OpBuilder &b, Value init) {
  unsigned rank = cast<RankedTensorType>(init.getType()).getRank(), batch = rank - 2;
  auto mapOf = [&](unsigned row, unsigned column, bool swap) {
    SmallVector<AffineExpr> exprs;
    for (unsigned d = 0; d < batch; ++d)
      exprs.push_back(b.getAffineDimExpr(d));
    exprs.push_back(b.getAffineDimExpr(batch + (swap ? column : row)));
    exprs.push_back(b.getAffineDimExpr(batch + (swap ? row : column)));
    return AffineMap::get(rank + 1, 0, exprs, b.getContext());
  };
  // mapOf() counts the loops after the batch loops: 0 is m, 1 is n, and 2 is k.
  ArrayAttr maps = b.getAffineMapArrayAttr(
      {mapOf(0, 2, op.getTransposeA()), mapOf(2, 1, op.getTransposeB()), mapOf(0, 1, false)});
  SmallVector<Value> factors{op.getA(), op.getB()};
  return linalg::ContractOp::create(b, op.getLoc(), init.getType(), factors, init, maps)
      .getResult(0);
}

SmallVector<Value> fsdp::lowerToLinalg(GemmOp op, OpBuilder &b) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getC().getType());
  Type element = type.getElementType();
  Type wide = element.getIntOrFloatBitWidth() < 32 ? Type(b.getF32Type()) : element;
  double alpha = op.getAlpha().convertToDouble(), beta = op.getBeta().convertToDouble();
  bool plain = alpha == 1 && !op.getBias() && op.getEpilogue() == Epilogue::none && wide == element;
  if (plain && beta == 1)
    return {buildProduct(op, b, op.getC())};
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(wide, 0));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), wide);
  Value product = buildProduct(op, b, linalg::FillOp::create(b, loc, zero, empty).getResult(0));
  if (plain && beta == 0)
    return {product};

  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<Value> ins{product};
  SmallVector<AffineMap> maps{all};
  if (beta != 0) {
    ins.push_back(op.getC());
    maps.push_back(all);
  }
  if (op.getBias()) {
    ins.push_back(op.getBias());
    maps.push_back(all.getMinorSubMap(1));
  }
  maps.push_back(all);
  auto body = [&](OpBuilder &b, Location l, ValueRange v) {
    auto times = [&](double factor, Value x) -> Value {
      x = convertFloat(b, l, x, wide);
      if (factor == 1)
        return x;
      return arith::MulFOp::create(
          b, l, arith::ConstantOp::create(b, l, b.getFloatAttr(wide, factor)), x);
    };
    Value y = times(alpha, v[0]);
    if (beta != 0)
      y = arith::AddFOp::create(b, l, y, times(beta, v[1]));
    if (op.getBias())
      y = arith::AddFOp::create(b, l, y, times(1, v[beta != 0 ? 2 : 1]));
    linalg::YieldOp::create(b, l,
                            convertFloat(b, l, applyEpilogue(b, l, op.getEpilogue(), y), element));
  };
  Value out = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  SmallVector<IteratorType> loops(type.getRank(), IteratorType::parallel);
  return {linalg::GenericOp::create(b, loc, type, ins, out, maps, loops, body).getResult(0)};
}
