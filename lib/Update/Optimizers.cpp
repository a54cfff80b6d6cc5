//===- Optimizers.cpp - The update rule of one element ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   AdamW   p' = p - lr·wd·p                          for elements with decay
//           m  = m + (1-β1)(g - m)
//           v  = β2·v + (1-β2)·g²
//           p  = p' - lr/(1-β1^t) · m / (sqrt(v)/sqrt(1-β2^t) + eps)
//
//   SGD     g' = g + wd·p                             for elements with decay
//           b  = momentum·b + g'
//           p  = p - lr·b
//
// β^t is computed as exp(t · ln β) in f64, so that the state contains t instead of powers of β.
//
//===----------------------------------------------------------------------===//

#include "Optimizers.h"
#include "Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Short names for the ops of the update rules.
struct Arithmetic {
  ImplicitLocOpBuilder &b;
  Type type;

  Value constant(double value) { return createConstant(b, type, value); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
};

class AdamW : public Optimizer {
public:
  explicit AdamW(const OptimizerOptions &options) : o(options) {}

  SmallVector<StringRef> getStateNames() const override {
    return {"first_moment", "second_moment"};
  }
  bool hasDecay() const override { return o.weightDecay != 0; }
  unsigned getNumFactors() const override { return 3; }
  SmallVector<Value> buildFactors(ImplicitLocOpBuilder &b, Value lr, Value step) const override;
  SmallVector<Value> buildElement(ImplicitLocOpBuilder &b, Value grad, ValueRange old,
                                  ValueRange factors, DecayFn decay) const override;

private:
  OptimizerOptions o;
};

class Sgd : public Optimizer {
public:
  explicit Sgd(const OptimizerOptions &options) : o(options) {}

  SmallVector<StringRef> getStateNames() const override {
    if (o.momentum == 0)
      return {};
    return {"momentum"};
  }
  bool hasDecay() const override { return o.weightDecay != 0; }
  unsigned getNumFactors() const override { return 1; }
  SmallVector<Value> buildFactors(ImplicitLocOpBuilder &b, Value lr, Value step) const override {
    return {lr};
  }
  SmallVector<Value> buildElement(ImplicitLocOpBuilder &b, Value grad, ValueRange old,
                                  ValueRange factors, DecayFn decay) const override;

private:
  OptimizerOptions o;
};

} // namespace

/// Builds 1 - base^step for step >= 1.
static Value buildCorrection(Arithmetic a, double base, Value step) {
  Value one = a.constant(1.0);
  if (base == 0)
    return one;
  Value exponent = a.mul(step, a.constant(std::log(base)));
  return a.sub(one, math::ExpOp::create(a.b, exponent));
}

SmallVector<Value> AdamW::buildFactors(ImplicitLocOpBuilder &b, Value lr, Value step) const {
  Arithmetic a{b, b.getF64Type()};
  Value one = a.constant(1.0);
  Value correction1 = buildCorrection(a, o.beta1, step);
  Value correction2 = buildCorrection(a, o.beta2, step);
  Value rate = a.div(lr, correction1);
  Value scale = a.div(one, a.sqrt(correction2));
  Value kept = a.sub(one, a.mul(lr, a.constant(o.weightDecay)));
  return {rate, scale, kept};
}

SmallVector<Value> AdamW::buildElement(ImplicitLocOpBuilder &b, Value grad, ValueRange old,
                                       ValueRange factors, DecayFn decay) const {
  Arithmetic a{b, grad.getType()};
  Value p = old[0], rate = factors[0], scale = factors[1], kept = factors[2];
  if (hasDecay())
    p = decay(a.mul(p, kept), p);
  Value m = a.add(old[1], a.mul(a.sub(grad, old[1]), a.constant(1 - o.beta1)));
  Value square = a.mul(a.mul(grad, grad), a.constant(1 - o.beta2));
  Value v = a.add(a.mul(old[2], a.constant(o.beta2)), square);
  Value root = a.add(a.mul(a.sqrt(v), scale), a.constant(o.eps));
  p = a.sub(p, a.mul(rate, a.div(m, root)));
  return {p, m, v};
}

SmallVector<Value> Sgd::buildElement(ImplicitLocOpBuilder &b, Value grad, ValueRange old,
                                     ValueRange factors, DecayFn decay) const {
  Arithmetic a{b, grad.getType()};
  Value p = old[0], step = grad;
  if (hasDecay())
    step = decay(a.add(step, a.mul(p, a.constant(o.weightDecay))), step);
  SmallVector<Value> state;
  if (o.momentum != 0) {
    step = a.add(a.mul(old[1], a.constant(o.momentum)), step);
    state.push_back(step);
  }
  state.insert(state.begin(), a.sub(p, a.mul(factors[0], step)));
  return state;
}

std::unique_ptr<Optimizer> fsdp::createOptimizer(const OptimizerOptions &options,
                                                 function_ref<InFlightDiagnostic()> emitError) {
  auto isIn = [&](StringRef name, double value, double low, double high, StringRef range) {
    bool inside = value >= low && value < high;
    if (!inside)
      emitError() << name << ": expected a number in " << range << ", found " << value;
    return inside;
  };
  double infinity = std::numeric_limits<double>::infinity();
  StringRef positive = "[0, inf)", fraction = "[0, 1)";
  if (!isIn("beta1", options.beta1, 0, 1, fraction) ||
      !isIn("beta2", options.beta2, 0, 1, fraction) ||
      !isIn("eps", options.eps, 0, infinity, positive) ||
      !isIn("weight-decay", options.weightDecay, 0, infinity, positive) ||
      !isIn("momentum", options.momentum, 0, 1, fraction))
    return nullptr;
  if (options.name == "adamw")
    return std::make_unique<AdamW>(options);
  if (options.name == "sgd")
    return std::make_unique<Sgd>(options);
  emitError() << "optimizer: expected 'adamw' or 'sgd', found '" << options.name << "'";
  return nullptr;
}
