//===- RaiseAttention.cpp - Raise two products and a softmax ----*- C++ -*-===//
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
//  1. Match the two contractions, and determine which of their loops are batch, heads, rows, keys
//     and head dimensions (AttentionMatch.cpp).
//  2. Split the formula between the first contraction and the softmax into scale, mask_mod and
//     score_mod. A mask may contain a finite number (-1e4 or less) instead of -inf if every row
//     provably keeps a key, or if `assume-keys` asserts this (ScoreFunctions.cpp). Factors after
//     the softmax that read no floats from memory (dropout) become weight_mod.
//  3. Write the regions: positions become b, h, i, j; tensors that the formula reads become
//     captured operands; narrow floats are widened to the type of the score, f32 or f64.
//  4. Copy Q, K and V to [batch, heads, length, depth], and O back. Later passes fold most of these
//     copies into the ops that produce or read the tensors. If there is a sink, append a row of
//     zeros to K and V. The sink then is an additional score of the softmax, and the weight of this
//     score is multiplied by zeros of V.
//
// If all scores of a row are -inf, the row's result is NaN in the ops that this pass replaces, and
// 0 in fsdp.attention. If a softmax between two products does not match, a remark gives the reason.
// A remark also reports an exponential between two products that is not part of a softmax.
//
//===----------------------------------------------------------------------===//

#include "Raise/AttentionMatch.h"
#include "Raise/ScoreFunctions.h"
#include "Raise/Surroundings.h"
#include "Structure/Structured.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

/// Copies tensors between the model's layouts and [batch, heads, length, depth].
class Layouts {
public:
  Layouts(AttentionMatch &m, OpBuilder &b) : m(m), b(b), loc(m.mixing.getLoc()) {}

  /// Copies the tensor of `source` to a tensor that has one dimension for each group of loop parts.
  /// Repeats the tensor along those loop parts that do not occur in the position of `source`.
  Value gather(const Point &source, ArrayRef<SmallVector<unsigned>> groups);
  /// Copies `value`, which has one dimension for each group of loop parts, to the layout that the
  /// result of the product with V has.
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

/// For each dimension of a point's tensor, returns the loop parts that index the dimension.
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

/// Each element of `dims` is the list of loop parts of one dimension. Returns the indices that the
/// loop parts of each list have in the concatenation of all lists.
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

/// Returns `dims` without the dimensions that have no loop parts. These dimensions have extent 1.
static SmallVector<SmallVector<unsigned>> withoutUnits(ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<SmallVector<unsigned>> kept(dims.begin(), dims.end());
  llvm::erase_if(kept, [](auto &parts) { return parts.empty(); });
  return kept;
}

/// Returns the reassociation that drops unit dimensions, which are the dimensions without loop
/// parts. A unit dimension is joined to the dimension before it. Leading unit dimensions are joined
/// to the first dimension that has loop parts.
static SmallVector<ReassociationIndices> groupUnits(ArrayRef<SmallVector<unsigned>> dims) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [d, parts] : llvm::enumerate(dims)) {
    if (!parts.empty()) {
      groups.push_back(leading);
      leading.clear();
      groups.back().push_back(d);
    } else {
      (groups.empty() ? leading : groups.back()).push_back(d);
    }
  }
  return groups;
}

/// Reshapes a tensor that has one dimension for each element of `dims`, so that the result has one
/// dimension for each loop part.
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

/// Reshapes a tensor that has one dimension for each loop part, so that the result has one
/// dimension for each element of `dims`.
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

/// Copies a tensor whose dimensions are the loop parts `from` to a tensor of element type `element`
/// whose dimensions are the loop parts `to`. Repeats the tensor along parts that are not in `from`.
/// Returns `value` itself if neither the dimensions nor the type change.
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

/// Appends one key, whose elements are zeros, to `tensor`, which is K or V.
static Value appendZeros(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[2] = 1;
  auto row = RankedTensorType::get(shape, type.getElementType());
  Value zeros = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(row)));
  return tensor::ConcatOp::create(b, loc, /*dim=*/2, ValueRange{tensor, zeros});
}

/// Returns whether the inputs that `func` reads have one sample.
static bool hasOneSample(func::FuncOp func) {
  auto isInput = [&](BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    return type && type.getRank() > 0 &&
           func.getArgAttr(argument.getArgNumber(), FSDPDialect::batchAttr);
  };
  auto inputs = llvm::make_filter_range(func.getArguments(), isInput);
  return !inputs.empty() && llvm::all_of(inputs, [](BlockArgument input) {
    return cast<RankedTensorType>(input.getType()).getDimSize(0) == 1;
  });
}

/// Replaces the product with V by attention. Returns false and sets `obstacle` if a region cannot
/// hold the formula.
static bool raise(AttentionMatch &m, bool assumeKeys, Obstacle &obstacle) {
  linalg::LinalgOp mixing = m.mixing;
  OpBuilder b(mixing);
  // The first part of `batch` is the batch. The other parts of `batch` are the kv heads, and the
  // parts of `group` are the query heads of each kv head. The kv heads and the query heads together
  // form the dimension of heads, in which the kv heads are outermost. A batch of one sample has no
  // loop part.
  SmallVector<unsigned> batch, heads(m.batch.begin(), m.batch.end());
  bool hasBatch = !m.group.empty() && !hasOneSample(mixing->getParentOfType<func::FuncOp>());
  if (m.batch.size() > 1 || (!m.batch.empty() && hasBatch)) {
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
  if (m.sink) {
    k = appendZeros(b, mixing.getLoc(), k);
    v = appendZeros(b, mixing.getLoc(), v);
  }
  AttentionOp op = functions.build(b, q, k, v, obstacle);
  if (!op)
    return false;
  mixing->getResult(0).replaceAllUsesWith(
      layouts.scatter(op.getO(), {batch, queryHeads, m.rows, m.width}));
  mixing->erase();
  return true;
}

/// Returns whether the formula at `point` contains the maximum of a row.
static bool holdsRowMax(const Point &point, unsigned depth = 0) {
  Point p = settle(point);
  while (auto stop = p.isTensor() ? p.value.getDefiningOp<StopGradientOp>() : StopGradientOp())
    p = settle({stop.getInput(), p.at});
  if (p.isTensor())
    return matchReduction(p, Reduction::Max).has_value();
  Operation *op = p.value.getDefiningOp();
  for (unsigned i = 0, e = op && depth < 16 ? op->getNumOperands() : 0; i < e; ++i)
    if (holdsRowMax(operandOf(p, i), depth + 1))
      return true;
  return false;
}

/// Returns an op between two products that computes exp(x - m), where the formula of m contains the
/// maximum of a row. Returns null if no op matches.
static math::ExpOp matchUnraised(linalg::GenericOp op) {
  if (!isParallel(op))
    return {};
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    dims.push_back(getAffineDimExpr(d, op.getContext()));
  for (auto exp : op.getBody()->getOps<math::ExpOp>())
    if (Point difference = settle({exp.getOperand(), dims});
        difference.op<arith::SubFOp>() && holdsRowMax(operandOf(difference, 1)) &&
        llvm::any_of(op.getResults(), isBetweenProducts))
      return exp;
  return {};
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
        emitRemark(softmax.getLoc(), "softmax between two products not raised to attention: ");
    remark << obstacle.reason;
    if (obstacle.at)
      remark.attachNote(obstacle.at->getLoc())
          << "prevented by this '" << obstacle.at->getName() << "'";
  }
  getOperation().walk([&](linalg::GenericOp op) {
    math::ExpOp exp = matchUnraised(op);
    if (!exp)
      return;
    ++numMissed;
    emitRemark(exp.getLoc(), "exponentials between two products not raised to attention: they are "
                             "not divided by their sum over one dimension, as softmax(x) = exp(x - "
                             "max(x)) / sum(exp(x - max(x)))")
            .attachNote()
        << "if they are a softmax, write it as one of the framework (torch.softmax, "
           "jax.nn.softmax)";
  });
}
