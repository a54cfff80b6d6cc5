//===- RaiseAttention.cpp - Products around a softmax become an op --------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %s = contract(%q, %k)                    %o, %lse = fsdp.attention %q, %k, %v scale 0.125
//   %m = select(k <= q, %s / 8, -inf)   ->     mask_mod(%b, %h, %i, %j) { %i >= %j }
//   %p = softmax(%m)
//   %o = contract(%p, %v)
//
//  1. Match both products, and sort their loops into batch, heads, rows, keys and
//     head dimensions (AttentionMatch.cpp).
//  2. Read the formula between product and softmax. Next to the product, constant
//     factors are the scale. From the softmax inwards, `select(c, x, -inf)` and
//     `x + select(c, 0, -inf)` are mask_mod; what is left is score_mod. A finite number in place
//     of -inf (-1e4 or less) is as good where every row provably keeps a key; elsewhere
//     it stays as it is, unless `assume-keys` says that they do (ScoreFunctions.cpp).
//     After the softmax, factors that hold no floats from memory (dropout) are weight_mod.
//  3. Copy them as regions: places become b, h, i, j; tensors that they read, captured
//     operands; narrow floats are widened, for the score is in f32.
//  4. Bring Q, K and V to [batch, heads, length, depth], and O back. (Copies, which later
//     passes fold into what writes and reads them where they can.)
//
// A row of -inf is NaN before and 0 after it. Softmaxes between products that do not fit
// get a remark that says what is in the way.
//
//===----------------------------------------------------------------------===//

#include "Raise/AttentionMatch.h"
#include "Raise/ScoreFunctions.h"
#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RAISEATTENTIONPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct RaiseAttentionPass : public fsdp::impl::RaiseAttentionPassBase<RaiseAttentionPass> {
  using RaiseAttentionPassBase::RaiseAttentionPassBase;
  void runOnOperation() override;
};

/// Moves tensors between the model's layouts and [batch, heads, length, depth].
class Layouts {
public:
  Layouts(AttentionMatch &m, OpBuilder &b) : m(m), b(b), loc(m.mixing.getLoc()) {}

  /// The tensor at a place, as one dimension per group; parts that it lacks are repeated.
  Value gather(const Point &source, ArrayRef<SmallVector<unsigned>> groups);
  /// One dimension per group, as the result of the product with V.
  Value scatter(Value value, ArrayRef<SmallVector<unsigned>> groups);

private:
  int64_t extentOf(ArrayRef<unsigned> parts) const {
    int64_t extent = 1;
    for (unsigned p : parts)
      extent *= m.parts.getExtent(p);
    return extent;
  }
  Value split(Value value, ArrayRef<SmallVector<unsigned>> dims);
  Value join(Value value, ArrayRef<SmallVector<unsigned>> dims);
  Value permute(Value value, ArrayRef<unsigned> from, ArrayRef<unsigned> to, Type element);
  SmallVector<SmallVector<unsigned>> partsOf(const Point &point);

  AttentionMatch &m;
  OpBuilder &b;
  Location loc;
};
} // namespace

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Parts per dimension of a tensor at a place.
SmallVector<SmallVector<unsigned>> Layouts::partsOf(const Point &point) {
  SmallVector<SmallVector<unsigned>> dims;
  for (auto [at, extent] :
       llvm::zip_equal(point.at, cast<RankedTensorType>(point.value.getType()).getShape())) {
    auto terms = m.parts.termsOf(at, extent);
    assert(terms && "matched places cover their tensors");
    dims.push_back(llvm::map_to_vector(*terms, [](const LoopParts::Term &t) { return t.part; }));
  }
  return dims;
}

/// Which dimensions of the flat list of parts make up each of `dims`; all belong to some.
static SmallVector<ReassociationIndices> reassociate(ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (const SmallVector<unsigned> &parts : dims) {
    groups.emplace_back();
    for (unsigned i = 0; i < parts.size(); ++i)
      groups.back().push_back(next++);
  }
  return groups;
}

/// Drops dimensions without parts; they have one element.
static SmallVector<SmallVector<unsigned>> withoutUnits(ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<SmallVector<unsigned>> kept(dims.begin(), dims.end());
  llvm::erase_if(kept, [](auto &parts) { return parts.empty(); });
  return kept;
}

/// How a shape with units (dimensions without parts) collapses to one without: a unit goes with
/// what stands before it, leading ones with the first that is none.
static SmallVector<ReassociationIndices> groupUnits(ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [d, parts] : llvm::enumerate(dims)) {
    if (!parts.empty()) {
      groups.emplace_back(std::move(leading));
      leading.clear();
      groups.back().push_back(d);
    } else {
      (groups.empty() ? leading : groups.back()).push_back(d);
    }
  }
  return groups;
}

/// One dimension per part.
Value Layouts::split(Value value, ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<SmallVector<unsigned>> kept = withoutUnits(dims);
  Type element = getElementTypeOrSelf(value.getType());
  SmallVector<int64_t> joined, shape;
  for (const SmallVector<unsigned> &parts : kept) {
    joined.push_back(extentOf(parts));
    for (unsigned p : parts)
      shape.push_back(m.parts.getExtent(p));
  }
  if (kept.size() != dims.size())
    value = tensor::CollapseShapeOp::create(b, loc, RankedTensorType::get(joined, element), value,
                                            groupUnits(dims));
  if (joined == shape)
    return value;
  return tensor::ExpandShapeOp::create(b, loc, RankedTensorType::get(shape, element), value,
                                       reassociate(kept));
}

/// The way back.
Value Layouts::join(Value value, ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<SmallVector<unsigned>> kept = withoutUnits(dims);
  Type element = getElementTypeOrSelf(value.getType());
  SmallVector<int64_t> joined, shape;
  for (const SmallVector<unsigned> &parts : dims) {
    shape.push_back(extentOf(parts));
    if (!parts.empty())
      joined.push_back(shape.back());
  }
  if (ArrayRef(joined) != cast<RankedTensorType>(value.getType()).getShape())
    value = tensor::CollapseShapeOp::create(b, loc, RankedTensorType::get(joined, element), value,
                                            reassociate(kept));
  if (kept.size() == dims.size())
    return value;
  return tensor::ExpandShapeOp::create(b, loc, RankedTensorType::get(shape, element), value,
                                       groupUnits(dims));
}

/// A copy with dimensions in another order, new ones repeated; as it is where there is nothing to
/// do.
Value Layouts::permute(Value value, ArrayRef<unsigned> from, ArrayRef<unsigned> to, Type element) {
  Type own = getElementTypeOrSelf(value.getType());
  if (from == to && own == element)
    return value;
  SmallVector<int64_t> shape =
      llvm::map_to_vector(to, [&](unsigned p) { return m.parts.getExtent(p); });
  SmallVector<AffineExpr> exprs = llvm::map_to_vector(from, [&](unsigned p) {
    return getAffineDimExpr(llvm::find(to, p) - to.begin(), b.getContext());
  });
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  SmallVector<AffineMap> maps{AffineMap::get(to.size(), 0, exprs, b.getContext()),
                              b.getMultiDimIdentityMap(to.size())};
  SmallVector<utils::IteratorType> loops(to.size(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location l, ValueRange a) {
    Value v = a[0];
    if (own.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
      v = arith::ExtFOp::create(b, l, element, v);
    else if (own != element)
      v = arith::TruncFOp::create(b, l, element, v);
    linalg::YieldOp::create(b, l, v);
  };
  return linalg::GenericOp::create(b, loc, empty.getType(), value, empty, maps, loops, body)
      .getResult(0);
}

static SmallVector<unsigned> flatten(ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<unsigned> flat;
  for (const SmallVector<unsigned> &parts : dims)
    llvm::append_range(flat, parts);
  return flat;
}

Value Layouts::gather(const Point &source, ArrayRef<SmallVector<unsigned>> groups) {
  SmallVector<SmallVector<unsigned>> dims = partsOf(source);
  Type element = getElementTypeOrSelf(source.value.getType());
  Value whole = permute(split(source.value, dims), flatten(dims), flatten(groups), element);
  return join(whole, groups);
}

Value Layouts::scatter(Value value, ArrayRef<SmallVector<unsigned>> groups) {
  Value old = m.mixing->getResult(0);
  LoopParts parts = m.parts;
  SmallVector<AffineExpr> loops;
  for (auto [i, extent] : llvm::enumerate(m.mixing.getStaticLoopRanges()))
    loops.push_back(parts.getLoop(i, extent));
  AffineMap map = m.mixing.getIndexingMapsArray()[2];
  SmallVector<SmallVector<unsigned>> dims = partsOf({old, place(map, loops)});
  Value moved = permute(split(value, groups), flatten(groups), flatten(dims),
                        getElementTypeOrSelf(old.getType()));
  return join(moved, dims);
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// Replaces the product with V by attention; false with an obstacle when the formula does not fit.
static bool raise(AttentionMatch &m, bool assumeKeys, Obstacle &obstacle) {
  linalg::LinalgOp mixing = m.mixing;
  OpBuilder b(mixing);
  // One batch dimension, heads of all others: those of K and V, then the query heads of each.
  SmallVector<unsigned> batch, heads(m.batch.begin(), m.batch.end());
  if (m.batch.size() > 1 || (!m.batch.empty() && !m.group.empty())) {
    batch.push_back(heads.front());
    heads.erase(heads.begin());
  }
  SmallVector<unsigned> queryHeads(heads);
  llvm::append_range(queryHeads, m.group);

  ScoreFunctions functions(m, {batch, queryHeads, m.rows, m.keys}, assumeKeys);
  Layouts layouts(m, b);
  Value q = layouts.gather(m.q, {batch, queryHeads, m.rows, m.depth});
  Value k = layouts.gather(m.k, {batch, heads, m.keys, m.depth});
  Value v = layouts.gather(m.v, {batch, heads, m.keys, m.width});
  AttentionOp op = functions.build(b, q, k, v, obstacle);
  if (!op)
    return false;
  mixing->getResult(0).replaceAllUsesWith(
      layouts.scatter(op.getO(), {batch, queryHeads, m.rows, m.width}));
  mixing->erase();
  return true;
}

void RaiseAttentionPass::runOnOperation() {
  SmallVector<linalg::SoftmaxOp> softmaxes;
  getOperation().walk([&](linalg::SoftmaxOp op) { softmaxes.push_back(op); });
  for (linalg::SoftmaxOp softmax : softmaxes) {
    Obstacle obstacle;
    std::optional<AttentionMatch> match = matchAttention(softmax, obstacle);
    if (match && raise(*match, assumeKeys, obstacle)) {
      ++numRaised;
      continue;
    }
    if (obstacle.reason.empty())
      continue;
    ++numMissed;
    InFlightDiagnostic remark =
        emitRemark(softmax.getLoc(), "a softmax between two products that stays as it is: ");
    remark << obstacle.reason;
    if (obstacle.at)
      remark.attachNote(obstacle.at->getLoc()) << "here, in '" << obstacle.at->getName() << "'";
  }
}
