//===- RefuseUnwritten.cpp - Reject reads of unwritten elements -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The elements of a tensor.empty are undefined. At run time, the bytes of the tensor in the arena
// are bytes of an earlier value. The result of an op that reads such a tensor is undefined.
//
//   %e = tensor.empty() : tensor<7x11xf32>
//   %h = linalg.matmul ins(%x, %w) outs(%e)      reads %e: error, needs linalg.fill
//   %y = linalg.exp ins(%x) outs(%e)             only writes %e: no error
//
//  1. A tensor.empty has unwritten elements. A view, a cast, a padding or a concatenation of a
//     value with unwritten elements has unwritten elements too. After a chain of insertions into
//     this value, unwritten elements remain unless the insertions cover the whole value.
//  2. Report an error for an op that reads a value with unwritten elements. An insertion does not
//     read its destination. A linalg op does not read the initial value of an output if its body
//     does not use the argument of this output.
//
// The time is O(ops + n²) for n insertions into a tensor. If a tensor has unwritten elements, every
// slice of the tensor counts as unwritten, even if all elements of the slice are written.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_REFUSEUNWRITTENPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A rectangular part of a tensor, given by a range in each dimension.
struct Box {
  SmallVector<int64_t> offsets, sizes;

  bool meets(const Box &other) const {
    for (auto [o, s, p, t] : llvm::zip_equal(offsets, sizes, other.offsets, other.sizes))
      if (o + s <= p || p + t <= o)
        return false;
    return true;
  }
};

/// Finds out whether a value has unwritten elements, and which tensor.empty is the origin of these
/// elements.
class Unwritten {
public:
  /// Returns the tensor.empty from which unwritten elements of the value come, or null if all
  /// elements of the value are written.
  Operation *find(Value value);

private:
  Operation *compute(Operation *op);
  Operation *findInserted(Operation *op);

  llvm::DenseMap<Value, Operation *> known;
};

struct RefuseUnwrittenPass : public fsdp::impl::RefuseUnwrittenPassBase<RefuseUnwrittenPass> {
  using RefuseUnwrittenPassBase::RefuseUnwrittenPassBase;
  void runOnOperation() override;

private:
  LogicalResult check(Operation *op);

  Unwritten unwritten;
};
} // namespace

/// Returns the part of the destination that an insertion writes. Returns nothing if this part is
/// not constant or has strides.
static std::optional<Box> getWritten(Operation *op) {
  Box box;
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (!slice.hasUnitStride())
      return std::nullopt;
    box = {llvm::to_vector(slice.getStaticOffsets()), llvm::to_vector(slice.getStaticSizes())};
  } else {
    for (Value index : cast<tensor::InsertOp>(op).getIndices()) {
      APInt at;
      box.offsets.push_back(matchPattern(index, m_ConstantInt(&at)) ? at.getSExtValue()
                                                                    : ShapedType::kDynamic);
      box.sizes.push_back(1);
    }
  }
  bool fixed = llvm::none_of(llvm::concat<int64_t>(box.offsets, box.sizes), ShapedType::isDynamic);
  return fixed ? std::optional<Box>(box) : std::nullopt;
}

/// Follows a chain of insertions into one tensor. Returns the tensor.empty from which unwritten
/// elements come if the insertions do not cover the tensor, or if they insert unwritten elements.
/// Returns null otherwise.
Operation *Unwritten::findInserted(Operation *op) {
  SmallVector<Box> boxes;
  int64_t covered = 0;
  bool disjoint = true;
  Value tensor = op->getResult(0);
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  while (Operation *def = tensor.getDefiningOp()) {
    if (!isa<tensor::InsertSliceOp, tensor::InsertOp>(def))
      break;
    if (auto slice = dyn_cast<tensor::InsertSliceOp>(def))
      if (Operation *empty = find(slice.getSource()))
        return empty;
    if (std::optional<Box> box = getWritten(def)) {
      disjoint &= llvm::none_of(boxes, [&](const Box &other) { return box->meets(other); });
      covered += llvm::product_of(box->sizes);
      boxes.push_back(*box);
    }
    tensor = isa<tensor::InsertSliceOp>(def) ? cast<tensor::InsertSliceOp>(def).getDest()
                                             : cast<tensor::InsertOp>(def).getDest();
    if (type && type.hasStaticShape() && !boxes.empty() &&
        llvm::equal(boxes.back().sizes, type.getShape()))
      return nullptr; // the insertions that were visited cover the whole tensor
  }
  bool whole = type && type.hasStaticShape() && disjoint && covered == type.getNumElements();
  return whole ? nullptr : find(tensor);
}

Operation *Unwritten::compute(Operation *op) {
  if (isa<tensor::EmptyOp>(op))
    return op;
  if (isa<tensor::InsertSliceOp, tensor::InsertOp>(op))
    return findInserted(op);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ReshapeOp, tensor::CastOp,
          tensor::ExtractSliceOp, tensor::PadOp, tensor::ConcatOp>(op))
    for (Value operand : op->getOperands())
      if (Operation *empty = find(operand))
        return empty;
  return nullptr;
}

Operation *Unwritten::find(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || !isa<TensorType>(value.getType()))
    return nullptr;
  auto [it, fresh] = known.try_emplace(value, nullptr);
  return fresh ? known[value] = compute(def) : it->second;
}

LogicalResult RefuseUnwrittenPass::check(Operation *op) {
  if (isa<tensor::InsertSliceOp, tensor::InsertOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
          tensor::ReshapeOp, tensor::CastOp, tensor::ExtractSliceOp, tensor::PadOp,
          tensor::ConcatOp, tensor::DimOp>(op))
    // These ops only pass elements on, so the ops that read their result are checked instead.
    return success();
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    bool isOutput = destination && destination.isDpsInit(&operand);
    if (structured ? !structured.payloadUsesValueFromOperand(&operand) : isOutput)
      continue;
    Operation *empty = unwritten.find(operand.get());
    if (!empty)
      continue;
    InFlightDiagnostic diag = emitError(op->getLoc()) << "'" << op->getName() << "' reads ";
    if (isOutput)
      diag << "the initial value of its output, which is not written; fill it with linalg.fill";
    else
      diag << "a tensor with unwritten elements; fill it with linalg.fill";
    diag.attachNote(empty->getLoc()) << "the tensor is created here";
    return diag;
  }
  return success();
}

void RefuseUnwrittenPass::runOnOperation() {
  // Forget the values of the function that was visited before, because they may have been freed.
  unwritten = {};
  unsigned refused = 0;
  getOperation().walk([&](Operation *op) {
    if (failed(check(op)) && ++refused == 8)
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  numRefused += refused;
  if (refused)
    signalPassFailure();
}
