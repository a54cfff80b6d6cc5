//===- CheckLookups.cpp - Lookups that are checked at run time --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks the ids of a lookup at run time if their range is not known at compile time:
//
//   %rows = gather_rows %table[%ids]     %in = generic ins(%ids) { min(max(%id, 0), extent - 1) }
//                                   ->   %rows = gather_rows %table[%in]
//                                        %bad = generic ins(%ids)
//                                               { umax(%id in [0, extent) ? 0 : %id) }
//                                        return %loss,
//                                          %bad {fsdp.lookup = {location = "m.mlir:7:12", ..}}
//
//  1. Clamp the ids, so that no kernel reads outside the table.
//  2. Replace valid ids by 0, and reduce the ids to one i64 by an unsigned maximum, whose result
//     does not depend on the order of the ids. The i64 is 0 if all ids are valid, and else an id
//     that is out of range.
//  3. Return the i64 as an additional result of the function. The update skips a step in which this
//     result is not 0 (AddStepBlock.cpp).
//
// Targets that a loss ignores are valid and are not clamped. The time is O(ids).
//
//===----------------------------------------------------------------------===//

#include "Lookups/CheckLookups.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdpcommon/ShortText.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the first file location of an op as text. If the op has no such location, returns its
/// name.
static std::string describeLocation(Operation *op) {
  std::string text;
  op->getLoc()->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    // The name of a file may have any bytes, but attributes have printable texts only.
    text = fsdpcommon::shortText(file.getFilename().getValue(), StringRef::npos) + ":" +
           std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
    return WalkResult::interrupt();
  });
  return text.empty() ? "'" + op->getName().getStringRef().str() + "'" : text;
}

/// Extends an id to i64. Integers are sign-extended, except that i1 becomes 0 or 1.
static Value widen(OpBuilder &b, Location loc, Value id) {
  if (id.getType().isInteger(64))
    return id;
  if (id.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), id);
  if (id.getType().isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), id);
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), id);
}

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

/// Computes min(max(id, 0), extent - 1) for each id. Does not change ids that the loss ignores.
static Value clamp(const RowLookup &lookup, OpBuilder &b) {
  Location loc = lookup.op->getLoc();
  auto type = cast<RankedTensorType>(lookup.ids.getType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value id = widen(b, loc, args[0]);
    Value low = arith::MaxSIOp::create(b, loc, id, constant(b, loc, 0));
    Value in = arith::MinSIOp::create(b, loc, low, constant(b, loc, lookup.extent - 1));
    if (type.getElementType().isIndex())
      in = arith::IndexCastOp::create(b, loc, b.getIndexType(), in);
    else if (!type.getElementType().isInteger(64))
      in = arith::TruncIOp::create(b, loc, type.getElementType(), in);
    if (lookup.ignore) {
      Value isIgnored = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, id,
                                              constant(b, loc, *lookup.ignore));
      in = arith::SelectOp::create(b, loc, isIgnored, args[0], in);
    }
    linalg::YieldOp::create(b, loc, in);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(type), lookup.ids, empty, maps, loops, body)
      .getResult(0);
}

/// Computes the unsigned maximum of the ids that are out of range, or 0 if all ids are in range.
static Value findWorst(const RowLookup &lookup, OpBuilder &b) {
  Location loc = lookup.op->getLoc();
  int64_t rank = cast<RankedTensorType>(lookup.ids.getType()).getRank();
  auto scalar = RankedTensorType::get({}, b.getI64Type());
  Value empty = tensor::EmptyOp::create(b, loc, scalar.getShape(), b.getI64Type());
  Value none = linalg::FillOp::create(b, loc, constant(b, loc, 0), empty).getResult(0);
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank),
                              AffineMap::get(rank, 0, b.getContext())};
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::reduction);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value id = widen(b, loc, args[0]);
    Value isIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, id,
                                       constant(b, loc, lookup.extent));
    if (lookup.ignore) {
      Value isIgnored = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, id,
                                              constant(b, loc, *lookup.ignore));
      isIn = arith::OrIOp::create(b, loc, isIn, isIgnored);
    }
    Value bad = arith::SelectOp::create(b, loc, isIn, constant(b, loc, 0), id);
    Value worst = arith::MaxUIOp::create(b, loc, args[1], bad);
    linalg::YieldOp::create(b, loc, worst);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(scalar), lookup.ids, none, maps, loops, body)
      .getResult(0);
}

Value fsdp::checkLookup(func::FuncOp func, const RowLookup &lookup, OpBuilder &b) {
  Value in = clamp(lookup, b), worst = findWorst(lookup, b);
  Operation *ret = func.getBody().front().getTerminator();
  NamedAttribute parts[] = {
      b.getNamedAttr("location", b.getStringAttr(describeLocation(lookup.op))),
      b.getNamedAttr("extent", b.getI64IntegerAttr(lookup.extent)),
      b.getNamedAttr("what", b.getStringAttr(lookup.what))};
  NamedAttribute mark = b.getNamedAttr(lookupAttr, b.getDictionaryAttr(parts));
  ret->insertOperands(ret->getNumOperands(), worst);
  if (failed(func.insertResult(func.getNumResults(), worst.getType(), b.getDictionaryAttr(mark))))
    llvm_unreachable("a function takes a further result");
  lookup.op->emitRemark("this lookup is checked in each step: its ids are not known to be in [0, ")
      << lookup.extent << "), the " << lookup.what << "; an id outside stops the run";
  return in;
}

bool fsdp::isLookupCheck(func::FuncOp func, unsigned index) {
  return static_cast<bool>(func.getResultAttr(index, lookupAttr));
}

bool fsdp::isConstantIds(Value ids) {
  while (Operation *op = ids.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
             tensor::ExtractSliceOp>(op))
      return matchPattern(op, m_Constant());
    ids = op->getOperand(0);
  }
  return false;
}
