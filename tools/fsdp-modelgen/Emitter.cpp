//===- Emitter.cpp - Layers of a transformer as linalg on tensors --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the ops of each layer. In a bf16 or f16 model, sums are computed in f32, and the result of
// a layer is rounded only once.
//
//   linear     contract, then one map that adds the bias
//   layerNorm  sum x, mean, sum (x - mean)², 1/σ, one map      (two passes)
//   rmsNorm    sum x², 1/rms, one map
//   attention  contract q·k, one map (scale, mask), softmax, contract p·v; all on [b, t, h, d]
//              views: indexing maps select the heads, so that nothing is transposed, and shared
//              key/value heads are not repeated
//   loss       contract with the head, fsdp.cross_entropy
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include <limits>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;

/// A parsed specification. The loops of "nk,ok->no" are those of the result, n and o, and then k.
struct Emitter::Loops {
  SmallVector<AffineMap> maps; // maps of the operands, then of the result
  SmallVector<utils::IteratorType> iterators;
  SmallVector<int64_t> shape; // shape of the result

  Loops(StringRef spec, ValueRange operands, MLIRContext *context) {
    auto [inputs, result] = spec.split("->");
    SmallVector<StringRef> inputSpecs;
    inputs.split(inputSpecs, ',');
    assert(inputSpecs.size() == operands.size() && "one part of the spec per operand");

    std::string letters = result.str();
    for (char letter : inputs)
      if (letter != ',' && letters.find(letter) == std::string::npos)
        letters += letter;
    llvm::DenseMap<char, int64_t> sizes;
    for (auto [part, operand] : llvm::zip_equal(inputSpecs, operands)) {
      auto type = cast<RankedTensorType>(operand.getType());
      for (auto [letter, size] : llvm::zip_equal(part, type.getShape())) {
        bool known = !sizes.try_emplace(letter, size).second;
        assert((!known || sizes[letter] == size) && "a loop has one size");
        (void)known;
      }
      maps.push_back(mapOf(part, letters, context));
    }
    maps.push_back(mapOf(result, letters, context));
    for (auto [index, letter] : llvm::enumerate(letters))
      iterators.push_back(index < result.size() ? utils::IteratorType::parallel
                                                : utils::IteratorType::reduction);
    for (char letter : result)
      shape.push_back(sizes.lookup(letter));
  }

private:
  static AffineMap mapOf(StringRef part, StringRef letters, MLIRContext *context) {
    SmallVector<AffineExpr> exprs;
    for (char letter : part)
      exprs.push_back(getAffineDimExpr(letters.find(letter), context));
    return AffineMap::get(letters.size(), 0, exprs, context);
  }
};

static FloatType floatType(DType type, MLIRContext *context) {
  switch (type) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  }
  llvm_unreachable("every type is listed");
}

static InitAttr initAttr(MLIRContext *context, const Parameter &parameter) {
  bool normal = parameter.init == Parameter::Init::Normal;
  double value = parameter.init == Parameter::Init::Ones ? 1 : 0;
  return InitAttr::get(context, normal ? InitKind::normal : InitKind::constant,
                       llvm::APFloat(value), llvm::APFloat(normal ? parameter.deviation : 0.0));
}

Emitter::Emitter(ModuleOp module, const ModelConfig &config, ArrayRef<Parameter> parameters)
    : config(config), narrow(floatType(config.dtype, module.getContext())),
      wide(config.dtype == DType::F64 ? narrow : Float32Type::get(module.getContext())),
      builder(module.getBodyRegion()) {
  MLIRContext *context = module.getContext();
  SmallVector<Type> types;
  for (const Parameter &parameter : parameters)
    types.push_back(RankedTensorType::get(parameter.shape, narrow));
  types.append(2, RankedTensorType::get({config.batch, *config.seq}, builder.getI64Type()));
  if (config.drops())
    types.append(3, RankedTensorType::get({}, builder.getI64Type()));
  auto type = builder.getFunctionType(types, RankedTensorType::get({}, wide));
  function = func::FuncOp::create(builder, loc("loss"), "loss", type);

  // The attributes of all arguments are set in one call, because a call that sets the attributes of
  // a single argument copies the attributes of all other arguments.
  SmallVector<Location> locations;
  SmallVector<DictionaryAttr> attributes;
  auto describe = [&](StringRef name, ArrayRef<NamedAttribute> marks) {
    locations.push_back(loc(name));
    attributes.push_back(builder.getDictionaryAttr(marks));
  };
  auto mark = [&](StringRef name, Attribute value) { return builder.getNamedAttr(name, value); };
  for (const Parameter &parameter : parameters)
    describe(parameter.name, {mark(FSDPDialect::paramAttr, builder.getStringAttr(parameter.name)),
                              mark(FSDPDialect::initAttr, initAttr(context, parameter))});
  for (StringRef name : {"tokens", "targets"})
    describe(name, {mark(FSDPDialect::batchAttr, builder.getStringAttr(name)),
                    mark(FSDPDialect::limitAttr, builder.getI64IntegerAttr(config.vocab))});
  for (StringRef key : {"seed", "step", "sample"})
    if (config.drops())
      describe(key, {mark(FSDPDialect::keyAttr, builder.getStringAttr(key))});
  function.setAllArgAttrs(attributes);
  Block *body = builder.createBlock(&function.getBody(), {}, types, locations);
  for (auto [parameter, argument] : llvm::zip(parameters, body->getArguments()))
    params[parameter.name] = argument;
}

Value Emitter::param(StringRef name) const {
  Value value = params.lookup(name);
  assert(value && "a declared parameter");
  return value;
}

/// Returns a location with a name. Printed IR uses this name for the result of the op.
Location Emitter::loc(StringRef what) {
  std::string name = scope.empty() ? what.str() : what.empty() ? scope : scope + "." + what.str();
  return NameLoc::get(builder.getStringAttr(name));
}

Value Emitter::empty(ArrayRef<int64_t> shape, FloatType type) {
  return tensor::EmptyOp::create(builder, builder.getUnknownLoc(), shape, type);
}

Value Emitter::zeros(ArrayRef<int64_t> shape, FloatType type) {
  Location unknown = builder.getUnknownLoc();
  Value zero = arith::ConstantOp::create(builder, unknown, builder.getFloatAttr(type, 0.0));
  return linalg::FillOp::create(builder, unknown, zero, empty(shape, type)).getResult(0);
}

Value Emitter::contract(StringRef spec, Value a, Value b, StringRef what) {
  Loops loops(spec, {a, b}, builder.getContext());
  Value init = zeros(loops.shape, wide);
  return linalg::ContractOp::create(builder, loc(what), TypeRange(init.getType()), ValueRange{a, b},
                                    ValueRange{init}, builder.getAffineMapArrayAttr(loops.maps))
      .getResult(0);
}

/// Converts the block arguments of an op's body to scalars of the wide type.
static SmallVector<Scalar> widen(OpBuilder &builder, Location loc, ValueRange arguments,
                                 FloatType wide) {
  SmallVector<Scalar> scalars;
  for (Value value : arguments) {
    if (value.getType() != wide)
      value = arith::ExtFOp::create(builder, loc, wide, value);
    scalars.emplace_back(builder, loc, value);
  }
  return scalars;
}

/// Builds a linalg.generic with the output `init`. `body` gets the inputs' elements and the
/// output's current element.
Value Emitter::generic(
    const Loops &loops, ValueRange operands, Value init, StringRef what,
    llvm::function_ref<Value(OpBuilder &, Location, ArrayRef<Scalar>, Value)> body) {
  Location inside = builder.getUnknownLoc(); // values in bodies get no named locations
  auto build = [&](OpBuilder &nested, Location, ValueRange arguments) {
    for (Value argument : arguments)
      argument.setLoc(inside);
    SmallVector<Scalar> inputs = widen(nested, inside, arguments.drop_back(), wide);
    linalg::YieldOp::create(nested, inside, body(nested, inside, inputs, arguments.back()));
  };
  return linalg::GenericOp::create(builder, loc(what), init.getType(), operands, init, loops.maps,
                                   loops.iterators, build)
      .getResult(0);
}

Value Emitter::map(StringRef spec, ValueRange operands, FloatType type, StringRef what, Body body) {
  Loops loops(spec, operands, builder.getContext());
  return generic(loops, operands, empty(loops.shape, type), what,
                 [&](OpBuilder &nested, Location inside, ArrayRef<Scalar> inputs, Value) -> Value {
                   Value result = body(inputs).get();
                   if (result.getType() == type)
                     return result;
                   return arith::TruncFOp::create(nested, inside, type, result);
                 });
}

Value Emitter::sum(StringRef spec, ValueRange operands, StringRef what, Body body) {
  Loops loops(spec, operands, builder.getContext());
  return generic(loops, operands, zeros(loops.shape, wide), what,
                 [&](OpBuilder &nested, Location inside, ArrayRef<Scalar> inputs, Value before) {
                   return (Scalar(nested, inside, before) + body(inputs)).get();
                 });
}

Value Emitter::view(Value value, ArrayRef<int64_t> shape, StringRef what) {
  auto from = cast<RankedTensorType>(value.getType());
  auto to = RankedTensorType::get(shape, from.getElementType());
  if (from == to)
    return value;
  std::optional<SmallVector<ReassociationIndices>> groups =
      getReassociationIndicesForReshape(from, to);
  assert(groups && "a view splits dimensions or merges them");
  if (from.getRank() < to.getRank())
    return tensor::ExpandShapeOp::create(builder, loc(what), to, value, *groups);
  return tensor::CollapseShapeOp::create(builder, loc(what), to, value, *groups);
}

Value Emitter::slice(Value value, int64_t dim, int64_t offset, int64_t size, StringRef what) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getDimSize(dim) == size)
    return value;
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(builder.getContext(), type.getShape());
  offsets[dim] = builder.getIndexAttr(offset);
  sizes[dim] = builder.getIndexAttr(size);
  return tensor::ExtractSliceOp::create(builder, loc(what), value, offsets, sizes, strides);
}

Value Emitter::concat(Value a, Value b, int64_t dim, StringRef what) {
  return tensor::ConcatOp::create(builder, loc(what), dim, ValueRange{a, b});
}

Value Emitter::table(ArrayRef<int64_t> shape, ArrayRef<double> values, StringRef what) {
  auto type = RankedTensorType::get(shape, wide);
  auto attr = wide.isF64()
                  ? DenseElementsAttr::get(type, values)
                  : DenseElementsAttr::get(
                        type, ArrayRef<float>(SmallVector<float>(values.begin(), values.end())));
  return arith::ConstantOp::create(builder, loc(what), attr);
}

Value Emitter::round(Value value, StringRef what) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == narrow)
    return value;
  std::string letters = StringRef("abcdefgh").take_front(type.getRank()).str();
  return map(letters + "->" + letters, value, narrow, what,
             [](ArrayRef<Scalar> x) { return x[0]; });
}

Value Emitter::embed(Value table, StringRef what) {
  int64_t columns = cast<RankedTensorType>(table.getType()).getDimSize(1);
  auto type = RankedTensorType::get({config.batch, *config.seq, columns}, narrow);
  return GatherRowsOp::create(builder, loc(what), type, table, tokens());
}

Value Emitter::add(Value a, Value b, StringRef what) {
  return map("nc,nc->nc", {a, b}, narrow, what, [](ArrayRef<Scalar> x) { return x[0] + x[1]; });
}

Value Emitter::dropout(Value x, double probability, StringRef what) {
  if (probability == 0)
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  auto factor = RandomOp::create(builder, loc(what), type.clone(wide),
                                 RandomKindAttr::get(builder.getContext(), RandomKind::bernoulli),
                                 builder.getF64FloatAttr(1 - probability), afterParameters(2),
                                 afterParameters(3), afterParameters(4),
                                 builder.getI64IntegerAttr(randomSites++),
                                 builder.getI64IntegerAttr(type.getNumElements() / config.batch));
  std::string letters = StringRef("abcdefgh").take_front(type.getRank()).str();
  return map(letters + "," + letters + "->" + letters, {x, factor},
             cast<FloatType>(type.getElementType()), what,
             [](ArrayRef<Scalar> in) { return in[0] * in[1]; });
}

Value Emitter::linear(StringRef spec, Value x, Value weight, Value bias) {
  Value y = contract(spec, x, weight, "");
  if (!bias)
    return round(y, "");
  return map("no,o->no", {y, bias}, narrow, "", [](ArrayRef<Scalar> in) { return in[0] + in[1]; });
}

Value Emitter::layerNorm(Value x, Value weight, Value bias) {
  double channels = cast<RankedTensorType>(x.getType()).getDimSize(1);
  Value total = sum("nc->n", x, "sum", [](ArrayRef<Scalar> in) { return in[0]; });
  Value mean =
      map("n->n", total, wide, "mean", [&](ArrayRef<Scalar> in) { return in[0] / channels; });
  Value squares = sum("nc,n->n", {x, mean}, "squares", [](ArrayRef<Scalar> in) {
    Scalar centred = in[0] - in[1];
    return centred * centred;
  });
  Value inverse = map("n->n", squares, wide, "rstd", [&](ArrayRef<Scalar> in) {
    return rsqrt(in[0] / channels + config.epsilon);
  });
  return map("nc,n,n,c,c->nc", {x, mean, inverse, weight, bias}, narrow, "",
             [](ArrayRef<Scalar> in) { return (in[0] - in[1]) * in[2] * in[3] + in[4]; });
}

Value Emitter::rmsNorm(Value x, Value weight) {
  double channels = cast<RankedTensorType>(x.getType()).getDimSize(1);
  Value squares = sum("nc->n", x, "squares", [](ArrayRef<Scalar> in) { return in[0] * in[0]; });
  Value inverse = map("n->n", squares, wide, "rrms", [&](ArrayRef<Scalar> in) {
    return rsqrt(in[0] / channels + config.epsilon);
  });
  return map("nc,n,c->nc", {x, inverse, weight}, narrow, "",
             [](ArrayRef<Scalar> in) { return in[0] * in[1] * in[2]; });
}

Scalar modelgen::activation(Activation kind, Scalar x) {
  switch (kind) {
  case Activation::GeluTanh:
    return x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.79788456080286535588) + 1.0);
  case Activation::GeluErf:
    return x * 0.5 * (erf(x * 0.70710678118654752440) + 1.0);
  // The argument of exp is at most 40, so neither the value nor the derivative is infinite.
  case Activation::Silu:
    return x / (exp(min(-x, x.constant(40))) + 1.0);
  case Activation::Relu:
    return max(x, x.constant(0));
  }
  llvm_unreachable("every activation is listed");
}

Value Emitter::activate(Value x, StringRef what) {
  return map("nc->nc", x, narrow, what,
             [&](ArrayRef<Scalar> in) { return activation(config.activation, in[0]); });
}

/// Builds the masked scores. A masked score is scale · score for a key up to the position of the
/// query, and -inf for a later key. The dimensions of the scores are [b, heads…, t, s].
Value Emitter::maskFuture(Value scores, double scale) {
  unsigned rank = cast<RankedTensorType>(scores.getType()).getRank();
  StringRef spec = rank == 4 ? "bhts->bhts" : "bhgts->bhgts";
  return map(spec, scores, wide, "masked", [&](ArrayRef<Scalar> in) {
    Scalar scaled = in[0] * scale;
    return scaled.whereAtMost(rank - 1, rank - 2,
                              scaled.constant(-std::numeric_limits<double>::infinity()));
  });
}

Value Emitter::causalAttention(Value q, Value k, Value v, double scale) {
  bool shared = cast<RankedTensorType>(q.getType()).getRank() == 5;
  Value scores = contract(shared ? "bthgd,bshd->bhgts" : "bthd,bshd->bhts", q, k, "scores");
  Value masked = maskFuture(scores, scale);
  auto type = cast<RankedTensorType>(masked.getType());
  Value weights = linalg::SoftmaxOp::create(builder, loc("weights"), TypeRange(type), masked,
                                            empty(type.getShape(), wide), type.getRank() - 1)
                      .getResult()[0];
  weights = dropout(weights, config.attentionDropout, "dropout");
  weights = round(weights, "weights");
  Value mixed = contract(shared ? "bhgts,bshd->bthgd" : "bhts,bshd->bthd", weights, v, "mixed");
  return round(view(mixed, {config.tokens(), config.heads * *config.headDim}, "mixed"), "mixed");
}

void Emitter::finish(Value x, Value head) {
  Value logits = contract("nc,vc->nv", x, head, "logits");
  Value flat = view(targets(), {config.tokens()}, "targets");
  auto entropy =
      CrossEntropyOp::create(builder, loc("loss"), RankedTensorType::get({}, wide),
                             RankedTensorType::get({config.tokens()}, wide), logits, flat, Value(),
                             IntegerAttr(), FlatSymbolRefAttr(), ArrayAttr());
  func::ReturnOp::create(builder, loc("loss"), entropy.getLoss());
}
