//===- JoinPositions.cpp - One index instead of several ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A read of a tensor at two or more computed positions becomes a lookup of rows, which
// RaiseEmbedding.cpp raises. Flips, transposed convolutions, upsampling, the extraction of patches,
// and the indexing `x[:, rows, columns]` read tensors in this way.
//
//   generic {                                  %t = generic: %x transposed to [H, W, C]
//     tensor.extract %x[%c, %i / 2, 7 - %j]     ->    %r = collapse %t to [H · W, C]
//   }                                          generic { tensor.extract %r[%i / 2 · W + 7 - %j, %c]
//   }
//
//  1. The index of a dimension is called fixed if it is a constant, plain if it is the index of a
//     loop over the whole dimension, and moving otherwise. This pass skips lookups with fewer than
//     two indices that are neither loop indices nor constants.
//  2. A plain index counts as moving if a moving index depends on the same loop.
//  3. Transpose the tensor so that the dimensions with moving indices come first, and collapse
//     these dimensions to one.
//  4. If the index of the collapsed dimension is affine in the loops, compute it in a separate
//     generic. If the index were computed in the body, other passes would not recognise a lookup.
//
//===----------------------------------------------------------------------===//

#include "Lookups/Lookups.h"
#include "Structure/CaptureOperands.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_JOINPOSITIONSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct JoinPositionsPass : public fsdp::impl::JoinPositionsPassBase<JoinPositionsPass> {
  using JoinPositionsPassBase::JoinPositionsPassBase;
  void runOnOperation() override;
};

/// The dimensions of a tensor that a lookup reads at moving indices, and all other dimensions.
struct Positions {
  SmallVector<int64_t> moving, others;
};
} // namespace

/// Adds the loops that a value of the body depends on.
static void addLoops(linalg::GenericOp generic, Value index, llvm::SmallBitVector &loops) {
  llvm::SetVector<Value> work;
  work.insert(index);
  for (size_t i = 0; i < work.size(); ++i) {
    if (auto arg = dyn_cast<BlockArgument>(work[i])) {
      if (arg.getOwner() != generic.getBody())
        continue;
      AffineMap map = generic.getIndexingMapsArray()[arg.getArgNumber()];
      for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
        if (map.isFunctionOfDim(loop))
          loops.set(loop);
      continue;
    }
    Operation *op = work[i].getDefiningOp();
    if (auto loop = dyn_cast<linalg::IndexOp>(op); loop && loop->getParentOp() == generic)
      loops.set(loop.getDim());
    if (op->getBlock() == generic.getBody())
      work.insert(op->operand_begin(), op->operand_end());
  }
}

/// Classifies the dimensions that a lookup reads. Fails unless at least two indices are neither
/// loops nor constants.
static FailureOr<Positions> analyse(linalg::GenericOp generic, tensor::ExtractOp extract) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(extract.getTensor().getType()).getShape();
  SmallVector<int64_t> extents = generic.getStaticLoopRanges();
  llvm::SmallBitVector moves(shape.size()), loops(generic.getNumLoops());
  SmallVector<std::optional<unsigned>> plain(shape.size());
  unsigned computed = 0;
  for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
    AffineExpr expr = affineIndex(index);
    auto loop = dyn_cast_or_null<AffineDimExpr>(expr);
    computed += !isa_and_nonnull<AffineDimExpr, AffineConstantExpr>(expr);
    if (loop && extents[loop.getPosition()] == shape[dim] &&
        !llvm::is_contained(plain, std::optional<unsigned>(loop.getPosition())))
      plain[dim] = loop.getPosition();
    else if (!isa_and_nonnull<AffineConstantExpr>(expr))
      // The index of a loop counts as moving if the loop covers only a part of the dimension,
      // or if the loop indexes two dimensions (a diagonal).
      moves.set(dim);
  }
  if (computed < 2)
    return failure();
  for (unsigned dim : moves.set_bits())
    addLoops(generic, extract.getIndices()[dim], loops);
  Positions positions;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (moves.test(dim) || (plain[dim] && loops.test(*plain[dim])))
      positions.moving.push_back(dim);
    else
      positions.others.push_back(dim);
  return positions;
}

/// Joins the moving dimensions of `tensor` to one dimension, which is the first dimension of the
/// result.
static Value joinDimensions(Value tensor, const Positions &positions, OpBuilder &b, Location loc) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> order(positions.moving), shape;
  llvm::append_range(order, positions.others);
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  unsigned rank = order.size(), moving = positions.moving.size();
  if (!llvm::is_sorted(order)) {
    SmallVector<AffineExpr> read(rank);
    for (auto [place, dim] : llvm::enumerate(order))
      read[dim] = b.getAffineDimExpr(place);
    SmallVector<AffineMap> maps{AffineMap::get(rank, 0, read, b.getContext()),
                                b.getMultiDimIdentityMap(rank)};
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
    tensor =
        linalg::GenericOp::create(b, loc, TypeRange(empty.getType()), tensor, empty, maps, loops,
                                  [](OpBuilder &b, Location loc, ValueRange args) {
                                    linalg::YieldOp::create(b, loc, args[0]);
                                  })
            .getResult(0);
  }
  SmallVector<ReassociationIndices> groups{llvm::to_vector(llvm::seq<int64_t>(0, moving))};
  for (unsigned dim = moving; dim < rank; ++dim)
    groups.push_back({dim});
  return tensor::CollapseShapeOp::create(b, loc, tensor, groups);
}

static LogicalResult join(tensor::ExtractOp extract) {
  auto generic = dyn_cast<linalg::GenericOp>(extract->getParentOp());
  auto type = dyn_cast<RankedTensorType>(extract.getTensor().getType());
  if (!generic || !type || !type.hasStaticShape() ||
      generic.getRegion().isAncestor(extract.getTensor().getParentRegion()))
    return failure();
  FailureOr<Positions> positions = analyse(generic, extract);
  if (failed(positions))
    return failure();
  Location loc = extract.getLoc();
  IRRewriter b(generic);
  Value table = joinDimensions(extract.getTensor(), *positions, b, loc);
  b.setInsertionPoint(extract);
  Value linear;
  for (int64_t dim : positions->moving) {
    Value index = extract.getIndices()[dim];
    if (!linear) {
      linear = index;
      continue;
    }
    Value extent = arith::ConstantIndexOp::create(b, loc, type.getDimSize(dim));
    linear = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, linear, extent), index);
  }
  Value standIn;
  FailureOr<Ids> ids = failure();
  if (affineIndex(linear) && isa<FloatType>(type.getElementType()))
    ids = findPositions(generic, linear, b);
  b.setInsertionPoint(extract);
  if (succeeded(ids)) {
    standIn = arith::ConstantOp::create(b, loc, b.getZeroAttr(getElementTypeOrSelf(ids->tensor)));
    linear = arith::IndexCastOp::create(b, loc, b.getIndexType(), standIn);
  }
  SmallVector<Value> indices{linear};
  for (int64_t dim : positions->others)
    indices.push_back(extract.getIndices()[dim]);
  b.replaceOpWithNewOp<tensor::ExtractOp>(extract, table, indices);
  if (standIn) {
    addInput(generic, ids->tensor, ids->map, standIn, b);
    b.eraseOp(standIn.getDefiningOp());
  }
  return success();
}

void JoinPositionsPass::runOnOperation() {
  SmallVector<tensor::ExtractOp> extracts;
  getOperation().walk([&](tensor::ExtractOp op) { extracts.push_back(op); });
  for (tensor::ExtractOp extract : extracts)
    numJoined += succeeded(join(extract));
}
