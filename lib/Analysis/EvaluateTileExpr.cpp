//===- EvaluateTileExpr.cpp - Values of integers of a tile ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the integer that a TileExpr has for given symbols, emits the ops that compute it, and
// prints it. Each function walks the tree once, and visits a shared node at each occurrence. The
// constructors of TileExpr limit the number of visits.
//
//===----------------------------------------------------------------------===//

#include "TileExprNode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

template <typename T>
static T lookUp(TileExpr::Symbol symbol, const TileSymbols<T> &symbols) {
  switch (symbol) {
  case TileExpr::Symbol::Begin:
    return symbols.begin;
  case TileExpr::Symbol::End:
    return symbols.end;
  case TileExpr::Symbol::Batch:
    return symbols.batch;
  default:
    assert(symbol == TileExpr::Symbol::Head && "rows and columns do not occur in bounds");
    return symbols.head;
  }
}

int64_t TileExpr::evaluate(const TileSymbols<int64_t> &symbols) const {
  auto in = [&](unsigned i) { return node->operands[i].evaluate(symbols); };
  switch (node->kind) {
  case Kind::Constant:
    return node->number;
  case Kind::Symbol:
    return lookUp(node->symbol, symbols);
  case Kind::Scalar:
  case Kind::Opaque:
    return std::clamp(symbols.scalar(node->value), -far, far);
  case Kind::Sum: {
    int64_t value = node->number;
    for (auto [i, factor] : llvm::enumerate(node->factors))
      value += factor * in(i);
    return value;
  }
  case Kind::FloorDiv:
    return llvm::divideFloorSigned(in(0), node->number);
  case Kind::Min:
    return std::min(in(0), in(1));
  case Kind::Max:
    return std::max(in(0), in(1));
  case Kind::Choose:
    return in(0) >= 0 ? in(1) : in(2);
  }
  llvm_unreachable("all kinds are above");
}

static Value emitFloorDiv(OpBuilder &b, Location loc, Value x, int64_t divisor, bool isNatural) {
  Value by = arith::ConstantIndexOp::create(b, loc, divisor);
  if (isNatural)
    return arith::DivUIOp::create(b, loc, x, by);
  // For x < 0, floor(x / divisor) is -1 - (-1 - x) / divisor, in which -1 - x is not negative.
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        minusOne = arith::ConstantIndexOp::create(b, loc, -1);
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, zero);
  Value mirrored = arith::SubIOp::create(b, loc, minusOne, x);
  Value natural = arith::SelectOp::create(b, loc, isNegative, mirrored, x);
  Value quotient = arith::DivUIOp::create(b, loc, natural, by);
  Value back = arith::SubIOp::create(b, loc, minusOne, quotient);
  return arith::SelectOp::create(b, loc, isNegative, back, quotient);
}

/// Emits a scalar of the region as an index, clamped to ±far.
static Value emitScalar(OpBuilder &b, Location loc, Value scalar) {
  Type type = scalar.getType();
  if (type.isInteger(1))
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), scalar);
  if (!type.isIndex())
    scalar = arith::IndexCastOp::create(b, loc, b.getIndexType(), scalar);
  if (!type.isIndex() && type.getIntOrFloatBitWidth() <= 32)
    return scalar;
  Value low = arith::ConstantIndexOp::create(b, loc, -TileExpr::far);
  Value high = arith::ConstantIndexOp::create(b, loc, TileExpr::far);
  return arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, scalar, low), high);
}

Value TileExpr::emit(OpBuilder &b, Location loc, const TileSymbols<Value> &symbols) const {
  auto in = [&](unsigned i) { return node->operands[i].emit(b, loc, symbols); };
  auto constantOf = [&](int64_t v) -> Value { return arith::ConstantIndexOp::create(b, loc, v); };
  switch (node->kind) {
  case Kind::Constant:
    return constantOf(node->number);
  case Kind::Symbol:
    return lookUp(node->symbol, symbols);
  case Kind::Scalar:
  case Kind::Opaque:
    return emitScalar(b, loc, symbols.scalar(node->value));
  case Kind::Sum: {
    Value value;
    for (auto [i, factor] : llvm::enumerate(node->factors)) {
      Value term = in(i);
      if (factor != 1)
        term = arith::MulIOp::create(b, loc, term, constantOf(factor));
      value = value ? Value(arith::AddIOp::create(b, loc, value, term)) : term;
    }
    return node->number ? Value(arith::AddIOp::create(b, loc, value, constantOf(node->number)))
                        : value;
  }
  case Kind::FloorDiv:
    return emitFloorDiv(b, loc, in(0), node->number, node->operands[0].range().lo >= 0);
  case Kind::Min: {
    Value x = in(0), y = in(1);
    return arith::MinSIOp::create(b, loc, x, y);
  }
  case Kind::Max: {
    Value x = in(0), y = in(1);
    return arith::MaxSIOp::create(b, loc, x, y);
  }
  case Kind::Choose: {
    Value condition = in(0), yes = in(1), no = in(2);
    Value holds =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, condition, constantOf(0));
    return arith::SelectOp::create(b, loc, holds, yes, no);
  }
  }
  llvm_unreachable("all kinds are above");
}

void TileExpr::print(raw_ostream &os, StringRef tile) const {
  auto list = [&](StringRef name) {
    os << name << '(';
    llvm::interleaveComma(node->operands, os, [&](const TileExpr &o) { o.print(os, tile); });
    os << ')';
  };
  switch (node->kind) {
  case Kind::Constant:
    os << node->number;
    return;
  case Kind::Symbol:
    switch (node->symbol) {
    case Symbol::Begin:
      os << tile << '0';
      return;
    case Symbol::End:
      os << tile << '1';
      return;
    case Symbol::Batch:
      os << 'b';
      return;
    case Symbol::Head:
      os << 'h';
      return;
    case Symbol::Row:
      os << 'q';
      return;
    case Symbol::Column:
      os << 'k';
      return;
    }
    return;
  case Kind::Scalar:
    os << "scalar";
    return;
  case Kind::Opaque:
    os << "data";
    return;
  case Kind::Sum: {
    bool first = true;
    auto sign = [&](int64_t v) {
      os << (v < 0 ? (first ? "-" : " - ") : (first ? "" : " + "));
      first = false;
      return v < 0 ? -v : v;
    };
    for (auto [factor, term] : llvm::zip_equal(node->factors, node->operands)) {
      int64_t size = sign(factor);
      bool inParentheses = size != 1 && term.kind() == Kind::FloorDiv;
      if (size != 1)
        os << size << " * ";
      os << (inParentheses ? "(" : "");
      term.print(os, tile);
      os << (inParentheses ? ")" : "");
    }
    if (node->number)
      os << sign(node->number);
    return;
  }
  case Kind::FloorDiv: {
    bool isSum = node->operands[0].kind() == Kind::Sum;
    os << (isSum ? "(" : "");
    node->operands[0].print(os, tile);
    os << (isSum ? ")" : "") << " / " << node->number;
    return;
  }
  case Kind::Min:
    return list("min");
  case Kind::Max:
    return list("max");
  case Kind::Choose:
    os << '(';
    node->operands[0].print(os, tile);
    os << " >= 0 ? ";
    node->operands[1].print(os, tile);
    os << " : ";
    node->operands[2].print(os, tile);
    os << ')';
    return;
  }
}
