//===- Aliasing.cpp - Values that share memory ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The value %b is a view of %a if %b occupies a range of %a's memory. The end of a value is the
// last position at which an op reads the value or a view of the value.
//
//   0  %a = kernel_call                       end(%a) = 4, read through %b
//   1  scf.for {
//   2    %b = expand_shape %a
//   3    %c = kernel_call(%b)                 end(%b) = 4: the next iteration reads it again
//   4  }
//
// getEnd() visits each use of each value once, so the time is O(ops).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Aliasing.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "fsdp/IR/Kernels.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t countElements(Type type) { return cast<RankedTensorType>(type).getNumElements(); }

/// Returns the product of the sizes of the mesh axes over which a collective runs.
template <typename Op>
static int64_t countRanks(Op op, SymbolTableCollection &tables) {
  auto mesh = tables.lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
  int64_t ranks = 1;
  for (auto axis : op.getAxes().template getAsRange<StringAttr>())
    ranks *= mesh.getAxisSize(axis.getValue());
  return ranks;
}

/// Returns the number of shards into which the flat buffer of the op's unit is divided.
template <typename Op>
static int64_t countShards(Op op, SymbolTableCollection &tables) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  int64_t elements = countElements(op.getShard().getType());
  return elements == 0 ? 1 : unit.getFlatSize() / elements;
}

int64_t fsdp::getGroupSize(Operation *collective, SymbolTableCollection &tables) {
  return llvm::TypeSwitch<Operation *, int64_t>(collective)
      .Case<UnshardOp, ReduceScatterOp, ShardOp>([&](auto op) { return countShards(op, tables); })
      .Case<AllReduceOp, AllGatherOp, BroadcastOp, ShiftOp, FlatReduceScatterOp, OwnPieceOp>(
          [&](auto op) { return countRanks(op, tables); })
      .Default([](Operation *) { return 1; });
}

std::optional<int64_t> fsdp::getTripCount(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                         upper = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  if (!lower || !upper || !step || *step <= 0)
    return std::nullopt;
  return std::max<int64_t>(0, llvm::divideCeil(std::max<int64_t>(0, *upper - *lower), *step));
}

namespace {
/// The integer base + slope * i in iteration i of the enclosing loop.
struct Linear {
  int64_t base = 0, slope = 0;
};
} // namespace

static std::optional<Linear> evaluate(OpFoldResult index);

static std::optional<Linear> combine(std::optional<Linear> a, std::optional<Linear> b,
                                     bool product) {
  if (!a || !b)
    return std::nullopt;
  if (!product)
    return Linear{a->base + b->base, a->slope + b->slope};
  if (a->slope && b->slope)
    return std::nullopt;
  return Linear{a->base * b->base, a->base * b->slope + a->slope * b->base};
}

static std::optional<Linear> evaluate(AffineExpr expr, ValueRange operands, unsigned numDims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Linear{constant.getValue(), 0};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return evaluate(operands[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return evaluate(operands[numDims + symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (binary.getKind() != AffineExprKind::Add && binary.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  return combine(evaluate(binary.getLHS(), operands, numDims),
                 evaluate(binary.getRHS(), operands, numDims),
                 binary.getKind() == AffineExprKind::Mul);
}

static std::optional<Linear> evaluate(OpFoldResult index) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return Linear{*constant, 0};
  auto value = dyn_cast<Value>(index);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar() || !getTripCount(loop))
      return std::nullopt;
    return Linear{*getConstantIntValue(loop.getLowerBound()), *getConstantIntValue(loop.getStep())};
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::AddIOp, arith::MulIOp>(op))
    return combine(evaluate(op->getOperand(0)), evaluate(op->getOperand(1)),
                   isa<arith::MulIOp>(op));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return evaluate(apply.getAffineMap().getResult(0), apply.getMapOperands(),
                    apply.getAffineMap().getNumDims());
  return std::nullopt;
}

std::optional<ViewOffset> fsdp::getContiguousOffset(tensor::ExtractSliceOp op) {
  RankedTensorType source = op.getSourceType();
  if (!op.getType().hasStaticShape() || !source.hasStaticShape() || !op.hasUnitStride())
    return std::nullopt;
  // Go from the innermost dimension of the slice outwards. In a contiguous slice, some innermost
  // dimensions are complete, the next dimension may be cut, and each further dimension has one
  // element.
  ViewOffset result;
  int64_t pitch = getStorageBytes(RankedTensorType::get({1}, source.getElementType()));
  bool cut = false;
  for (int64_t dim = source.getRank() - 1; dim >= 0; --dim) {
    int64_t size = op.getStaticSize(dim);
    std::optional<Linear> offset = evaluate(op.getMixedOffsets()[dim]);
    if (!offset || (cut && size != 1))
      return std::nullopt;
    cut |= size != source.getDimSize(dim);
    result.bytes += offset->base * pitch;
    result.stride += offset->slope * pitch;
    pitch *= source.getDimSize(dim);
  }
  return result;
}

Aliasing::Aliasing(func::FuncOp function) {
  int64_t next = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { positions[op] = next++; });
}

Value Aliasing::getViewSource(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, OwnPieceOp>(op) ||
      (isa<UnshardOp, AllReduceOp, AllGatherOp, BroadcastOp, ShiftOp, FlatReduceScatterOp>(op) &&
       getGroupSize(op, tables) == 1))
    return op->getOperand(0);
  return {};
}

Value Aliasing::getBase(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value source = getViewSource(op);
    if (!source)
      break;
    value = source;
  }
  return value;
}

int64_t Aliasing::getEnd(Value value) {
  if (auto known = ends.find(value); known != ends.end())
    return known->second;
  Operation *owner = value.getParentBlock()->getParentOp();
  int64_t end = value.getDefiningOp() ? getPosition(value.getDefiningOp()) : getPosition(owner);
  for (Operation *user : value.getUsers()) {
    end = std::max(end, getPosition(user));
    for (Operation *loop = user->getParentOp(); loop != owner; loop = loop->getParentOp())
      end = std::max(end, getPosition(loop->getRegion(0).front().getTerminator()));
    if (getViewSource(user))
      for (Value view : user->getResults())
        end = std::max(end, getEnd(view));
  }
  return ends[value] = end;
}

bool Aliasing::mayOverwrite(KernelCallOp call, unsigned index) {
  Value value = call.getInputs()[index], base = getBase(value);
  if (getEnd(value) > getPosition(call))
    return false;
  for (auto [other, operand] : llvm::enumerate(call.getInputs()))
    if (other != index && getBase(operand) == base)
      return false;
  return true;
}
