//===- VocabularyChecks.cpp - Checks of a split vocabulary ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %own = %ids mod R        %r = gather_rows %table[%own]       %p = %ids div R = %t ? %r : 0
//
// Recognises what VocabularyRewrite.cpp builds. R must be the number of rows that a rank has, and
// %t the argument with `fsdp.key = "tensor"`. The lookup and its reader may read slices of %own and
// %ids, if the axis `context` splits the ids.
//
//===----------------------------------------------------------------------===//

#include "VocabularyChecks.h"
#include "SequenceChecks.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the whole value of which `value` is the own slice of a rank of another axis.
static Value findWhole(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    auto copy = dyn_cast<linalg::GenericOp>(def);
    bool isCopy =
        copy && copy.getNumDpsInputs() == 1 && copy.getBody()->without_terminator().empty();
    if (!isCopy && !isa<OwnPieceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Returns true if `value`, in the body of `op`, is the result of the `Op` of input `index`, which
/// may be converted, and of the constant `rows`.
template <typename Op>
static bool isOfRows(linalg::GenericOp op, Value value, unsigned index, int64_t rows) {
  auto divided = value.getDefiningOp<Op>();
  APInt constant;
  if (!divided || !matchPattern(divided.getRhs(), m_ConstantInt(&constant)) || constant != rows)
    return false;
  Value id = divided.getLhs();
  if (Operation *cast = id.getDefiningOp(); isa_and_nonnull<arith::ExtSIOp, arith::TruncIOp>(cast))
    id = cast->getOperand(0);
  return id == op.getBody()->getArgument(index);
}

/// Returns the op that maps the ids of a lookup to own rows, or null.
static linalg::GenericOp findOwnIds(Operation *lookup, int64_t rows) {
  auto own = findWhole(lookup->getOperand(1)).getDefiningOp<linalg::GenericOp>();
  if (!own || own.getNumDpsInputs() != 1 || own->getNumResults() != 1)
    return {};
  Value yielded = own.getBody()->getTerminator()->getOperand(0);
  return isOfRows<arith::RemSIOp>(own, yielded, 0, rows) ? own : linalg::GenericOp();
}

LogicalResult fsdp::checkOwnIds(Operation *lookup, int64_t rows,
                                function_ref<InFlightDiagnostic()> fail) {
  if (findOwnIds(lookup, rows))
    return success();
  return fail() << "expected ids modulo " << rows
                << ", because a rank of axis 'tensor' has as many rows of the table";
}

LogicalResult fsdp::checkMask(Operation *op, int64_t rows,
                              function_ref<InFlightDiagnostic()> fail) {
  auto mask = dyn_cast<linalg::GenericOp>(op);
  linalg::GenericOp own = findOwnIds(op->getOperand(0).getDefiningOp(), rows);
  if (mask && own && mask.getNumDpsInputs() == 3 && mask->getNumResults() == 1) {
    Block *body = mask.getBody();
    auto select = body->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
    auto isOwn = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
    if (isOwn && isOwn.getPredicate() == arith::CmpIPredicate::eq &&
        isOfRows<arith::DivSIOp>(mask, isOwn.getLhs(), 1, rows) &&
        isOwn.getRhs() == body->getArgument(2) && select.getTrueValue() == body->getArgument(0) &&
        matchPattern(select.getFalseValue(), m_AnyZeroFloat()) &&
        isCoordinate(mask.getDpsInputs()[2], tensorAxis) &&
        findWhole(mask.getDpsInputs()[1]) == findWhole(own.getDpsInputs()[0]))
      return success();
  }
  return fail() << "reads rows that are looked up in slices of a table of " << rows
                << " rows; expected it to set to 0 the rows of those ids whose quotient by " << rows
                << " is not the coordinate of the rank on axis 'tensor'";
}

LogicalResult fsdp::checkClasses(CrossEntropyOp op, function_ref<InFlightDiagnostic()> fail) {
  std::optional<ArrayAttr> axes = op.getAxes();
  if (axes && axes->size() == 1 && cast<StringAttr>((*axes)[0]).getValue() == tensorAxis &&
      isCoordinate(op.getCoordinate(), tensorAxis))
    return success();
  return fail() << "expected 'classes' with the coordinate of the rank, over axis 'tensor', which "
                   "splits the classes of the logits";
}
