//===- DecomposeAttention.cpp - Attention as linalg ops ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers fsdp.attention and fsdp.attention_grad to linalg ops that store all scores in memory. The
// G query heads that share a kv head are adjacent. One matrix product therefore computes the scores
// of all G heads as G·Sq rows. It is sufficient to view the tensors in other shapes:
//
//   Q [B, H, Sq, D]  =  [B, Hkv, G·Sq, D]      S [B, Hkv, G·Sq, Sk]  =  [B, H, Sq, Sk]
//
// forward    x = Q·Kᵀ;  s = score_mod(scale·x), -inf where masked;  m = max s, 0 in rows
//            without a key;  e = exp(s - m);  z = Σ e;  P = e/z · f, 0 in such rows;  O = P·V
// backward   recompute x and s;  P = exp(s - lse), 0 where masked;  dP = f·(dO·Vᵀ);  δ = Σ O·dO
//            dS = score_grad(P·(dP - δ)), 0 where masked;  dV = (f·P)ᵀ·dO;  dQ = dS·K;  dK = dSᵀ·Q
//
// f is weight_mod. If the indices of a contribution are loop indices, a reduction computes the
// gradient of the captured tensor. If they are other values, a scatter-add computes it in the order
// of (b, h, q, k). Scores and factors of masked keys may be NaN or infinite, so a select replaces
// them by 0. A product with 0 would keep NaN. The memory is O(Sq·Sk), because there is no tiling.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Decompositions.h"
#include "fsdp/IR/Philox.h"
#include "fsdp/IR/Reshape.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;
using utils::IteratorType;

static constexpr double infinity = std::numeric_limits<double>::infinity();

static RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

static Value convert(OpBuilder &b, Location loc, Value v, Type to) {
  unsigned from = v.getType().getIntOrFloatBitWidth(), width = to.getIntOrFloatBitWidth();
  if (from < width)
    return arith::ExtFOp::create(b, loc, to, v);
  return from > width ? Value(arith::TruncFOp::create(b, loc, to, v)) : v;
}

static Value drawElement(OpBuilder &b, RandomElementOp op, IRMapping &mapping) {
  Value element = arith::IndexCastOp::create(b, op.getLoc(), b.getI64Type(),
                                             mapping.lookupOrDefault(op.getElement()));
  RandomPlace place{mapping.lookup(op.getSeed()), mapping.lookup(op.getStep()),
                    mapping.lookup(op.getSample())};
  return buildRandomElement(b, op.getLoc(), getDraw(op), place, element);
}

/// Clones the ops of `region` at the builder's insertion point. Omits fsdp.contribute, and expands
/// fsdp.random_element to arithmetic. Maps each value of the region to its copy in `mapping`.
static void cloneFunction(OpBuilder &b, Region &region, ValueRange arguments, ValueRange captures,
                          IRMapping &mapping) {
  Block &body = region.front();
  mapping.map(body.getArguments().take_front(arguments.size()), arguments);
  mapping.map(body.getArguments().drop_front(arguments.size()), captures);
  for (Operation &o : body.without_terminator())
    if (auto random = dyn_cast<RandomElementOp>(o))
      mapping.map(random.getResult(), drawElement(b, random, mapping));
    else if (!isa<ContributeOp>(o))
      b.clone(o, mapping);
}

Value fsdp::inlineFunction(OpBuilder &b, Region &region, ValueRange arguments,
                           ValueRange captures) {
  IRMapping mapping;
  cloneFunction(b, region, arguments, captures, mapping);
  return mapping.lookup(region.front().getTerminator()->getOperand(0));
}

namespace {
using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// Builds those ops that the forward and the backward have in common.
template <typename Op>
class AttentionBuilder {
public:
  AttentionBuilder(Op op, OpBuilder &b)
      : op(op), b(b), loc(op.getLoc()),
        group(typeOf(op.getQ()).getDimSize(1) / typeOf(op.getK()).getDimSize(1)),
        element(typeOf(op.getQ()).getElementType()), wide(typeOf(op.getLse()).getElementType()),
        full(b.getMultiDimIdentityMap(4)), rows(full.dropResult(3)) {
    ArrayRef<int64_t> q = typeOf(op.getQ()).getShape();
    scores.assign({q[0], q[1], q[2], typeOf(op.getK()).getDimSize(2)});
  }

  Value grouped(Value x);
  Value ungrouped(Value x);
  Value contract(Value x, Value y, StringRef xDims, StringRef yDims, StringRef outDims);
  Value map(ValueRange ins, Type type, Body body);
  Value reduce(ValueRange ins, AffineMap outMap, Value init, Body body);
  Value reduceRows(ValueRange ins, double init, Body body);
  Value scatter(Value x, Value values, ContributeOp contribution, Value init);
  Value zeros(RankedTensorType type, double value = 0);
  Value as(Value x, Type elementType);
  AffineMap mapFor(Value v) { return typeOf(v).getRank() == 4 ? full : rows; }

  Value constant(OpBuilder &b, Location l, double v) {
    return arith::ConstantOp::create(b, l, b.getFloatAttr(wide, v));
  }
  /// Returns the loop indices b, h, q and k in the body of a generic over scores.
  SmallVector<Value> position(OpBuilder &b, Location l) {
    SmallVector<Value> at;
    for (unsigned d = 0; d < 4; ++d)
      at.push_back(linalg::IndexOp::create(b, l, d));
    return at;
  }
  /// Returns scale·x, the argument of score_mod.
  Value scaled(OpBuilder &b, Location l, Value x) {
    return arith::MulFOp::create(b, l, x, constant(b, l, op.getScale().convertToDouble()));
  }
  /// Returns score_mod(scale·x).
  Value modified(OpBuilder &b, Location l, Value x) {
    Value s = scaled(b, l, x);
    if (op.getScoreMod().empty())
      return s;
    SmallVector<Value> arguments{s};
    llvm::append_range(arguments, position(b, l));
    return inlineFunction(b, op.getScoreMod(), arguments, op.getCaptures());
  }
  /// Returns `v` if mask_mod is true, else `otherwise`.
  Value masked(OpBuilder &b, Location l, Value v, double otherwise) {
    if (op.getMaskMod().empty())
      return v;
    Value keep = inlineFunction(b, op.getMaskMod(), position(b, l), op.getCaptures());
    return arith::SelectOp::create(
        b, l, keep, v, arith::ConstantOp::create(b, l, b.getFloatAttr(v.getType(), otherwise)));
  }
  /// Returns `w` times weight_mod, or 0 if mask_mod is false. Without weight_mod, returns `w`.
  Value weighted(OpBuilder &b, Location l, Value w) {
    if (op.getWeightMod().empty())
      return w;
    Value factor = inlineFunction(b, op.getWeightMod(), position(b, l), op.getCaptures());
    return masked(b, l, arith::MulFOp::create(b, l, w, factor), 0);
  }
  /// Returns whether mask_mod keeps no key of a row. `v` is the maximum or the log-sum-exp of the
  /// row.
  Value isEmpty(OpBuilder &b, Location l, Value v) {
    return arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, v, constant(b, l, -infinity));
  }

  Op op;
  OpBuilder &b;
  Location loc;
  int64_t group;
  Type element, wide;
  AffineMap full, rows;
  SmallVector<int64_t> scores;
};
} // namespace

/// Reshapes [B, H, S, X] to [B, Hkv, G·S, X].
template <typename Op>
Value AttentionBuilder<Op>::grouped(Value x) {
  if (group == 1)
    return x;
  RankedTensorType type = typeOf(x);
  ArrayRef<int64_t> s = type.getShape();
  auto split = type.clone({s[0], s[1] / group, group, s[2], s[3]});
  auto joined = type.clone({s[0], s[1] / group, group * s[2], s[3]});
  Value five = tensor::ExpandShapeOp::create(b, loc, split, x,
                                             ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}, {4}});
  return tensor::CollapseShapeOp::create(b, loc, joined, five,
                                         ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}, {4}});
}

/// Reshapes [B, Hkv, G·S, X] to [B, H, S, X].
template <typename Op>
Value AttentionBuilder<Op>::ungrouped(Value x) {
  if (group == 1)
    return x;
  RankedTensorType type = typeOf(x);
  ArrayRef<int64_t> s = type.getShape();
  auto split = type.clone({s[0], s[1], group, s[2] / group, s[3]});
  auto joined = type.clone({s[0], s[1] * group, s[2] / group, s[3]});
  Value five = tensor::ExpandShapeOp::create(b, loc, split, x,
                                             ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}, {4}});
  return tensor::CollapseShapeOp::create(b, loc, joined, five,
                                         ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}, {4}});
}

/// Multiplies the matrices of `x` and `y` for each batch and kv head. Accumulates in the type
/// `wide`. Each string names the two dimensions of a matrix by letters 'm', 'n' and 'k'.
template <typename Op>
Value AttentionBuilder<Op>::contract(Value x, Value y, StringRef xDims, StringRef yDims,
                                     StringRef outDims) {
  StringRef letters = "mnk";
  SmallVector<int64_t> shape(typeOf(x).getShape().take_front(2));
  auto mapOf = [&](StringRef dims) {
    SmallVector<AffineExpr> exprs{b.getAffineDimExpr(0), b.getAffineDimExpr(1)};
    for (char letter : dims)
      exprs.push_back(b.getAffineDimExpr(2 + letters.find(letter)));
    return AffineMap::get(5, 0, exprs, b.getContext());
  };
  for (char letter : outDims) {
    size_t inX = xDims.find(letter);
    shape.push_back(inX != StringRef::npos ? typeOf(x).getDimSize(2 + inX)
                                           : typeOf(y).getDimSize(2 + yDims.find(letter)));
  }
  Value init = zeros(RankedTensorType::get(shape, wide));
  ArrayAttr maps = b.getAffineMapArrayAttr({mapOf(xDims), mapOf(yDims), mapOf(outDims)});
  return linalg::ContractOp::create(b, loc, init.getType(), ValueRange{x, y}, init, maps)
      .getResult(0);
}

template <typename Op>
Value AttentionBuilder<Op>::zeros(RankedTensorType type, double value) {
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value scalar = arith::ConstantOp::create(b, loc, b.getFloatAttr(type.getElementType(), value));
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

/// Applies `body` to the elements of `ins`. If all `ins` have the shape [B, H, Sq], applies `body`
/// once per row. Otherwise applies `body` once per score.
template <typename Op>
Value AttentionBuilder<Op>::map(ValueRange ins, Type type, Body body) {
  bool perRow = llvm::all_of(ins, [](Value v) { return typeOf(v).getRank() == 3; });
  AffineMap out = perRow ? b.getMultiDimIdentityMap(3) : full;
  SmallVector<AffineMap> maps;
  for (Value in : ins)
    maps.push_back(perRow ? out : mapFor(in));
  maps.push_back(out);
  ArrayRef<int64_t> shape = ArrayRef(scores).take_front(out.getNumDims());
  if (!perRow)
    shape =
        typeOf(*llvm::find_if(ins, [](Value v) { return typeOf(v).getRank() == 4; })).getShape();
  Value empty = tensor::EmptyOp::create(b, loc, shape, type);
  SmallVector<IteratorType> loops(out.getNumDims(), IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, empty.getType(), ins, empty, maps, loops,
                                   [&](OpBuilder &b, Location l, ValueRange a) {
                                     linalg::YieldOp::create(b, l, body(b, l, a));
                                   })
      .getResult(0);
}

template <typename Op>
Value AttentionBuilder<Op>::reduce(ValueRange ins, AffineMap outMap, Value init, Body body) {
  SmallVector<AffineMap> maps = llvm::map_to_vector(ins, [&](Value in) { return mapFor(in); });
  maps.push_back(outMap);
  SmallVector<IteratorType> loops(4, IteratorType::reduction);
  for (AffineExpr e : outMap.getResults())
    loops[cast<AffineDimExpr>(e).getPosition()] = IteratorType::parallel;
  return linalg::GenericOp::create(b, loc, init.getType(), ins, init, maps, loops,
                                   [&](OpBuilder &b, Location l, ValueRange a) {
                                     linalg::YieldOp::create(b, l, body(b, l, a));
                                   })
      .getResult(0);
}

template <typename Op>
Value AttentionBuilder<Op>::reduceRows(ValueRange ins, double init, Body body) {
  return reduce(ins, rows, zeros(RankedTensorType::get(ArrayRef(scores).drop_back(), wide), init),
                body);
}

template <typename Op>
Value AttentionBuilder<Op>::as(Value x, Type to) {
  if (typeOf(x).getElementType() == to)
    return x;
  AffineMap all = b.getMultiDimIdentityMap(typeOf(x).getRank());
  Value empty = tensor::EmptyOp::create(b, loc, typeOf(x).getShape(), to);
  SmallVector<IteratorType> loops(typeOf(x).getRank(), IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, empty.getType(), x, empty, ArrayRef<AffineMap>{all, all},
                                   loops,
                                   [&](OpBuilder &b, Location l, ValueRange a) {
                                     linalg::YieldOp::create(b, l, convert(b, l, a[0], to));
                                   })
      .getResult(0);
}

SmallVector<Value> fsdp::lowerToLinalg(AttentionOp op, OpBuilder &b) {
  AttentionBuilder<AttentionOp> a(op, b);
  Value x = a.ungrouped(a.contract(a.grouped(op.getQ()), op.getK(), "mk", "nk", "mn"));
  Value s = a.map(x, a.wide, [&](OpBuilder &b, Location l, ValueRange v) {
    return a.masked(b, l, a.modified(b, l, v[0]), -infinity);
  });
  Value max = a.reduceRows(s, -infinity, [](OpBuilder &b, Location l, ValueRange v) -> Value {
    return arith::MaximumFOp::create(b, l, v[0], v[1]);
  });
  Value exps = a.map({s, max}, a.wide, [&](OpBuilder &b, Location l, ValueRange v) -> Value {
    Value shift = arith::SelectOp::create(b, l, a.isEmpty(b, l, v[1]), a.constant(b, l, 0), v[1]);
    return math::ExpOp::create(b, l, arith::SubFOp::create(b, l, v[0], shift));
  });
  Value sum = a.reduceRows(exps, 0, [](OpBuilder &b, Location l, ValueRange v) -> Value {
    return arith::AddFOp::create(b, l, v[1], v[0]);
  });
  Value inverse = a.map({max, sum}, a.wide, [&](OpBuilder &b, Location l, ValueRange v) -> Value {
    Value quotient = arith::DivFOp::create(b, l, a.constant(b, l, 1), v[1]);
    return arith::SelectOp::create(b, l, a.isEmpty(b, l, v[0]), a.constant(b, l, 0), quotient);
  });
  Value p = a.map({exps, inverse}, a.element, [&](OpBuilder &b, Location l, ValueRange v) {
    return convert(b, l, a.weighted(b, l, arith::MulFOp::create(b, l, v[0], v[1])), a.element);
  });
  Value o = a.as(a.ungrouped(a.contract(a.grouped(p), op.getV(), "mk", "kn", "mn")), a.element);
  Value lse = a.map({max, sum}, a.wide, [&](OpBuilder &b, Location l, ValueRange v) -> Value {
    Value value = arith::AddFOp::create(b, l, v[0], math::LogOp::create(b, l, v[1]));
    return arith::SelectOp::create(b, l, a.isEmpty(b, l, v[0]), a.constant(b, l, -infinity), value);
  });
  return {o, lse};
}

/// Returns a map from the loops (b, h, q, k) to the indices of a contribution. Returns nothing
/// unless each index is the index of a loop, the loops are distinct, and each of these loops runs
/// over a whole dimension of the captured tensor.
static std::optional<AffineMap> loopsOf(ContributeOp contribution, ArrayRef<int64_t> extents) {
  SmallVector<AffineExpr> exprs;
  for (auto [index, size] :
       llvm::zip_equal(contribution.getIndices(), typeOf(contribution.getCapture()).getShape())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument)
      return std::nullopt;
    unsigned loop = argument.getArgNumber() - 2; // Arguments 0 and 1 are the cotangent and the
                                                 // score.
    AffineExpr expr = getAffineDimExpr(loop, contribution.getContext());
    if (extents[loop] != size || llvm::is_contained(exprs, expr))
      return std::nullopt;
    exprs.push_back(expr);
  }
  return AffineMap::get(4, 0, exprs, contribution.getContext());
}

/// Adds `values`, one per score, to `init` at the indices that the contribution computes. The
/// indices may depend on the scores `x`, but not on the cotangents, so the indices are computed
/// with 0 in place of each cotangent.
template <typename Op>
Value AttentionBuilder<Op>::scatter(Value x, Value values, ContributeOp contribution, Value init) {
  auto table = RankedTensorType::get(typeOf(contribution.getCapture()).getShape(),
                                     typeOf(values).getElementType());
  int64_t count = typeOf(values).getNumElements();
  Value empty = tensor::EmptyOp::create(b, loc, scores, b.getI64Type());
  SmallVector<IteratorType> loops(4, IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location l, ValueRange v) {
    SmallVector<Value> arguments{constant(b, l, 0), scaled(b, l, v[0])};
    llvm::append_range(arguments, position(b, l));
    IRMapping mapping;
    cloneFunction(b, *contribution->getParentRegion(), arguments, op.getCaptures(), mapping);
    Value row = arith::ConstantIndexOp::create(b, l, 0);
    for (auto [index, size] : llvm::zip_equal(contribution.getIndices(), table.getShape())) {
      row = arith::MulIOp::create(b, l, row, arith::ConstantIndexOp::create(b, l, size));
      row = arith::AddIOp::create(b, l, row, mapping.lookup(index));
    }
    linalg::YieldOp::create(b, l,
                            arith::IndexCastOp::create(b, l, b.getI64Type(), row).getResult());
  };
  SmallVector<AffineMap> maps{full, full};
  Value ids =
      linalg::GenericOp::create(b, loc, empty.getType(), x, empty, maps, loops, body).getResult(0);
  SmallVector<int64_t> columns{table.getNumElements(), 1};
  Value sum = ScatterAddRowsOp::create(
      b, loc, table.clone(columns), buildReshape(b, loc, values, {count, 1}),
      buildReshape(b, loc, ids, count), init ? buildReshape(b, loc, init, columns) : Value());
  return buildReshape(b, loc, sum, table.getShape());
}

namespace {
/// Builds the backward. The constructor builds P, dP and δ. The methods build the gradients.
class GradBuilder : public AttentionBuilder<AttentionGradOp> {
public:
  GradBuilder(AttentionGradOp op, OpBuilder &b) : AttentionBuilder(op, b) {
    x = ungrouped(contract(grouped(op.getQ()), op.getK(), "mk", "nk", "mn"));
    p = map({x, op.getLse()}, wide, [&](OpBuilder &b, Location l, ValueRange v) {
      Value e = math::ExpOp::create(b, l, arith::SubFOp::create(b, l, modified(b, l, v[0]), v[1]));
      Value present = arith::SelectOp::create(b, l, isEmpty(b, l, v[1]), constant(b, l, 0), e);
      return masked(b, l, present, 0);
    });
    dp = ungrouped(contract(grouped(op.getDout()), op.getV(), "mk", "nk", "mn"));
    delta = reduceRows(
        {op.getO(), op.getDout()}, 0, [&](OpBuilder &b, Location l, ValueRange v) -> Value {
          Value product =
              arith::MulFOp::create(b, l, convert(b, l, v[0], wide), convert(b, l, v[1], wide));
          return arith::AddFOp::create(b, l, v[2], product);
        });
  }
  SmallVector<Value> build();

private:
  /// Returns the cotangent of one score. If `contribution` is not null, returns the value that
  /// `contribution` adds instead.
  Value atScore(OpBuilder &b, Location l, ValueRange v, ContributeOp contribution);
  Value captured(Value capture, Type type);

  Value x, p, dp, delta;
};
} // namespace

Value GradBuilder::atScore(OpBuilder &b, Location l, ValueRange v, ContributeOp contribution) {
  Value g =
      arith::MulFOp::create(b, l, v[1], arith::SubFOp::create(b, l, weighted(b, l, v[2]), v[3]));
  if (!op.getScoreGrad().empty()) {
    SmallVector<Value> arguments{g, scaled(b, l, v[0])};
    llvm::append_range(arguments, position(b, l));
    IRMapping mapping;
    cloneFunction(b, op.getScoreGrad(), arguments, op.getCaptures(), mapping);
    g = mapping.lookup(contribution ? contribution.getValue()
                                    : op.getScoreGrad().front().getTerminator()->getOperand(0));
  }
  return masked(b, l, g, 0);
}

/// Returns the gradient of the captured tensor `capture` as a tensor of type `type`.
Value GradBuilder::captured(Value capture, Type type) {
  auto shape = cast<RankedTensorType>(type).getShape();
  Type element = typeOf(capture).getElementType();
  Type work = element.getIntOrFloatBitWidth() < 32 ? Type(b.getF32Type()) : element;
  Value sum; // sum of the contributions so far; null before the first contribution
  auto orZeros = [&] { return sum ? sum : zeros(RankedTensorType::get(shape, work)); };
  auto ops = op.getScoreGrad().empty()
                 ? SmallVector<ContributeOp>()
                 : llvm::to_vector(op.getScoreGrad().front().getOps<ContributeOp>());
  SmallVector<Value> ins{x, p, dp, delta};
  for (ContributeOp c : ops) {
    unsigned index = cast<BlockArgument>(c.getCapture()).getArgNumber() - 6;
    if (op.getCaptures()[index] != capture)
      continue;
    auto value = [&](OpBuilder &b, Location l, ValueRange v) {
      return convert(b, l, atScore(b, l, v, c), work);
    };
    if (std::optional<AffineMap> loops = loopsOf(c, scores))
      sum = reduce(ins, *loops, orZeros(), [&](OpBuilder &b, Location l, ValueRange v) -> Value {
        return arith::AddFOp::create(b, l, v[4], value(b, l, v));
      });
    else
      sum = scatter(x, map(ins, work, value), c, sum);
  }
  return as(orZeros(), cast<RankedTensorType>(type).getElementType());
}

SmallVector<Value> GradBuilder::build() {
  Value ds = map({x, p, dp, delta}, element, [&](OpBuilder &b, Location l, ValueRange v) {
    return convert(b, l, scaled(b, l, atScore(b, l, v, {})), element);
  });
  Value dout = grouped(op.getDout());
  Value weights = op.getWeightMod().empty()
                      ? as(p, element)
                      : map(p, element, [&](OpBuilder &b, Location l, ValueRange v) {
                          return convert(b, l, weighted(b, l, v[0]), element);
                        });
  Value dv = contract(grouped(weights), dout, "km", "kn", "mn");
  Value dq = ungrouped(contract(grouped(ds), op.getK(), "mk", "kn", "mn"));
  Value dk = contract(grouped(ds), grouped(op.getQ()), "km", "kn", "mn");
  SmallVector<Value> results;
  for (auto [value, result] : {std::pair(dq, Value(op.getDq())), std::pair(dk, Value(op.getDk())),
                               std::pair(dv, Value(op.getDv()))})
    results.push_back(as(value, typeOf(result).getElementType()));
  for (Value capture : op.getCaptures())
    if (isa<FloatType>(typeOf(capture).getElementType()))
      results.push_back(captured(capture, op->getResultTypes()[results.size()]));
  return results;
}

SmallVector<Value> fsdp::lowerToLinalg(AttentionGradOp op, OpBuilder &b) {
  return GradBuilder(op, b).build();
}

void fsdp::countInWhole(Location loc, BlockArgument own, BlockArgument coordinate, int64_t ranks,
                        int64_t size, bool striped) {
  if (own.use_empty())
    return;
  auto in = ImplicitLocOpBuilder::atBlockBegin(loc, own.getOwner());
  Value read = tensor::ExtractOp::create(in, coordinate, ValueRange());
  Value index = arith::IndexCastOp::create(in, in.getIndexType(), read);
  // The remainder bounds the coordinate, so that a kernel can skip masked tiles.
  Value count = arith::ConstantIndexOp::create(in, ranks);
  Value rank = arith::RemUIOp::create(in, index, count);
  Value step = striped ? count : arith::ConstantIndexOp::create(in, size).getResult();
  Value scaled = arith::MulIOp::create(in, striped ? Value(own) : rank, step);
  Value whole = arith::AddIOp::create(in, striped ? rank : Value(own), scaled);
  own.replaceAllUsesExcept(whole, striped ? scaled.getDefiningOp() : whole.getDefiningOp());
}
