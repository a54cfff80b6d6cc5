//===- AlignRows.cpp - Align the rows of factors ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes the rows of the matrices that contractions multiply begin at aligned addresses. GPUs copy a
// tile with aligned rows in bulk. They copy any other tile element by element.
//
//   %z = fsdp.dispatch .. -> 2048x50257xbf16      %z = fsdp.dispatch .. -> 2048x50264xbf16
//     yield %v                               =>     yield insert_slice %v into empty[0, 0]
//   fsdp.dispatch (%z)                            fsdp.dispatch (%z)
//     contract ins(%arg)                            contract ins(extract_slice %arg[0, 0])
//
// 1. A factor is an operand of a dispatch that is an input of a contraction in the dispatch's body.
//    Its rows are padded if they are long and their size is no multiple of the alignment.
// 2. If the factor is the result of a dispatch, this dispatch writes longer rows. This requires
//    that only dispatches read the factor and that none of them overwrites it. The padding at the
//    end of a row is never read. Operands of this dispatch with the shape of the factor get longer
//    rows, too, if possible. The same applies to the operands of the dispatches that compute them.
//    The factor can therefore still overwrite an operand of its dispatch.
// 3. Any other factor, such as a parameter, is copied to longer rows if `copies` is true and
//    contractions read each of its elements often enough.
//
// Takes O(operands) time. Does not align rows that only maps and sums read, because this would save
// only a few per cent of their time.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Fuse/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ALIGNROWSPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Rows with fewer elements than this are not aligned.
static constexpr int64_t minColumns = 64;
/// A factor is copied if a contraction reads each element at least this number of times. The copy
/// itself reads and writes each element once.
static constexpr int64_t minReads = 512;

static BlockArgument argumentOf(OpOperand &use) {
  return cast<DispatchOp>(use.getOwner()).getBody().getArgument(use.getOperandNumber());
}

/// Returns the contraction in the dispatch that reads this operand as a factor, or null.
static linalg::ContractOp findContraction(OpOperand &use) {
  if (!isa<DispatchOp>(use.getOwner()))
    return {};
  for (OpOperand &inside : argumentOf(use).getUses())
    if (auto contract = dyn_cast<linalg::ContractOp>(inside.getOwner());
        contract && contract.isDpsInput(&inside))
      return contract;
  return {};
}

/// Returns true if the dispatch only reads the operand. The rows of the operand may then have any
/// stride.
static bool isOnlyRead(OpOperand &use) {
  auto dispatch = dyn_cast<DispatchOp>(use.getOwner());
  if (!dispatch ||
      dispatch->getAttr("kind") == StringAttr::get(dispatch.getContext(), "attention") ||
      llvm::is_contained(dispatch.getInplace(), int64_t(use.getOperandNumber())))
    return false;
  return llvm::all_of(argumentOf(use).getUses(), [](OpOperand &inside) {
    auto op = dyn_cast<linalg::LinalgOp>(inside.getOwner());
    return op ? op.isDpsInput(&inside)
              : isa<tensor::ExtractOp, tensor::ExtractSliceOp>(inside.getOwner());
  });
}

/// Returns true if `v` is the result of a dispatch that can write rows with any stride.
static bool isWrittenFreely(Value v) {
  auto dispatch = v.getDefiningOp<DispatchOp>();
  if (!dispatch || dispatch.getInplace()[cast<OpResult>(v).getResultNumber()] != -1)
    return false;
  Value made =
      dispatch.getBody().front().getTerminator()->getOperand(cast<OpResult>(v).getResultNumber());
  return isa_and_present<linalg::GenericOp, linalg::ContractOp>(made.getDefiningOp());
}

/// Returns true if `v` is the result of a dispatch that can write longer rows, and if only
/// dispatches that can read longer rows use it.
static bool canPadResult(Value v) {
  return isWrittenFreely(v) && llvm::all_of(v.getUses(), isOnlyRead);
}

static SmallVector<OpFoldResult> indices(OpBuilder &b, ArrayRef<int64_t> values) {
  return getAsIndexOpFoldResult(b.getContext(), values);
}

/// Builds the slice of `padded` without the padding of its rows.
static Value buildRows(OpBuilder &b, Value padded, RankedTensorType type) {
  SmallVector<int64_t> zeros(type.getRank(), 0), ones(type.getRank(), 1);
  return tensor::ExtractSliceOp::create(b, padded.getLoc(), type, padded, indices(b, zeros),
                                        indices(b, type.getShape()), indices(b, ones));
}

/// Builds a tensor with the elements of `v` in longer rows. The padding is undefined.
static Value buildPadded(OpBuilder &b, Value v, RankedTensorType padded) {
  auto type = cast<RankedTensorType>(v.getType());
  SmallVector<int64_t> zeros(type.getRank(), 0), ones(type.getRank(), 1);
  Value empty = tensor::EmptyOp::create(b, v.getLoc(), padded.getShape(), padded.getElementType());
  return tensor::InsertSliceOp::create(b, v.getLoc(), v, empty, indices(b, zeros),
                                       indices(b, type.getShape()), indices(b, ones));
}

/// Replaces the operand by the padded value. The body of the dispatch then reads a slice of the
/// padded value, without the padding.
static void readPadded(OpOperand &use, Value padded) {
  BlockArgument arg = argumentOf(use);
  auto type = cast<RankedTensorType>(arg.getType());
  use.set(padded);
  arg.setType(padded.getType());
  OpBuilder b = OpBuilder::atBlockBegin(arg.getOwner());
  Value rows = buildRows(b, arg, type);
  arg.replaceAllUsesExcept(rows, rows.getDefiningOp());
}

/// Lets a dispatch write a result with longer rows (step 2).
static void padResult(OpResult result, RankedTensorType padded) {
  SmallVector<OpOperand *> uses =
      llvm::map_to_vector(result.getUses(), [](OpOperand &use) { return &use; });
  Operation *yield = cast<DispatchOp>(result.getOwner()).getBody().front().getTerminator();
  OpBuilder b(yield);
  yield->setOperand(result.getResultNumber(),
                    buildPadded(b, yield->getOperand(result.getResultNumber()), padded));
  result.setType(padded);
  for (OpOperand *use : uses)
    readPadded(*use, result);
}

/// Returns the number of times that the contraction reads each element of a factor.
static int64_t countReads(linalg::ContractOp contract, RankedTensorType factor) {
  int64_t turns = 1;
  for (int64_t size : cast<linalg::LinalgOp>(*contract).getStaticLoopRanges())
    turns *= size;
  return turns / factor.getNumElements();
}

/// Copies a factor to longer rows (step 3). Returns true if a copy was inserted.
static bool copyPadded(Value v, RankedTensorType padded) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : v.getUses())
    if (linalg::ContractOp contract = findContraction(use); contract && isOnlyRead(use))
      if (countReads(contract, cast<RankedTensorType>(v.getType())) >= minReads)
        uses.push_back(&use);
  if (uses.empty())
    return false;
  OpBuilder b(v.getContext());
  b.setInsertionPointAfterValue(v);
  auto copy = DispatchOp::create(b, v.getLoc(), TypeRange(padded), v, b.getDenseI64ArrayAttr({-1}));
  copy->setAttr("kind", b.getStringAttr("copy"));
  b.setInsertionPointToStart(&copy.getBody().emplaceBlock());
  Value arg = copy.getBody().addArgument(v.getType(), v.getLoc());
  YieldOp::create(b, v.getLoc(), buildPadded(b, arg, padded));
  for (OpOperand *use : uses)
    readPadded(*use, copy.getResult(0));
  return true;
}

namespace {
struct AlignRowsPass : fsdp::impl::AlignRowsPassBase<AlignRowsPass> {
  using AlignRowsPassBase::AlignRowsPassBase;

  /// Returns the type with padded rows, or nothing if the rows are aligned or too short.
  std::optional<RankedTensorType> getPadded(Value v) const {
    auto type = cast<RankedTensorType>(v.getType());
    if (type.getRank() < 2 || type.getShape().back() < minColumns ||
        !type.getElementType().isFloat())
      return std::nullopt;
    int64_t bits = type.getElementTypeBitWidth(), unit = 8 * bytes / std::gcd(8 * bytes, bits);
    if (type.getShape().back() % unit == 0)
      return std::nullopt;
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = llvm::alignTo(shape.back(), unit);
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// Pads the rows of the result, and of all operands that can be padded with it, to `columns`
  /// elements (step 2 of the file header).
  void padWithOperands(OpResult result, int64_t columns) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(result.getType()).getShape());
    SmallVector<OpResult> worklist = {result};
    while (!worklist.empty()) {
      OpResult next = worklist.pop_back_val();
      auto type = cast<RankedTensorType>(next.getType());
      if (type.getShape() != ArrayRef(shape))
        continue; // padded already: another dispatch has the same operand
      SmallVector<int64_t> padded(shape);
      padded.back() = columns;
      padResult(next, RankedTensorType::get(padded, type.getElementType()));
      ++numPadded;
      for (Value operand : next.getOwner()->getOperands())
        if (auto type = dyn_cast<RankedTensorType>(operand.getType());
            type && type.getShape() == ArrayRef(shape) && canPadResult(operand))
          worklist.push_back(cast<OpResult>(operand));
    }
  }

  void runOnOperation() override {
    llvm::SetVector<Value> factors;
    getOperation().walk([&](DispatchOp dispatch) {
      for (OpOperand &use : dispatch->getOpOperands())
        if (findContraction(use))
          factors.insert(use.get());
    });
    for (Value factor : factors) {
      std::optional<RankedTensorType> padded = getPadded(factor);
      if (!padded)
        continue;
      if (canPadResult(factor))
        padWithOperands(cast<OpResult>(factor), padded->getShape().back());
      else if (copies && copyPadded(factor, *padded))
        ++numCopied;
    }
  }
};
} // namespace
