//===- Attention.cpp - Verifiers and canonical forms of attention ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies the attention ops and the ops of their regions, and canonicalizes fsdp.attention:
//
//   score_mod that yields its score      ->  no score_mod
//   mask_mod that yields true            ->  no mask_mod
//   weight_mod that yields 1             ->  no weight_mod
//   captured tensor that no region reads ->  operand erased
//
// (C1), (C2), ... refer to the constraints that the descriptions of the ops list.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Attention.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Sizes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

static Type scoreType(Type element) {
  return element.isF64() ? element : Type(Float32Type::get(element.getContext()));
}

bool fsdp::isAttentionScalar(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  bool fits = integer && integer.getWidth() <= 64;
  return type.isIndex() || fits || type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

namespace {
/// A region of an attention op. `takes` are the types of those arguments of the region that precede
/// the captured tensors. `gives` is the type of the yielded value.
struct Function {
  StringRef name;
  Region &region;
  SmallVector<Type> takes;
  Type gives;
};
} // namespace

/// Verifies (C10) for one op of a region. The argument `firstCapture` of the region and all later
/// arguments are the captured tensors.
static LogicalResult checkScalar(Operation &o, Function &f, unsigned firstCapture) {
  auto isCapture = [&](Value v) {
    auto argument = dyn_cast<BlockArgument>(v);
    return argument && argument.getOwner() == &f.region.front() &&
           argument.getArgNumber() >= firstCapture;
  };
  if (auto extract = dyn_cast<tensor::ExtractOp>(o)) {
    if (!isCapture(extract.getTensor()))
      return o.emitOpError("in '") << f.name << "' expected a captured tensor, found "
                                   << describeValue(extract.getTensor());
    if (f.name == "weight_mod" && isa<FloatType>(extract.getType())) {
      InFlightDiagnostic diag =
          o.emitOpError("reads a float tensor in 'weight_mod'; expected an integer tensor, because "
                        "'weight_mod' has no gradient");
      diag.attachNote()
          << "for a learned factor per key, multiply V by the factor; for one per head and row, "
             "multiply O; for any other factor, use two matrix products and a softmax";
      return diag;
    }
    return success();
  }
  if (isa<ContributeOp>(o)) {
    if (f.name == "score_grad")
      return success();
    return o.emitOpError("is allowed only in 'score_grad', found in '") << f.name << "'";
  }
  bool known = isa_and_nonnull<arith::ArithDialect, math::MathDialect>(o.getDialect()) ||
               isa<RandomElementOp>(o);
  SmallVector<Type> types(o.getOperandTypes());
  llvm::append_range(types, o.getResultTypes());
  bool scalar = llvm::all_of(types, [](Type t) { return t.isIntOrIndexOrFloat(); });
  if (known && scalar && isMemoryEffectFree(&o) && o.getNumRegions() == 0) {
    auto *other = llvm::find_if_not(types, isAttentionScalar);
    if (other == types.end())
      return success();
    return o.emitOpError("in '") << f.name
                                 << "' expected operands and results of f16, bf16, f32, f64, index "
                                    "or integers of at most 64 bits, found "
                                 << *other;
  }
  InFlightDiagnostic diag = o.emitOpError("is not allowed in '")
                            << f.name
                            << "': expected pure scalar ops of arith and math, "
                               "fsdp.random_element, and tensor.extract of captured tensors";
  auto *wide = llvm::find_if_not(types, [](Type t) { return t.isIntOrIndexOrFloat(); });
  if (known && wide != types.end())
    diag << "; found an operand or result of type " << *wide;
  return diag;
}

/// Verifies that a region ends with a yield of the right type: (C9) and (C12).
static LogicalResult checkYield(Operation *op, Function &f) {
  Block &body = f.region.front();
  auto fail = [&](Operation *at) {
    return at->emitOpError("expected '")
           << f.name << "' to end with an 'fsdp.yield' of one value of type " << f.gives
           << ", found ";
  };
  if (body.empty())
    return fail(op) << "an empty block";
  Operation &last = body.back();
  if (!isa<YieldOp>(last))
    return fail(&last) << "'" << last.getName() << "'";
  if (last.getNumOperands() == 0)
    return fail(&last) << "no operand";
  if (last.getNumOperands() != 1 || last.getOperand(0).getType() != f.gives)
    return fail(&last) << describeCount(last.getNumOperands(), "value of type ", "values of types ")
                       << last.getOperandTypes();
  return success();
}

static LogicalResult checkFunction(Operation *op, Function f, ValueRange captures) {
  if (f.region.empty())
    return success();
  SmallVector<Type> types(f.takes);
  llvm::append_range(types, captures.getTypes());
  Block &body = f.region.front();
  if (body.getArgumentTypes() != ArrayRef<Type>(types)) // (C8), (C12)
    return op->emitOpError("expected the arguments of '")
           << f.name << "' to have the types (" << types << "), found (" << body.getArgumentTypes()
           << ")";
  if (failed(checkYield(op, f)))
    return failure();
  for (Operation &o : body.without_terminator())
    if (failed(checkScalar(o, f, f.takes.size()))) // (C10)
      return failure();
  return success();
}

/// Verifies (C1) to (C10), which fsdp.attention and fsdp.attention_grad have in common.
template <typename Op>
static LogicalResult checkAttention(Op op) {
  RankedTensorType q = typeOf(op.getQ()), k = typeOf(op.getK()), v = typeOf(op.getV()),
                   o = typeOf(op.getO()), lse = typeOf(op.getLse());
  Type element = q.getElementType();
  for (RankedTensorType type : {q, k, v})
    if (!type.hasStaticShape()) // (C1)
      return op.emitOpError("expected Q, K and V of static shape, found ") << type;
  if (k.getElementType() != element || v.getElementType() != element) // (C1)
    return op.emitOpError("expected Q, K and V to have the same element type, found ")
           << element << " (Q), " << k.getElementType() << " (K) and " << v.getElementType()
           << " (V)";
  for (RankedTensorType type : {q, k, v, o})
    if (type.hasStaticShape() && !fitsElements(type.getShape())) // (C1)
      return op.emitOpError("expected Q, K, V and O of at most 2^48 elements, found ") << type;
  if (k.getDimSize(0) != q.getDimSize(0)) // (C2)
    return op.emitOpError("expected Q and K to have the same batch size, found ")
           << q.getDimSize(0) << " (Q) and " << k.getDimSize(0) << " (K)";
  if (v.getShape().drop_back() != k.getShape().drop_back()) // (C2)
    return op.emitOpError("expected K and V to be equal in all dimensions but the last, found ")
           << k << " (K) and " << v << " (V)";
  if (q.getDimSize(3) != k.getDimSize(3)) // (C3)
    return op.emitOpError("expected Q and K to have the same head dimension, found ")
           << q.getDimSize(3) << " (Q) and " << k.getDimSize(3) << " (K)";
  if (k.getDimSize(1) < 1 || q.getDimSize(1) % k.getDimSize(1)) // (C4)
    return op.emitOpError("expected the number of KV heads to divide the number of query heads, "
                          "found ")
           << describeCount(k.getDimSize(1), "KV head", "KV heads") << " and "
           << describeCount(q.getDimSize(1), "query head", "query heads");
  auto output = RankedTensorType::get(
      {q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), v.getDimSize(3)}, element);
  auto rows = RankedTensorType::get(q.getShape().drop_back(), scoreType(element));
  if (o != output || lse != rows) // (C5)
    return op.emitOpError("expected O and LSE to have the types ")
           << output << " and " << rows << ", found " << o << " and " << lse;
  if (!op.getScale().isFinite()) // (C6)
    return op.emitOpError("expected a finite scale, found ") << describeNumber(op.getScaleAttr());
  for (Value capture : op.getCaptures())
    if (RankedTensorType type = typeOf(capture); !type.hasStaticShape() ||
                                                 type.getElementType().isIndex() ||
                                                 !isAttentionScalar(type.getElementType())) // (C7)
      return op.emitOpError("expected captured tensors to be of static shape with elements of f16, "
                            "bf16, f32, f64 or integers of at most 64 bits; found ")
             << type;
  if (op.getRing() ? *op.getRing() < 2 : op.getStriped()) // (C15)
    return op.emitOpError("expected 'ring' with at least 2 ranks, found ")
           << (op.getRing() ? std::to_string(*op.getRing()) : "'striped' without 'ring'");
  Type score = rows.getElementType(), index = IndexType::get(op.getContext());
  Function scoreMod{"score_mod", op.getScoreMod(), {score, index, index, index, index}, score};
  Function maskMod{"mask_mod",
                   op.getMaskMod(),
                   {index, index, index, index},
                   IntegerType::get(op.getContext(), 1)};
  Function weightMod{"weight_mod", op.getWeightMod(), {index, index, index, index}, score};
  if (failed(checkFunction(op, scoreMod, op.getCaptures())) ||
      failed(checkFunction(op, maskMod, op.getCaptures())))
    return failure();
  return checkFunction(op, weightMod, op.getCaptures());
}

/// Names the leading arguments of a region for printing. The first argument is the score in
/// score_mod, the batch index in mask_mod and weight_mod, and the cotangent of the score in
/// score_grad.
static void nameFunction(Region &region, OpAsmSetValueNameFn setName) {
  static constexpr StringRef names[] = {"g", "s", "b", "h", "i", "j"};
  static constexpr unsigned first[] = {1, 2, 2, 0};
  for (auto [argument, name] : llvm::zip(
           region.getArguments(), ArrayRef(names).drop_front(first[region.getRegionNumber()])))
    setName(argument, name);
}

void AttentionOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameFunction(region, setName);
}

void AttentionGradOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameFunction(region, setName);
}

LogicalResult AttentionOp::verify() { return checkAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (failed(checkAttention(*this)))
    return failure();
  if (getDout().getType() != getO().getType()) // (C11)
    return emitOpError("expected dO to have the type of O, ")
           << getO().getType() << ", found " << getDout().getType();
  if (getScoreMod().empty() != getScoreGrad().empty()) // (C12)
    return emitOpError("expected both 'score_mod' and 'score_grad', or neither of them, found '")
           << (getScoreMod().empty() ? "score_grad" : "score_mod") << "' only";
  Type score = typeOf(getLse()).getElementType(), index = IndexType::get(getContext());
  Function scoreGrad{
      "score_grad", getScoreGrad(), {score, score, index, index, index, index}, score};
  if (failed(checkFunction(*this, scoreGrad, getCaptures()))) // (C12)
    return failure();
  for (auto [name, x, dx] : {std::tuple("Q", getQ(), getDq()), std::tuple("K", getK(), getDk()),
                             std::tuple("V", getV(), getDv())})
    if (typeOf(x).getShape() != typeOf(dx).getShape()) // (C13)
      return emitOpError("expected d") << name << " to have the shape of " << name << ", "
                                       << x.getType() << ", found " << dx.getType();
  SmallVector<Value> floats = llvm::filter_to_vector(
      getCaptures(), [](Value v) { return isa<FloatType>(typeOf(v).getElementType()); });
  if (floats.size() != getDcaptures().size()) // (C14)
    return emitOpError("expected ")
           << describeCount(floats.size(), "result", "results")
           << " after the gradients of Q, K and V (one per captured float tensor), found "
           << getDcaptures().size();
  for (auto [x, dx] : llvm::zip_equal(floats, getDcaptures()))
    if (typeOf(x).getShape() != typeOf(dx).getShape()) // (C14)
      return emitOpError("expected the gradient of captured tensor ")
             << std::distance(getCaptures().begin(), llvm::find(getCaptures(), x))
             << " to have the shape of this tensor, " << x.getType() << ", found " << dx.getType();
  return success();
}

LogicalResult ContributeOp::verify() {
  auto grad = cast<AttentionGradOp>((*this)->getParentOp());
  auto argument = dyn_cast<BlockArgument>(getCapture());
  if (!argument || argument.getOwner()->getParent() != &grad.getScoreGrad()) // (C1)
    return emitOpError("expected the captured tensor to be an argument of 'score_grad', found ")
           << describeValue(getCapture());
  int64_t rank = typeOf(getCapture()).getRank();
  if (static_cast<int64_t>(getIndices().size()) != rank) // (C2)
    return emitOpError("expected ")
           << describeCount(rank, "index", "indices") << ", one per dimension of "
           << getCapture().getType() << ", found " << getIndices().size();
  return success();
}

LogicalResult RandomElementOp::verify() {
  bool bernoulli = getKind() == RandomKind::bernoulli;
  if (getResult().getType().isInteger() && !bernoulli) // (C1)
    return emitOpError("expected a float result for distribution 'uniform', found ")
           << getResult().getType();
  if (getSite() > std::numeric_limits<uint32_t>::max()) // (C2)
    return emitOpError("expected a site from 0 to 2^32 - 1, found ")
           << static_cast<int64_t>(getSite());
  if (bernoulli && !getKeep()) // (C3)
    return emitOpError("expected 'keep' after 'bernoulli', found none");
  if (!bernoulli && getKeep()) // (C3)
    return emitOpError("expected no 'keep' after 'uniform', found 'keep' ")
           << getKeep()->convertToDouble();
  if (bernoulli &&
      !(getKeep()->convertToDouble() >= 0 && getKeep()->convertToDouble() <= 1)) // (C3)
    return emitOpError("expected 'keep' to be a probability, from 0 to 1, found ")
           << getKeep()->convertToDouble();
  return success();
}

static bool isIdentity(Region &scoreMod) {
  return !scoreMod.empty() &&
         scoreMod.front().getTerminator()->getOperand(0) == scoreMod.getArgument(0);
}

static bool keepsAll(Region &maskMod) {
  return !maskMod.empty() && matchPattern(maskMod.front().getTerminator()->getOperand(0), m_One());
}

static bool isOne(Region &weightMod) {
  return !weightMod.empty() &&
         matchPattern(weightMod.front().getTerminator()->getOperand(0), m_OneFloat());
}

LogicalResult AttentionOp::canonicalize(AttentionOp op, PatternRewriter &rewriter) {
  for (auto [region, idle] : {std::pair(&op.getScoreMod(), isIdentity(op.getScoreMod())),
                              std::pair(&op.getMaskMod(), keepsAll(op.getMaskMod())),
                              std::pair(&op.getWeightMod(), isOne(op.getWeightMod()))})
    if (idle) {
      rewriter.eraseBlock(&region->front());
      return success();
    }
  // The last captured tensor of a ring may be the coordinate of the rank (C15).
  for (unsigned i = 0, e = op.getCaptures().size() - (op.getRing() && !op.getCaptures().empty());
       i < e; ++i) {
    SmallVector<std::pair<Block *, unsigned>> places;
    for (auto [region, first] : {std::pair(&op.getScoreMod(), 5u), std::pair(&op.getMaskMod(), 4u),
                                 std::pair(&op.getWeightMod(), 4u)})
      if (!region->empty())
        places.push_back({&region->front(), first + i});
    if (!llvm::all_of(
            places, [](auto place) { return place.first->getArgument(place.second).use_empty(); }))
      continue;
    rewriter.modifyOpInPlace(op, [&] {
      for (auto [block, at] : places)
        block->eraseArgument(at);
      op.getCapturesMutable().erase(i);
    });
    return success();
  }
  return failure();
}
