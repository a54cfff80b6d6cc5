//===- GuessParameters.cpp - Parameters of unnamed models -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Exporters write the weights before the batch inputs. Some batch inputs are integers (ids,
// labels):
//
//   @loss(%w: 4x4xf32, %b: 4xf32, %ids: 2x8xi64)          %w and %b are trained
//   @loss(%w: 4x4xf32, %images: 2x4xf32, %labels: 2xi64)  error: %images may be a batch input,
//                                                         with the leading dimension of %labels
//
// A batch input of floats may have the same type as a weight. The pass therefore warns of every
// guess, and emits an error if a float argument has as many rows as an integer input.
//
//===----------------------------------------------------------------------===//

#include "Interface/GuessParameters.h"
#include "Interface/Positions.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Largest number of untrained values that the warning lists.
static constexpr size_t maxUntrained = 4;

bool fsdp::isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

std::string fsdp::describeShape(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank() || shaped.getRank() == 0)
    return "a scalar";
  return llvm::join(
      llvm::map_range(shaped.getShape(), [](int64_t size) { return llvm::Twine(size).str(); }),
      "x");
}

static bool isBatch(BlockArgument arg, func::FuncOp func) {
  return static_cast<bool>(func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr));
}

/// Returns an integer input that has as many rows as `arg`, or null if there is none.
static BlockArgument findInputOfSameRows(func::FuncOp func, BlockArgument arg) {
  auto type = cast<RankedTensorType>(arg.getType());
  for (BlockArgument other : func.getArguments()) {
    auto ids = dyn_cast<RankedTensorType>(other.getType());
    if (ids && ids.getElementType().isInteger() && ids.getRank() > 0 && type.getRank() > 0 &&
        !func.getArgAttr(other.getArgNumber(), FSDPDialect::keyAttr) &&
        ids.getDimSize(0) == type.getDimSize(0))
      return other;
  }
  return nullptr;
}

FailureOr<SmallVector<BlockArgument>> fsdp::guessParameters(func::FuncOp func) {
  SmallVector<BlockArgument> guessed;
  if (llvm::all_of(func.getArgumentTypes(), isFloatTensor))
    return guessed;
  for (BlockArgument arg : func.getArguments()) {
    if (!isFloatTensor(arg.getType()))
      break;
    if (isBatch(arg, func))
      continue;
    if (BlockArgument ids = findInputOfSameRows(func, arg); ids && !arg.use_empty()) {
      InFlightDiagnostic diag = emitError(arg.getLoc())
                                << "cannot tell whether argument " << getPosition(arg) << ", "
                                << arg.getType()
                                << ", is a parameter or a batch input: nothing names it, and its "
                                   "leading dimension is that of "
                                << "argument " << getPosition(ids) << ", " << ids.getType();
      diag.attachNote(arg.getLoc())
          << "if it comes with each batch, name it: --batch=" << getPosition(arg)
          << "=NAME or {fsdp.batch = \"NAME\"}";
      diag.attachNote(func.getLoc()) << "if it is trained, list all parameters: --params=0-N, or "
                                        "mark them {fsdp.param = \"NAME\"}";
      return diag;
    }
    guessed.push_back(arg);
  }
  return guessed;
}

bool fsdp::isFrequencyTable(Operation *constant) {
  SmallVector<Operation *> work(constant->getUsers().begin(), constant->getUsers().end());
  llvm::SmallPtrSet<Operation *, 16> seen;
  bool reaches = false;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    bool periodic = isa<math::SinOp, math::CosOp>(op);
    op->walk([&](Operation *inner) { periodic |= isa<math::SinOp, math::CosOp>(inner); });
    reaches |= periodic;
    if (periodic)
      continue;
    if (seen.size() > 64 || op->hasTrait<OpTrait::IsTerminator>())
      return false;
    work.append(op->getUsers().begin(), op->getUsers().end());
  }
  return reaches;
}

void fsdp::warnOfGuess(func::FuncOp func, const ParameterGuess &guess) {
  InFlightDiagnostic diag = emitWarning(func.getLoc())
                            << "nothing names the parameters of '@" << func.getSymName()
                            << "', so they are a guess: " << guess.trained.size()
                            << " trained: " << llvm::join(guess.trained, ", ");
  if (!guess.untrained.empty()) {
    ArrayRef<std::string> first = ArrayRef(guess.untrained).take_front(maxUntrained);
    diag << "; " << guess.untrained.size() << " not trained: " << llvm::join(first, ", ");
    if (guess.untrained.size() > maxUntrained)
      diag << ", and " << guess.untrained.size() - maxUntrained << " more";
  }
  diag.attachNote(func.getLoc())
      << "name what is trained: {fsdp.param = \"NAME\"} on arguments, --params=0-N or "
      << "--params-file=FILE.json; --params=auto takes this guess without a warning";
}
