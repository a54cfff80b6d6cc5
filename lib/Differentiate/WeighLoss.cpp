//===- WeighLoss.cpp - Weigh the loss by its targets ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   f(params, batch) -> %loss                           a mean over counted targets
//   after    f(params, batch, %w {fsdp.loss_weight}) -> %w * %loss
//
// 1. Walk from the loss through scalar ops to the cross_entropy ops, each of which computes a mean.
//    The loss must have the form c + Σ c_i · cross_entropy(.., targets). All cross_entropy ops must
//    have the same targets, and c and c_i must not depend on the batch. The loss of a batch is then
//    a weighted mean of the losses of its micro-batches. The weight of a micro-batch is its number
//    of counted targets. On an axis `context`, the sum over the ranks of weighed parts of a
//    cross_entropy is its mean over the sequence (Shard/Partition/SequenceChecks.cpp).
// 2. If the loss has another form, emit an error at the first op that breaks the form.
// 3. Multiply the loss by a new argument, the weight. The backward then multiplies the gradients by
//    the weight, too. If every target counts, all weights are 1, and the pass changes nothing.
//    O(ops)
//
// AccumulateGradients.cpp computes the value of the new argument from the numbers of counted
// targets.
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "fsdp/Differentiate/Passes.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_WEIGHLOSSPASS
#include "fsdp/Differentiate/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The form in which a value depends on the batch.
enum class Form {
  Fixed, ///< the value does not depend on the batch
  Mean,  ///< c + Σ c_i · cross_entropy
  Other
};

class LossReader {
public:
  explicit LossReader(func::FuncOp func) : func(func) {}

  Form classify(Value value);
  bool usesBatch(Value value);

  CrossEntropyOp mean;          ///< the first cross_entropy op
  CrossEntropyOp unlike;        ///< a cross_entropy whose targets differ from the targets of `mean`
  Operation *culprit = nullptr; ///< the first op found that breaks the form

private:
  Form combine(Operation *op, ArrayRef<Form> operands);
  Form classifySum(AllReduceOp op);
  Form classifyBody(linalg::GenericOp op, unsigned result);
  Form blame(Operation *op) {
    if (!culprit)
      culprit = op;
    return Form::Other;
  }

  func::FuncOp func;
  DenseMap<Value, Form> forms;
};

struct WeighLossPass : fsdp::impl::WeighLossPassBase<WeighLossPass> {
  void runOnOperation() override;
  LogicalResult run(func::FuncOp func);
};
} // namespace

/// Returns true if the value depends on the batch.
bool LossReader::usesBatch(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Value> visited;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!visited.insert(next).second)
      continue;
    if (auto arg = dyn_cast<BlockArgument>(next)) {
      if (func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
        return true;
      continue;
    }
    llvm::append_range(work, next.getDefiningOp()->getOperands());
  }
  return false;
}

/// Returns the form of the result of `op`, which is an op on scalars. `operands` are the forms of
/// its operands.
Form LossReader::combine(Operation *op, ArrayRef<Form> operands) {
  if (llvm::is_contained(operands, Form::Other))
    return blame(op);
  unsigned means = llvm::count(operands, Form::Mean);
  if (means == 0)
    return Form::Fixed;
  bool keeps = isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op);
  bool scales = isa<arith::MulFOp>(op) && means == 1;
  bool divides = isa<arith::DivFOp>(op) && operands[1] == Form::Fixed;
  return keeps || scales || divides ? Form::Mean : blame(op);
}

/// Returns the form of a sum over ranks.
Form LossReader::classifySum(AllReduceOp op) {
  auto weighed = op.getOperand().getDefiningOp<linalg::GenericOp>();
  Value loss = weighed && weighed.getNumDpsInputs() ? weighed.getDpsInputs()[0] : Value();
  bool isOverContext = llvm::all_of(op.getAxes().getAsValueRange<StringAttr>(),
                                    [](StringRef axis) { return axis == contextAxis; });
  if (isOverContext && loss && loss.getDefiningOp<CrossEntropyOp>())
    return classify(loss);
  // The model has the op whose results the ranks add.
  Operation *added = op.getOperand().getDefiningOp();
  return blame(added ? added : op);
}

/// Returns the form of the result `result` of the generic `op`, which has no loops.
Form LossReader::classifyBody(linalg::GenericOp op, unsigned result) {
  DenseMap<Value, Form> inside;
  for (OpOperand &operand : op->getOpOperands())
    inside[op.getMatchingBlockArgument(&operand)] = classify(operand.get());
  for (Operation &inner : op.getBody()->without_terminator()) {
    SmallVector<Form> operands;
    for (Value value : inner.getOperands())
      operands.push_back(value.getParentBlock() == op.getBody() ? inside.lookup(value)
                                                                : classify(value));
    Form form = combine(&inner, operands);
    for (Value value : inner.getResults())
      inside[value] = form;
  }
  Value yielded = op.getBody()->getTerminator()->getOperand(result);
  return yielded.getParentBlock() == op.getBody() ? inside.lookup(yielded) : classify(yielded);
}

Form LossReader::classify(Value value) {
  if (auto it = forms.find(value); it != forms.end())
    return it->second;
  auto decide = [&]() -> Form {
    if (!usesBatch(value))
      return Form::Fixed;
    Operation *op = value.getDefiningOp();
    if (auto loss = dyn_cast_or_null<CrossEntropyOp>(op); loss && value == loss.getLoss()) {
      if (!mean)
        mean = loss;
      bool alike =
          loss.getTargets() == mean.getTargets() && loss.getIgnoreIndex() == mean.getIgnoreIndex();
      if (!alike && !unlike)
        unlike = loss;
      return alike ? Form::Mean : blame(loss);
    }
    if (auto sum = dyn_cast_or_null<AllReduceOp>(op))
      return classifySum(sum);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isOne = !type || (type.hasStaticShape() && type.getNumElements() == 1);
    if (!op)
      // The caller, which knows the op that reads the value, reports the error.
      return Form::Other;
    if (!isOne)
      return blame(op);
    if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && generic.getNumLoops() == 0)
      return classifyBody(generic, cast<OpResult>(value).getResultNumber());
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, tensor::ExtractOp>(op))
      return classify(op->getOperand(0));
    if (isa<tensor::FromElementsOp>(op))
      return classify(op->getOperand(0));
    SmallVector<Form> operands;
    for (Value operand : op->getOperands())
      operands.push_back(classify(operand));
    return isa<arith::ArithDialect>(op->getDialect()) ? combine(op, operands) : blame(op);
  };
  Form form = decide();
  forms[value] = form;
  return form;
}

static LogicalResult refuse(const LossReader &reader, Location lossLoc) {
  InFlightDiagnostic diag = mlir::emitError(reader.culprit ? reader.culprit->getLoc() : lossLoc)
                            << "grad-divide=tokens: expected the loss to be 'fsdp.cross_entropy' "
                               "times a constant, found ";
  if (CrossEntropyOp other = reader.unlike) {
    diag << "two 'fsdp.cross_entropy' ops with different targets or different 'ignore' values";
    CrossEntropyOp first = reader.mean;
    diag.attachNote(first.getLoc())
        << "the other op is here; use --grad-divide=average, or give both ops the same targets "
           "and the same 'ignore' value";
    return diag;
  }
  if (reader.culprit)
    diag << "'" << reader.culprit->getName() << "'";
  else
    diag << "a loss without cross-entropy";
  diag.attachNote() << "do one of the following: (1) use --grad-divide=average; (2) in the model, "
                       "divide the sum of losses by the number of targets that are not ignored; "
                       "(3) attach the loss with --attach-loss=cross_entropy --ignore-index=N";
  return diag;
}

LogicalResult WeighLossPass::run(func::FuncOp func) {
  Operation *terminator = func.getBody().front().getTerminator();
  Value loss = terminator->getNumOperands() ? terminator->getOperand(0) : Value();
  auto type = loss ? dyn_cast<RankedTensorType>(loss.getType()) : RankedTensorType();
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType())) {
    InFlightDiagnostic diag = func.emitError(
        "expected the first result to be the loss, a float tensor of rank 0, found ");
    if (!loss)
      return diag << "no result";
    return diag << loss.getType();
  }
  LossReader reader(func);
  if (reader.classify(loss) != Form::Mean)
    return refuse(reader, loss.getLoc());
  if (!reader.mean.getIgnoreIndex())
    return success();
  NamedAttribute mark(StringAttr::get(&getContext(), lossWeightAttr), UnitAttr::get(&getContext()));
  unsigned index = func.getNumArguments();
  if (failed(func.insertArgument(index, type, DictionaryAttr::get(&getContext(), mark),
                                 loss.getLoc())))
    return failure();
  OpBuilder b(terminator);
  Value weighed =
      buildElementwise(b, loss.getLoc(), {loss, func.getArgument(index)}, type.getElementType(),
                       [](OpBuilder &b, Location loc, ValueRange args) -> Value {
                         return arith::MulFOp::create(b, loc, args[0], args[1]);
                       });
  terminator->setOperand(0, weighed);
  ++numWeighed;
  return success();
}

void WeighLossPass::runOnOperation() {
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (func->hasAttr(FSDPDialect::programAttr) && llvm::hasSingleElement(func.getBody()))
      if (failed(run(func)))
        return signalPassFailure();
}
