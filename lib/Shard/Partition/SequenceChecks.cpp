//===- SequenceChecks.cpp - Checks of ops on parts of a sequence -*- C++ -*-==//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   mask_mod(%b, %h, %i, %j, %c):                 loss · 1/C, or
//     %row = %i + min(index_cast(%c[]), C - 1) · rows      loss · count(own targets) /
//                                                                 max(count(targets), 1)
//     .. %row ..
//
// Recognises what SequenceRewrite.cpp builds. The captured tensor %c must be the argument with
// `fsdp.key = "context"`, and the targets that are counted must be those of the cross-entropy, and
// a value with as many elements as those of all ranks.
//
//===----------------------------------------------------------------------===//

#include "SequenceChecks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns true if `value` is an argument that contains the coordinate of the rank.
static bool isCoordinate(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  auto key = func ? func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), FSDPDialect::keyAttr)
                  : StringAttr();
  return key && key.getValue() == contextAxis;
}

/// Returns the operand of `op` that is not the integer `constant`. Returns null if no operand is.
template <typename Op>
static Value getOtherThan(Op op, int64_t constant) {
  APInt found;
  if (op && matchPattern(op.getRhs(), m_ConstantInt(&found)) && found == constant)
    return op.getLhs();
  return op && matchPattern(op.getLhs(), m_ConstantInt(&found)) && found == constant ? op.getRhs()
                                                                                     : Value();
}

/// Returns true if `value`, in a function of attention, is the first row of the rank.
static bool isFirstRow(AttentionOp op, Value value, int64_t rows, int64_t ranks) {
  Value rank = getOtherThan(value.getDefiningOp<arith::MulIOp>(), rows);
  Value index = rank ? getOtherThan(rank.getDefiningOp<arith::MinUIOp>(), ranks - 1) : Value();
  auto cast = index ? index.getDefiningOp<arith::IndexCastOp>() : arith::IndexCastOp();
  auto read = cast ? cast.getIn().getDefiningOp<tensor::ExtractOp>() : tensor::ExtractOp();
  auto capture = read ? dyn_cast<BlockArgument>(read.getTensor()) : BlockArgument();
  if (!capture)
    return false;
  unsigned first = capture.getOwner()->getNumArguments() - op.getCaptures().size();
  return capture.getArgNumber() >= first &&
         isCoordinate(op.getCaptures()[capture.getArgNumber() - first]);
}

LogicalResult fsdp::checkRows(AttentionOp op, int64_t rows, int64_t ranks,
                              function_ref<InFlightDiagnostic()> fail) {
  std::pair<Region *, unsigned> functions[] = {
      {&op.getScoreMod(), 3}, {&op.getMaskMod(), 2}, {&op.getWeightMod(), 2}};
  for (auto [region, argument] : functions) {
    if (region->empty())
      continue;
    BlockArgument row = region->front().getArgument(argument);
    for (Operation *user : row.getUsers()) {
      auto sum = dyn_cast<arith::AddIOp>(user);
      Value other = sum ? (sum.getLhs() == row ? sum.getRhs() : sum.getLhs()) : Value();
      if (!sum || !isFirstRow(op, other, rows, ranks))
        return fail() << "expected its functions to read the index of a row plus " << rows
                      << " times the coordinate of the rank on axis 'context', found '"
                      << user->getName() << "' with another row";
    }
  }
  return success();
}

/// Returns the tensor whose elements a generic counts that differ from `ignored`, or null.
static Value findCounted(Value count, int64_t ignored) {
  auto generic = count.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumReductionLoops() != 1 || generic.getNumDpsInputs() != 1 ||
      !isZero(generic.getDpsInits()[0]))
    return {};
  APInt constant;
  for (auto compare : generic.getBody()->getOps<arith::CmpIOp>())
    if (compare.getPredicate() == arith::CmpIPredicate::ne &&
        matchPattern(compare.getRhs(), m_ConstantInt(&constant)) &&
        constant.getSExtValue() == ignored)
      return generic.getDpsInputs()[0];
  return {};
}

LogicalResult fsdp::checkWeight(Operation *op, int64_t ranks,
                                function_ref<InFlightDiagnostic()> fail) {
  auto loss = op->getOperand(0).getDefiningOp<CrossEntropyOp>();
  auto generic = dyn_cast<linalg::GenericOp>(op);
  Value yielded = generic && generic.getNumLoops() == 0 && generic.getNumResults() == 1
                      ? generic.getBody()->getTerminator()->getOperand(0)
                      : Value();
  auto product = yielded ? yielded.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  bool multiplies = product && product.getLhs() == generic.getBody()->getArgument(0);
  std::optional<int64_t> ignored = loss.getIgnoreIndex();
  FloatAttr weight;
  if (multiplies && !ignored && matchPattern(product.getRhs(), m_Constant(&weight)) &&
      weight == FloatAttr::get(weight.getType(), 1.0 / double(ranks)))
    return success();
  if (multiplies && ignored && generic.getNumDpsInputs() == 3) {
    Value own = findCounted(op->getOperand(1), *ignored),
          all = findCounted(op->getOperand(2), *ignored);
    if (own == loss.getTargets() && all &&
        cast<RankedTensorType>(all.getType()).getNumElements() ==
            cast<RankedTensorType>(own.getType()).getNumElements() * ranks)
      return success();
  }
  return fail() << "expected to multiply the loss of an 'fsdp.cross_entropy' by "
                << (ignored ? "the part of the targets that count on this rank"
                            : "1/" + std::to_string(ranks))
                << ", because the mean over all rows is a sum over axis 'context'";
}
