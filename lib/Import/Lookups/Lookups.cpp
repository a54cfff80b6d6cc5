//===- Lookups.cpp - Indices that depend on data ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lookups/Lookups.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Follows a value back through casts between integer types.
static Value stripCasts(Value index) {
  while (Operation *op = index.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp>(op))
      break;
    index = op->getOperand(0);
  }
  return index;
}

namespace {
/// The ops of a body that compute an index.
struct Slice {
  llvm::SetVector<Operation *> ops;
  llvm::SmallBitVector loops;               // loops of the generic that the index depends on
  llvm::SmallSetVector<unsigned, 4> inputs; // inputs of the generic that the index depends on
};
} // namespace

/// Collects the ops of the body that compute an index. If `nested`, these ops may include lookups
/// in tensors that are defined outside the generic. Fails if the index depends on an output of the
/// generic or on any other lookup.
static FailureOr<Slice> computeSlice(linalg::GenericOp generic, Value index, bool nested) {
  Slice slice;
  slice.loops.resize(generic.getNumLoops());
  SmallVector<Value> work{index};
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (auto arg = dyn_cast<BlockArgument>(v)) {
      if (arg.getOwner() != generic.getBody() || arg.getArgNumber() >= generic.getNumDpsInputs())
        return failure();
      slice.inputs.insert(arg.getArgNumber());
      AffineMap map = generic.getIndexingMapsArray()[arg.getArgNumber()];
      for (unsigned d = 0; d < generic.getNumLoops(); ++d)
        if (map.isFunctionOfDim(d))
          slice.loops.set(d);
      continue;
    }
    Operation *op = v.getDefiningOp();
    if (op->getBlock() != generic.getBody() || !slice.ops.insert(op))
      continue;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      if (!nested || generic.getRegion().isAncestor(extract.getTensor().getParentRegion()))
        return failure();
      work.append(extract.getIndices().begin(), extract.getIndices().end());
      continue;
    }
    if (auto loop = dyn_cast<linalg::IndexOp>(op))
      slice.loops.set(loop.getDim());
    work.append(op->operand_begin(), op->operand_end());
  }
  return slice;
}

/// Builds a generic with the loops of `slice`. The generic yields the index as i64.
static Ids computeIds(linalg::GenericOp generic, Value index, const Slice &slice, OpBuilder &b) {
  Location loc = index.getLoc();
  SmallVector<int64_t> extents = generic.getStaticLoopRanges(), shape;
  SmallVector<AffineExpr> renumbered(generic.getNumLoops(), b.getAffineConstantExpr(0)), idExprs;
  for (unsigned d : slice.loops.set_bits()) {
    renumbered[d] = b.getAffineDimExpr(shape.size());
    idExprs.push_back(b.getAffineDimExpr(d));
    shape.push_back(extents[d]);
  }
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs;
  for (unsigned input : slice.inputs) {
    inputs.push_back(generic.getInputs()[input]);
    maps.push_back(generic.getIndexingMapsArray()[input].replaceDimsAndSymbols(renumbered, {},
                                                                               shape.size(), 0));
  }
  maps.push_back(b.getMultiDimIdentityMap(shape.size()));
  b.setInsertionPoint(generic);
  Value empty = tensor::EmptyOp::create(b, loc, shape, b.getI64Type());
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    IRMapping mapping;
    for (auto [input, arg] : llvm::zip(slice.inputs, args))
      mapping.map(generic.getBody()->getArgument(input), arg);
    for (Operation &op : generic.getBody()->without_terminator()) {
      if (!slice.ops.contains(&op))
        continue;
      Operation *copy = b.clone(op, mapping);
      if (auto loop = dyn_cast<linalg::IndexOp>(copy))
        loop.setDim(cast<AffineDimExpr>(renumbered[loop.getDim()]).getPosition());
    }
    Value value = mapping.lookupOrDefault(index);
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    else if (value.getType() != b.getI64Type())
      value = arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
    linalg::YieldOp::create(b, loc, value);
  };
  auto computed = linalg::GenericOp::create(b, loc, TypeRange(empty.getType()), inputs,
                                            ValueRange(empty), maps, iterators, body);
  return {computed.getResult(0), AffineMap::get(generic.getNumLoops(), 0, idExprs, b.getContext())};
}

/// Returns the input of which `value` is an element, or nothing if the body computes the value.
static std::optional<Ids> matchInput(linalg::GenericOp generic, Value index) {
  auto arg = dyn_cast<BlockArgument>(index);
  if (!arg || arg.getOwner() != generic.getBody() ||
      arg.getArgNumber() >= generic.getNumDpsInputs())
    return std::nullopt;
  AffineMap map = generic.getIndexingMapsArray()[arg.getArgNumber()];
  return map.isProjectedPermutation()
             ? std::optional(Ids{generic.getInputs()[arg.getArgNumber()], map})
             : std::nullopt;
}

/// Builds a generic that computes the values of `index`. For `nested`, see computeSlice().
static FailureOr<Ids> buildIds(linalg::GenericOp generic, Value index, bool nested, OpBuilder &b) {
  FailureOr<Slice> slice = computeSlice(generic, index, nested);
  if (failed(slice))
    return failure();
  return computeIds(generic, index, *slice, b);
}

FailureOr<Ids> fsdp::findIds(linalg::GenericOp generic, Value position, OpBuilder &b) {
  Value index = stripCasts(position);
  if (std::optional<Ids> ids = matchInput(generic, index))
    return *ids;
  return buildIds(generic, index, /*nested=*/false, b);
}

FailureOr<Ids> fsdp::findPositions(linalg::GenericOp generic, Value position, OpBuilder &b) {
  Value index = position;
  while (Operation *op = index.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::ExtSIOp>(op) || op->getOperand(0).getType().isInteger(1))
      break;
    index = op->getOperand(0);
  }
  if (std::optional<Ids> ids = matchInput(generic, index))
    return *ids;
  return buildIds(generic, position, /*nested=*/true, b);
}

std::optional<RowLookup> fsdp::getRowLookup(Operation *op) {
  if (auto gather = dyn_cast<GatherRowsOp>(op))
    return RowLookup{
        op, gather.getIds(), gather.getTable().getType().getDimSize(0), "rows of the table", {}};
  if (auto loss = dyn_cast<CrossEntropyOp>(op))
    return RowLookup{op, loss.getTargets(), loss.getLogits().getType().getDimSize(1),
                     "classes of the loss", loss.getIgnoreIndex()};
  return std::nullopt;
}

int64_t fsdp::getLargestLimit(Type ids) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(ids));
  if (!integer || integer.getWidth() >= 64)
    return std::numeric_limits<int64_t>::max();
  return int64_t(1) << (integer.getWidth() - (integer.isUnsigned() ? 0 : 1));
}
