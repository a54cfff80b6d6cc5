//===- ExpandLookup.cpp - Expand lookups to masked sums ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rewrites lookups that do not read whole rows of a table, such as the log-probability of a target.
// The pass replaces such a lookup by a sum over the dimension with the computed index:
//
//   generic ins(%t) {                          %p = generic ins(%logp, %t)
//     tensor.extract %logp[index 0, %t] }  ->    { sum over v of select(v == %t, %logp[d0, v], 0) }
//
// The sum has a derivative without a scatter, but each lookup costs O(size of the dimension). Also
// rewrites lookups in integer tables (a mask) and at indices such as n - 1 - d (a flip).
//
// RaiseCrossEntropy.cpp raises losses, and RaiseEmbedding.cpp raises lookups of rows.
//
//===----------------------------------------------------------------------===//

#include "Lookups/Lookups.h"
#include "Structure/CaptureOperands.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPANDLOOKUPPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ExpandLookupPass : public fsdp::impl::ExpandLookupPassBase<ExpandLookupPass> {
  using ExpandLookupPassBase::ExpandLookupPassBase;
  void runOnOperation() override;
};
} // namespace

/// Appends the indices of a lookup to `exprs`, as functions of the loops. Exactly one index must be
/// neither a loop index nor a constant. This index becomes the affine dimension `v`. Returns the
/// number of this index, or failure.
static FailureOr<unsigned> analysePositions(tensor::ExtractOp extract, unsigned v,
                                            SmallVectorImpl<AffineExpr> &exprs) {
  std::optional<unsigned> picked;
  for (auto [i, index] : llvm::enumerate(extract.getIndices())) {
    AffineExpr expr = affineIndex(index);
    if (!isa_and_nonnull<AffineDimExpr, AffineConstantExpr>(expr)) {
      if (picked)
        return failure();
      picked = i;
      expr = getAffineDimExpr(v, extract.getContext());
    }
    exprs.push_back(expr);
  }
  if (!picked)
    return failure();
  return *picked;
}

/// Returns the loops that at least one of the maps uses, in ascending order.
static SmallVector<unsigned> usedLoops(ArrayRef<AffineMap> maps, unsigned numLoops) {
  SmallVector<unsigned> used;
  for (unsigned d = 0; d < numLoops; ++d)
    if (llvm::any_of(maps, [&](AffineMap map) { return map.isFunctionOfDim(d); }))
      used.push_back(d);
  return used;
}

/// Returns the slice of the tensor that a lookup can read. The slice is smaller than the tensor if
/// a loop is shorter than the dimension that it indexes.
static Value sliceReached(tensor::ExtractOp extract, ArrayRef<AffineExpr> exprs,
                          ArrayRef<int64_t> extents, OpBuilder &b) {
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, expr] : llvm::enumerate(exprs))
    if (auto loop = dyn_cast<AffineDimExpr>(expr); loop && loop.getPosition() < extents.size())
      shape[dim] = std::min(shape[dim], extents[loop.getPosition()]);
  if (ArrayRef(shape) == type.getShape())
    return extract.getTensor();
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)), sizes,
      strides(shape.size(), b.getIndexAttr(1));
  for (int64_t extent : shape)
    sizes.push_back(b.getIndexAttr(extent));
  return tensor::ExtractSliceOp::create(b, extract.getLoc(), type.clone(shape), extract.getTensor(),
                                        offsets, sizes, strides);
}

static LogicalResult expand(tensor::ExtractOp extract) {
  auto generic = dyn_cast<linalg::GenericOp>(extract->getParentOp());
  auto type = dyn_cast<RankedTensorType>(extract.getTensor().getType());
  if (!generic || !type || !type.hasStaticShape() ||
      !isa<FloatType, IntegerType>(type.getElementType()) ||
      generic.getRegion().isAncestor(extract.getTensor().getParentRegion()))
    return failure();
  OpBuilder b(generic);
  Location loc = extract.getLoc();
  unsigned numLoops = generic.getNumLoops();
  SmallVector<AffineExpr> exprs;
  FailureOr<unsigned> picked = analysePositions(extract, numLoops, exprs);
  if (failed(picked))
    return failure();
  FailureOr<Ids> ids = findIds(generic, extract.getIndices()[*picked], b);
  if (failed(ids))
    return failure();

  // The sum has the loops that the lookup depends on, then the loop `v`.
  AffineMap tableMap = AffineMap::get(numLoops + 1, 0, exprs, b.getContext());
  SmallVector<unsigned> loops = usedLoops({tableMap, ids->map}, numLoops);
  unsigned rank = loops.size();
  SmallVector<int64_t> extents = generic.getStaticLoopRanges(), shape;
  SmallVector<AffineExpr> renumbered(numLoops + 1, b.getAffineConstantExpr(0)), readExprs;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    renumbered[loop] = b.getAffineDimExpr(i);
    readExprs.push_back(b.getAffineDimExpr(loop));
    shape.push_back(extents[loop]);
  }
  renumbered[numLoops] = b.getAffineDimExpr(rank);
  SmallVector<AffineMap> maps{tableMap.replaceDimsAndSymbols(renumbered, {}, rank + 1, 0),
                              ids->map.replaceDimsAndSymbols(renumbered, {}, rank + 1, 0),
                              b.getMultiDimIdentityMap(rank + 1).getMajorSubMap(rank)};
  if (rank == 0)
    maps.back() = AffineMap::get(1, 0, b.getContext());
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);

  b.setInsertionPoint(generic);
  Value table = sliceReached(extract, exprs, extents, b);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  Value init = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value id = args[1].getType().isIndex()
                   ? args[1]
                   : arith::IndexCastOp::create(b, loc, b.getIndexType(), args[1]).getResult();
    Value v = linalg::IndexOp::create(b, loc, rank);
    Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, v, id);
    Value term = arith::SelectOp::create(b, loc, hit, args[0], zero);
    Value sum = isa<FloatType>(term.getType())
                    ? arith::AddFOp::create(b, loc, args[2], term).getResult()
                    : arith::OrIOp::create(b, loc, args[2], term).getResult();
    linalg::YieldOp::create(b, loc, sum);
  };
  Value picks =
      linalg::GenericOp::create(b, loc, TypeRange(init.getType()), ValueRange{table, ids->tensor},
                                ValueRange(init), maps, iterators, body)
          .getResult(0);
  if (affineIndex(extract.getIndices()[*picked]))
    extract.emitRemark(
        "this read at an index computed from the loops is expanded to a sum over the ")
        << type.getDimSize(*picked) << " elements of its dimension";
  IRRewriter rewriter(b);
  addInput(generic, picks, AffineMap::get(numLoops, 0, readExprs, b.getContext()),
           extract.getResult(), rewriter);
  rewriter.eraseOp(extract);
  return success();
}

void ExpandLookupPass::runOnOperation() {
  // An expansion rebuilds the generic, so collect the lookups again after each expansion.
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<tensor::ExtractOp> extracts;
    getOperation().walk([&](tensor::ExtractOp op) { extracts.push_back(op); });
    for (tensor::ExtractOp extract : extracts)
      if (succeeded(expand(extract))) {
        ++numExpanded;
        changed = true;
        break;
      }
  }
}
