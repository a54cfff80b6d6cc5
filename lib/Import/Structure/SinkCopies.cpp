//===- SinkCopies.cpp - Move transposes towards their readers ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The indexing maps of a product can absorb a transpose of an operand. But ops such as a rotary
// embedding or the scale of K are often between the transpose of the heads and the product. The
// patterns in this file move the transpose past these ops:
//
//   slice(transpose(%x))                     -> transpose(slice(%x))
//   f(transpose(%x)), read by a product      -> transpose(f(%x))
//   f(broadcast(%x)), read by a product      -> broadcast(f(%x))
//   concat(transpose(%a), transpose(%b))     -> transpose(concat(%a, %b))
//
//===----------------------------------------------------------------------===//

#include "Structure/SinkCopies.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Builds a copy of type `type`, whose element at position d is source[in(d)].
static Value createCopy(OpBuilder &b, Location loc, Value source, AffineMap in,
                        RankedTensorType type) {
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps{in, b.getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(source), ValueRange(empty),
                                   maps, iterators,
                                   [](OpBuilder &b, Location loc, ValueRange args) {
                                     linalg::YieldOp::create(b, loc, args[0]);
                                   })
      .getResult(0);
}

/// If `value` is the result of a transpose, sets `source` to the input of the transpose. Returns
/// the map from positions in `value` to positions in `source`.
static std::optional<AffineMap> transposeMap(Value value, Value &source) {
  auto copy = value.getDefiningOp<linalg::GenericOp>();
  if (!copy || !isCopy(copy))
    return std::nullopt;
  SmallVector<AffineMap> maps = copy.getIndexingMapsArray();
  AffineMap map = maps[0].compose(inversePermutation(maps[1]));
  if (!map.isPermutation() || map.isIdentity())
    return std::nullopt;
  source = copy.getInputs()[0];
  return map;
}

/// `values` contains one value for each dimension of a transpose. Returns these values in the order
/// of the dimensions of the transpose's source.
template <typename T>
static SmallVector<T> toSource(AffineMap map, ArrayRef<T> values) {
  SmallVector<T> result;
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    result.push_back(values[map.getDimPosition(i)]);
  return result;
}

namespace {
struct SliceOfTranspose : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    Value source;
    auto map = transposeMap(op.getSource(), source);
    auto type = op.getType();
    if (!map || type.getRank() != map->getNumResults())
      return failure();
    Value slice = tensor::ExtractSliceOp::create(
        rewriter, op.getLoc(), source, toSource<OpFoldResult>(*map, op.getMixedOffsets()),
        toSource<OpFoldResult>(*map, op.getMixedSizes()),
        toSource<OpFoldResult>(*map, op.getMixedStrides()));
    rewriter.replaceOp(op, createCopy(rewriter, op.getLoc(), slice, *map, type));
    return success();
  }
};

struct ConcatOfTransposes : OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ConcatOp op, PatternRewriter &rewriter) const override {
    std::optional<AffineMap> common;
    SmallVector<Value> sources;
    for (Value input : op.getInputs()) {
      Value source;
      auto map = transposeMap(input, source);
      if (!map || (common && *common != *map))
        return failure();
      common = map;
      sources.push_back(source);
    }
    if (!common)
      return failure();
    // Find the dimension of the sources that becomes the concatenated dimension.
    unsigned dim = 0;
    while (common->getDimPosition(dim) != op.getDim())
      ++dim;
    Value joined = tensor::ConcatOp::create(rewriter, op.getLoc(), dim, sources);
    auto type = cast<RankedTensorType>(op.getResult().getType());
    rewriter.replaceOp(op, createCopy(rewriter, op.getLoc(), joined, *common, type));
    return success();
  }
};

/// Returns whether `op` is elementwise, is no copy, and has one result with an identity map.
static bool isPlainMap(linalg::GenericOp op) {
  return op.getNumDpsInputs() > 0 && op->getNumResults() == 1 && isParallel(op) && !isCopy(op) &&
         op.getBody()->getArguments().back().use_empty() &&
         op.getIndexingMapsArray().back().isIdentity();
}

/// Returns whether all ops that read `value`, directly or through views and unary ops, are
/// products, concatenations or copies. A copy can be folded into these ops or moved past them.
static bool readsThroughCopies(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user))
      return readsThroughCopies(user->getResult(0));
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (generic && isPlainMap(generic) && generic.getNumDpsInputs() == 1)
      return readsThroughCopies(generic.getResult(0));
    return isa<tensor::ConcatOp>(user) || (generic && (isContraction(generic) || isCopy(generic)));
  });
}

/// f(broadcast(x)) -> broadcast(f(x)), for unary f.
struct UnaryBeforeBroadcast : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (op.getNumDpsInputs() != 1 || !isPlainMap(op) || op.hasIndexSemantics() ||
        !readsThroughCopies(op.getResult(0)))
      return failure();
    AffineMap map = op.getIndexingMapsArray()[0];
    auto source = dyn_cast<RankedTensorType>(op.getInputs()[0].getType());
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (!source || map.isPermutation() || source.getRank() == 0)
      return failure();
    auto ownType = source.clone(type.getElementType());
    Location loc = op.getLoc();
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, ownType.getShape(), ownType.getElementType());
    SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(source.getRank()));
    SmallVector<utils::IteratorType> iterators(source.getRank(), utils::IteratorType::parallel);
    auto moved = linalg::GenericOp::create(rewriter, loc, TypeRange(ownType), op.getInputs(),
                                           ValueRange(empty), maps, iterators);
    rewriter.cloneRegionBefore(op.getRegion(), moved.getRegion(), moved.getRegion().begin());
    rewriter.replaceOp(op, createCopy(rewriter, loc, moved.getResult(0), map, type));
    return success();
  }
};

/// f(transpose(x), ..) -> transpose(f(x, ..)), if all inputs with all loops have that transpose.
struct MapBeforeTranspose : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (!isPlainMap(op) || !readsThroughCopies(op.getResult(0)))
      return failure();
    // Keep the maps, which are returned by value, alive for the ArrayRef below.
    SmallVector<AffineMap> known = op.getIndexingMapsArray();
    // The map of those inputs whose maps contain all loops. All these inputs must have equal maps.
    AffineMap order;
    for (AffineMap map : ArrayRef(known).drop_back()) {
      if (!map.isPermutation())
        continue;
      if (order && order != map)
        return failure();
      order = map;
    }
    if (!order || order.isIdentity())
      return failure();
    AffineMap back = inversePermutation(order); // new loops -> old loops
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> shape = toSource<int64_t>(order, type.getShape());
    Location loc = op.getLoc();
    Value empty = tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
    SmallVector<AffineMap> maps;
    for (AffineMap map : ArrayRef(known).drop_back())
      maps.push_back(map.compose(back));
    maps.push_back(rewriter.getMultiDimIdentityMap(type.getRank()));
    auto moved =
        linalg::GenericOp::create(rewriter, loc, TypeRange(empty.getType()), op.getInputs(),
                                  ValueRange(empty), maps, op.getIteratorTypesArray());
    rewriter.cloneRegionBefore(op.getRegion(), moved.getRegion(), moved.getRegion().begin());
    for (auto index : moved.getBody()->getOps<linalg::IndexOp>())
      index.setDim(back.getDimPosition(index.getDim()));
    rewriter.replaceOp(op, createCopy(rewriter, loc, moved.getResult(0), order, type));
    return success();
  }
};
} // namespace

void fsdp::populateSinkCopyPatterns(RewritePatternSet &patterns) {
  patterns.add<SliceOfTranspose, ConcatOfTransposes, UnaryBeforeBroadcast, MapBeforeTranspose>(
      patterns.getContext());
}
