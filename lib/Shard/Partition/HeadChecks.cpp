//===- HeadChecks.cpp - Checks of parts that ranks share --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %p = sum over j: j = %t div R ? %e[j] : 0        e: N parts, R · N = T; no division if R = 1
//
// Recognises what HeadRewrite.cpp builds: %t must be the argument with `fsdp.key = "tensor"`, and R
// the number of ranks divided by the number of parts, so that neighbours read copies of a part.
//
//===----------------------------------------------------------------------===//

#include "HeadChecks.h"
#include "SequenceChecks.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::readsCoordinate(Operation *op) {
  return llvm::any_of(op->getOperands(),
                      [](Value operand) { return isCoordinate(operand, tensorAxis); });
}

/// Returns the divisor of the coordinate, block argument `coordinate`, in a comparison of its
/// quotient with the index of `loop`. Returns 0 if `compare` is another comparison.
static int64_t findDivisor(arith::CmpIOp compare, unsigned loop, BlockArgument coordinate) {
  auto cast = compare.getLhs().getDefiningOp<arith::IndexCastOp>();
  auto index = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : linalg::IndexOp();
  auto part = compare.getRhs().getDefiningOp<arith::DivSIOp>();
  if (!index || index.getDim() != loop || compare.getPredicate() != arith::CmpIPredicate::eq)
    return 0;
  if (compare.getRhs() == coordinate)
    return 1;
  APInt divisor;
  bool isQuotient =
      part && part.getLhs() == coordinate && matchPattern(part.getRhs(), m_ConstantInt(&divisor));
  return isQuotient ? divisor.getSExtValue() : 0;
}

/// Returns the number of ranks that read copies of a part, or 0 if `op` picks no part along `loop`.
static int64_t findCopies(linalg::GenericOp op, unsigned loop) {
  Block *body = op.getBody();
  auto sum = body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  auto term = sum && sum.getLhs() == body->getArgument(2)
                  ? sum.getRhs().getDefiningOp<arith::SelectOp>()
                  : arith::SelectOp();
  auto isOwn = term ? term.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  bool isPart = isOwn && term.getTrueValue() == body->getArgument(0) &&
                matchPattern(term.getFalseValue(), m_AnyZeroFloat());
  return isPart ? findDivisor(isOwn, loop, body->getArgument(1)) : 0;
}

FailureOr<TensorSplit> fsdp::checkPick(Operation *op, int64_t ranks,
                                       function_ref<InFlightDiagnostic()> fail) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  bool isOne = generic && generic.getNumDpsInputs() == 2 && generic->getNumResults() == 1 &&
               generic.getNumReductionLoops() == 1 && isZero(generic.getDpsInits()[0]) &&
               isCoordinate(generic.getDpsInputs()[1], tensorAxis) &&
               generic.getIndexingMapsArray()[0].isIdentity();
  SmallVector<unsigned> loops;
  if (isOne)
    generic.getReductionDims(loops);
  unsigned loop = isOne ? loops.front() : 0;
  int64_t copies = isOne ? findCopies(generic, loop) : 0;
  int64_t parts = isOne ? cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(loop) : 0;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (copies == 0 || !type || type.getRank() <= int64_t(loop) ||
      generic.getIndexingMapsArray()[2] != generic.getIndexingMapsArray()[0].dropResult(loop))
    return fail() << "reads the coordinate of the rank on axis 'tensor'; expected it to read one "
                     "part of a whole value";
  if (copies * parts != ranks)
    return fail() << "reads part (coordinate div " << copies << ") of " << parts
                  << " parts; expected a division by " << ranks / parts
                  << ", because axis 'tensor' has " << ranks << " ranks";
  return TensorSplit{int64_t(loop), {type.getDimSize(loop)}, copies};
}

void fsdp::expectKeys(AttentionOp op, const TensorSplit *found, OpSplits &expected) {
  // A leading dimension of size 1 may be split heads.
  bool isHeads = expected.operands[0]->dim == 1 || op.getQ().getType().getDimSize(0) == 1;
  bool isOne = op.getK().getType().getDimSize(1) == 1;
  if (!isHeads || !isOne)
    return;
  for (unsigned i : {1, 2})
    if (!found)
      expected.operands[i].reset();
    else
      expected.operands[i]->copies = found->copies;
}

LogicalResult fsdp::checkCover(Operation *op, function_ref<InFlightDiagnostic()> fail) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice)
    return success();
  for (int64_t dim = 0; dim < slice.getSourceType().getRank(); ++dim)
    if (slice.getStaticSize(dim) != slice.getSourceType().getDimSize(dim) &&
        findBlocks(slice.getSource(), dim).empty())
      return fail() << "expected slices that cover dimension " << dim
                    << " of a value of whose cotangent each rank of axis 'tensor' has a part, so "
                       "that ranks read all of it";
  return success();
}
