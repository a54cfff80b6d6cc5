//===- AuxiliaryOps.cpp - Ops that their readers compute --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides which ops are not stored: each kernel that reads the result of such an op computes the
// elements that it needs.
//
//   %lo = a · cos - b · sin                     rotary embedding; a and b: halves of a row
//   %hi = b · cos + a · sin
//   %c = concat %lo, %hi          [s, h, 2e]
//   %t = permute %c               [h, s, 2e]    a kernel, which contains all ops above
//
//  - constants, fills, scalars, strided views
//  - cheap maps with a result much larger than their inputs, and conversions to a wider type
//  - cheap maps that are only a piece of a concatenation
//  - concatenations that only a permutation reads
//  - permutations that only maps read
//
// A concatenation is a tensor.concat, or a tensor.insert_slice into a tensor. Reshapes may be
// between these ops. Permutations keep the last dimension. Takes O(readers) time per op.
//
//===----------------------------------------------------------------------===//

#include "Clusters.h"
#include "fsdp/IR/Widening.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t numElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() : 1;
}

/// A broadcast is not stored if its result is at least this number of times as large as its inputs.
static constexpr int64_t broadcastGain = 4;

/// Returns true if the byte offset of the slice is a multiple of the alignment that kernels assume.
static bool beginsAligned(tensor::ExtractSliceOp slice) {
  constexpr int64_t alignment = 64;
  RankedTensorType source = slice.getSourceType();
  int64_t stride = std::max<int64_t>(1, llvm::divideCeil(source.getElementTypeBitWidth(), 8)),
          offset = 0;
  for (int64_t d = source.getRank() - 1; d >= 0; --d) {
    int64_t at = slice.getStaticOffsets()[d];
    if (ShapedType::isDynamic(at)) // this is the slice of a micro-batch, which lib/Plan aligns
      continue;
    offset += at * stride;
    stride *= source.getDimSize(d);
  }
  return offset % alignment == 0;
}

bool fsdp::isContiguousView(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return true;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || !slice.hasUnitStride() || !slice.getSourceType().hasStaticShape() ||
      !beginsAligned(slice))
    return false;
  bool whole = true; // true if the slice covers all inner dimensions
  ArrayRef<int64_t> sizes = slice.getStaticSizes(), source = slice.getSourceType().getShape();
  for (int64_t d = source.size() - 1; d >= 0; --d) {
    if (!whole && sizes[d] != 1)
      return false;
    whole &= sizes[d] == source[d];
  }
  return true;
}

static bool isView(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(op);
}

/// Returns true if the op is a strided view, or a view of a strided view or of a move that is not
/// stored.
static bool isUnstoredView(Operation *op) {
  if (!isView(op))
    return false;
  if (!isContiguousView(op))
    return true;
  Operation *source = op->getOperand(0).getDefiningOp();
  return source && (isUnstoredView(source) || isMove(source));
}

/// Returns the only use of `v`, followed through reshapes, or null.
static OpOperand *onlyUse(Value v) {
  while (v.hasOneUse()) {
    OpOperand &use = *v.use_begin();
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(use.getOwner()))
      return &use;
    v = use.getOwner()->getResult(0);
  }
  return nullptr;
}

bool fsdp::isCheapMap(linalg::GenericOp generic) {
  if (generic.getNumReductionLoops() || generic->getNumResults() != 1)
    return false;
  return llvm::none_of(*generic.getBody(), [](Operation &o) {
    return isa<arith::DivFOp, tensor::ExtractOp>(o) ||
           (isa<math::MathDialect>(o.getDialect()) && !isa<math::FmaOp>(o));
  });
}

/// Returns true for a cheap map that only generics read. The result of the map must be much larger
/// than its inputs, or must differ from its input only in having a wider type. Each reader of such
/// a map computes the elements that it reads.
static bool isCheapBroadcast(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !isCheapMap(generic))
    return false;
  int64_t read = 0;
  for (Value in : generic.getInputs())
    read += numElements(in.getType());
  bool all = llvm::all_of(generic->getUsers(),
                          [](Operation *user) { return isa<linalg::GenericOp>(user); });
  return all && (isWideningInPlace(generic) ||
                 read * broadcastGain <= numElements(generic->getResultTypes()[0]));
}

/// Returns true if the op permutes a tensor and keeps its last dimension, so that a kernel still
/// reads consecutive elements.
static bool isPermutation(Operation *op) {
  auto copy = dyn_cast<linalg::GenericOp>(op);
  if (!copy || copy.getNumDpsInputs() != 1 || copy->getNumResults() != 1 ||
      copy.getNumReductionLoops() != 0 || !llvm::hasSingleElement(*copy.getBody()) ||
      copy.getBody()->getTerminator()->getOperand(0) != copy.getBody()->getArgument(0))
    return false;
  AffineMap in = copy.getIndexingMapsArray()[0], out = copy.getIndexingMapsArray()[1];
  return in.isPermutation() && out.isPermutation() && in.getNumResults() > 1 &&
         in.getResults().back() == out.getResults().back();
}

/// Returns true if the op is a concatenation that only a permutation, or only a concatenation of
/// this kind, reads.
static bool isUnstoredConcatenation(Operation *op) {
  if (!isa<tensor::ConcatOp, tensor::InsertSliceOp>(op))
    return false;
  OpOperand *use = onlyUse(op->getResult(0));
  if (!use || use->getOwner()->getBlock() != op->getBlock())
    return false;
  auto insert = dyn_cast<tensor::InsertSliceOp>(use->getOwner());
  return isPermutation(use->getOwner()) ||
         (insert && use->get() == insert.getDest() && isUnstoredConcatenation(insert));
}

/// Returns true if `v` is the result of a contraction or a reduction, whose kernel maps join.
static bool isReduced(Value v) {
  auto op = v.getDefiningOp<linalg::LinalgOp>();
  return op && op.getNumReductionLoops() != 0;
}

/// Returns true if the op is a cheap map of stored values that is only a piece of a concatenation,
/// or that only such a map reads.
static bool isPiece(Operation *op) {
  auto map = dyn_cast<linalg::GenericOp>(op);
  if (!map || !isCheapMap(map) || llvm::any_of(map.getInputs(), isReduced))
    return false;
  OpOperand *use = onlyUse(op->getResult(0));
  if (!use || use->getOwner()->getBlock() != op->getBlock())
    return false;
  Operation *reader = use->getOwner();
  auto insert = dyn_cast<tensor::InsertSliceOp>(reader);
  return isa<tensor::ConcatOp>(reader) || (insert && use->get() == insert.getSource()) ||
         (reader == *op->user_begin() && isPiece(reader));
}

/// Returns true if only maps read `v`, directly or through views.
static bool onlyMapsRead(Value v) {
  return llvm::all_of(v.getUsers(), [](Operation *user) {
    if (isView(user))
      return onlyMapsRead(user->getResult(0));
    auto map = dyn_cast<linalg::GenericOp>(user);
    return map && map.getNumReductionLoops() == 0;
  });
}

/// Returns true if the op is a permutation that only maps read.
static bool isUnstoredPermutation(Operation *op) {
  return isPermutation(op) && !isReduced(op->getOperand(0)) && onlyMapsRead(op->getResult(0));
}

bool fsdp::isMove(Operation *op) {
  return isUnstoredConcatenation(op) || isPiece(op) || isUnstoredPermutation(op);
}

bool fsdp::isAuxiliary(Operation *op) {
  if (isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp, tensor::SplatOp>(op))
    return true;
  bool scalar = llvm::none_of(op->getResultTypes(), [](Type t) { return isa<TensorType>(t); });
  if (scalar && op->getNumRegions() == 0)
    return isPure(op) && op->getNumResults() != 0;
  return isUnstoredView(op) || isCheapBroadcast(op) || isMove(op);
}

/// Returns `compute(op)`. Reads the result from `cache` if it is there, and stores it there
/// otherwise.
static bool getCached(DenseMap<Operation *, bool> &cache, Operation *op,
                      bool (*compute)(Operation *)) {
  if (auto it = cache.find(op); it != cache.end())
    return it->second;
  return cache[op] = compute(op);
}

bool AuxiliaryOps::contains(Operation *op) { return getCached(auxiliary, op, isAuxiliary); }

bool AuxiliaryOps::moves(Operation *op) { return getCached(moving, op, isMove); }
