//===- RaiseEmbedding.cpp - Raise lookups to fsdp.gather_rows ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   generic ins(%ids) {                              %r = fsdp.gather_rows %table[%ids]
//   ^bb0(%id: i64, %out: f32):                 ->    generic ins(%r, ..) { ^bb0(%v: f32, ..):
//     %v = tensor.extract %table[%id, index 1]         ... }
//     ... }
//
//  1. If the index of a dimension is a constant, remove the dimension by a slice of the table. The
//     index of the first remaining dimension must depend on data. The index of every other
//     dimension must be the index of a loop over the whole dimension.
//  2. If the index is computed, as in `id + 2`, compute it in a generic before the lookup.
//  3. If the rank of the table is not 2, view the table as a matrix. Then reshape the result, so
//     that each row has its original shape.
//
// RaiseCrossEntropy.cpp and ExpandLookup.cpp handle lookups in the last dimension (the
// log-probability of a target).
//
//===----------------------------------------------------------------------===//

#include "Lookups/Lookups.h"
#include "Structure/CaptureOperands.h"
#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RAISEEMBEDDINGPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct RaiseEmbeddingPass : public fsdp::impl::RaiseEmbeddingPassBase<RaiseEmbeddingPass> {
  using RaiseEmbeddingPassBase::RaiseEmbeddingPassBase;
  void runOnOperation() override;
};

/// A lookup `table[index, rest...]`, without the dimensions that have a constant index.
struct Lookup {
  tensor::ExtractOp extract;
  linalg::GenericOp generic;
  Value table;                  // slice of the table at the constant indices
  Value index;                  // index that depends on data
  SmallVector<AffineExpr> rest; // loops that index the other dimensions
};
} // namespace

/// Matches a lookup, and slices the table at the constant indices.
static FailureOr<Lookup> analyse(tensor::ExtractOp extract, OpBuilder &b) {
  Lookup lookup;
  lookup.extract = extract;
  lookup.generic = dyn_cast<linalg::GenericOp>(extract->getParentOp());
  auto type = dyn_cast<RankedTensorType>(extract.getTensor().getType());
  if (!lookup.generic || !type || !type.hasStaticShape() ||
      !isa<FloatType>(type.getElementType()) ||
      lookup.generic.getRegion().isAncestor(extract.getTensor().getParentRegion()))
    return failure();
  SmallVector<int64_t> loops = lookup.generic.getStaticLoopRanges(), shape;
  SmallVector<OpFoldResult> offsets, sizes, strides(type.getRank(), b.getIndexAttr(1));
  bool fixed = false;
  for (auto [extent, index] : llvm::zip_equal(type.getShape(), extract.getIndices())) {
    AffineExpr expr = affineIndex(index);
    auto constant = dyn_cast_or_null<AffineConstantExpr>(expr);
    auto loop = dyn_cast_or_null<AffineDimExpr>(expr);
    if (constant) {
      fixed = true;
    } else {
      // The first index must depend on data, and no other index may depend on data.
      if (!expr == static_cast<bool>(lookup.index))
        return failure();
      if (expr && (!loop || loops[loop.getPosition()] != extent))
        return failure();
      if (expr)
        lookup.rest.push_back(expr);
      else
        lookup.index = index;
      shape.push_back(extent);
    }
    offsets.push_back(b.getIndexAttr(constant ? constant.getValue() : 0));
    sizes.push_back(b.getIndexAttr(constant ? 1 : extent));
  }
  if (!lookup.index)
    return failure();
  lookup.table = extract.getTensor();
  b.setInsertionPoint(lookup.generic);
  if (fixed)
    lookup.table = tensor::ExtractSliceOp::create(
        b, extract.getLoc(), RankedTensorType::get(shape, type.getElementType()), lookup.table,
        offsets, sizes, strides);
  return lookup;
}

/// Builds the gather. The result has the dimensions of `ids`, followed by all dimensions of the
/// table except the first.
static Value gather(Lookup &lookup, Value ids, OpBuilder &b) {
  Location loc = lookup.extract.getLoc();
  auto tableType = cast<RankedTensorType>(lookup.table.getType());
  int64_t rank = tableType.getRank(), rows = tableType.getDimSize(0);
  int64_t columns = tableType.getNumElements() / std::max<int64_t>(rows, 1);
  SmallVector<int64_t> shape(cast<RankedTensorType>(ids.getType()).getShape());
  int64_t idRank = shape.size();
  Value table = lookup.table;
  auto flatTable = RankedTensorType::get({rows, columns}, tableType.getElementType());
  if (rank == 1)
    table = tensor::ExpandShapeOp::create(b, loc, flatTable, table,
                                          ArrayRef<ReassociationIndices>{{0, 1}});
  else if (rank > 2)
    table = tensor::CollapseShapeOp::create(
        b, loc, flatTable, table,
        ArrayRef<ReassociationIndices>{{0}, llvm::to_vector(llvm::seq<int64_t>(1, rank))});
  shape.push_back(columns);
  auto rowsType = RankedTensorType::get(shape, tableType.getElementType());
  Value result = GatherRowsOp::create(b, loc, rowsType, table, ids);
  if (rank == 2)
    return result;
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < idRank; ++d)
    groups.push_back({d});
  shape.pop_back();
  if (rank == 1) {
    if (groups.empty())
      return tensor::CollapseShapeOp::create(
          b, loc, RankedTensorType::get({}, tableType.getElementType()), result, groups);
    groups.back().push_back(idRank);
    return tensor::CollapseShapeOp::create(
        b, loc, RankedTensorType::get(shape, tableType.getElementType()), result, groups);
  }
  groups.push_back(llvm::to_vector(llvm::seq<int64_t>(idRank, idRank + rank - 1)));
  shape.append(tableType.getShape().begin() + 1, tableType.getShape().end());
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, tableType.getElementType()), result, groups);
}

/// Replaces a lookup in a generic by a new operand that holds the rows.
static LogicalResult raise(tensor::ExtractOp extract) {
  OpBuilder b(extract.getContext());
  FailureOr<Lookup> lookup = analyse(extract, b);
  if (failed(lookup))
    return failure();
  FailureOr<Ids> ids = findIds(lookup->generic, lookup->index, b);
  if (failed(ids))
    return failure();
  b.setInsertionPoint(lookup->generic);
  Value rows = gather(*lookup, ids->tensor, b);
  SmallVector<AffineExpr> exprs(ids->map.getResults());
  exprs.append(lookup->rest);
  AffineMap map = AffineMap::get(lookup->generic.getNumLoops(), 0, exprs, b.getContext());
  IRRewriter rewriter(b);
  addInput(lookup->generic, rows, map, extract.getResult(), rewriter);
  rewriter.eraseOp(extract);
  return success();
}

void RaiseEmbeddingPass::runOnOperation() {
  // Raising rebuilds the generic, so collect the lookups again after each raised lookup.
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<tensor::ExtractOp> extracts;
    getOperation().walk([&](tensor::ExtractOp op) { extracts.push_back(op); });
    for (tensor::ExtractOp extract : extracts)
      if (succeeded(raise(extract))) {
        ++numRaised;
        changed = true;
        break;
      }
  }
}
