//===- AttachLoss.cpp - Append a loss to logits -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   func @f(%ids) -> tensor<1x5x97xf32>    func @f(%ids, %targets: tensor<1x5xi64>
//     return %logits                   ->     {fsdp.batch = "targets", fsdp.limit = 97})
//                                             -> tensor<f32>
//                                            %loss, _ = fsdp.cross_entropy (%logits as 5x97),
//                                                                          (%targets as 5)
//
// If the option `ignore` is set, the mean does not include the targets that equal the value of the
// option. If this value is not a class, the pass adds it to the extra ids of the argument
// `%targets`. Logits of bf16 and f16 are converted to f32, so that the loss is f32 (f64 in an f64
// model).
//
//===----------------------------------------------------------------------===//

#include "Lookups/CheckLookups.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ATTACHLOSSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct AttachLossPass : public fsdp::impl::AttachLossPassBase<AttachLossPass> {
  using AttachLossPassBase::AttachLossPassBase;
  void runOnOperation() override;
};
} // namespace

/// Widens logits that are narrower than f32 to f32.
static Value widen(OpBuilder &b, Location loc, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  if (type.getElementTypeBitWidth() >= 32)
    return logits;
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), b.getF32Type());
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, TypeRange(empty.getType()), ValueRange(logits),
                                   ValueRange(empty), maps, iterators,
                                   [](OpBuilder &b, Location loc, ValueRange args) {
                                     Value wide =
                                         arith::ExtFOp::create(b, loc, b.getF32Type(), args[0]);
                                     linalg::YieldOp::create(b, loc, wide);
                                   })
      .getResult(0);
}

void AttachLossPass::runOnOperation() {
  func::FuncOp func = getOperation();
  if (loss.empty() || func.isPrivate() || func.isExternal())
    return;
  if (loss != "cross_entropy") {
    emitError(func.getLoc(), "--attach-loss expected cross_entropy, found '") << loss << "'";
    return signalPassFailure();
  }
  std::optional<int64_t> ignored;
  if (int64_t value; !ignore.empty()) {
    if (llvm::StringRef(ignore).getAsInteger(10, value)) {
      emitError(func.getLoc(), "--ignore-index expected an integer of 64 bits, found '")
          << ignore << "'";
      return signalPassFailure();
    }
    ignored = value;
  }
  Operation *ret = func.getBody().front().getTerminator();
  unsigned numResults = ret->getNumOperands();
  while (numResults > 1 && isLookupCheck(func, numResults - 1))
    --numResults;
  auto type = numResults == 1 ? dyn_cast<RankedTensorType>(ret->getOperand(0).getType()) : nullptr;
  if (!type || type.getRank() < 2 || !type.hasStaticShape() ||
      !isa<FloatType>(type.getElementType())) {
    InFlightDiagnostic diag =
        emitError(func.getLoc(), "--attach-loss=cross_entropy expected one result, float logits of "
                                 "static shape [.., vocabulary], found ");
    if (numResults == 1)
      diag << ret->getOperand(0).getType();
    else
      diag << numResults << " results";
    return signalPassFailure();
  }
  OpBuilder b(ret);
  Location loc = ret->getLoc();
  int64_t vocabulary = type.getShape().back(), rank = type.getRank();
  auto targetsType = RankedTensorType::get(type.getShape().drop_back(), b.getI64Type());
  SmallVector<NamedAttribute> attrs{
      b.getNamedAttr(FSDPDialect::batchAttr, b.getStringAttr("targets")),
      b.getNamedAttr(FSDPDialect::limitAttr, b.getI64IntegerAttr(vocabulary))};
  if (ignored && (*ignored < 0 || *ignored >= vocabulary))
    attrs.push_back(b.getNamedAttr(FSDPDialect::extraIdsAttr, b.getDenseI64ArrayAttr(*ignored)));
  unsigned index = func.getNumArguments();
  if (failed(func.insertArgument(index, targetsType, b.getDictionaryAttr(attrs), loc)))
    return signalPassFailure();
  Value targets = func.getArgument(index), logits = widen(b, loc, ret->getOperand(0));
  if (rank > 2) {
    ReassociationIndices rows = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
    logits = tensor::CollapseShapeOp::create(b, loc, logits,
                                             ArrayRef<ReassociationIndices>{rows, {rank - 1}});
    targets =
        tensor::CollapseShapeOp::create(b, loc, targets, ArrayRef<ReassociationIndices>{rows});
  }
  auto logitsType = cast<RankedTensorType>(logits.getType());
  auto lossType = RankedTensorType::get({}, logitsType.getElementType());
  auto lseType = RankedTensorType::get({logitsType.getDimSize(0)}, logitsType.getElementType());
  auto op = CrossEntropyOp::create(b, loc, lossType, lseType, logits, targets,
                                   /*coordinate=*/Value(),
                                   ignored ? b.getI64IntegerAttr(*ignored) : IntegerAttr(),
                                   /*mesh=*/{}, /*axes=*/{});
  ret->setOperand(0, op.getLoss());
  func.setType(b.getFunctionType(func.getArgumentTypes(), ret->getOperandTypes()));
  ++numAttached;
}
