//===- Check.cpp - Gradients against finite differences ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The derivative of f at x in the direction u is approximated from four evaluations of f. The error
// of the approximation is O(h⁴):
//
//   D(u) = (8 (f(x + hu) - f(x - hu)) - (f(x + 2hu) - f(x - 2hu))) / 12h
//
// D(u) is compared with <g, u>, where g is the gradient that the compiler's code computes. An
// argument with few elements is checked in every unit direction. A larger argument is checked in
// some unit directions and in some random directions. A random direction changes all elements.
//
// - The error of a direction is divided by a scale: the largest of |<g, u>|, |D(u)|, and 1e-3 times
//   the largest possible |<g, u>|. In addition to the bound, an estimate of the rounding errors of
//   the finite differences is allowed.
// - If an argument has no gradient, the finite differences must be zero.
// - In all evaluations, the results of fsdp.stop_gradient have the values that they have at the
//   point x (HoldStopped.cpp).
// - A value that is NaN or infinite is reported and not compared.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "HoldStopped.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gradcheck;

namespace {
/// Generates random numbers by the algorithm SplitMix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform(double low, double high) { return low + (high - low) * (next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

using Direction = std::vector<std::pair<int64_t, double>>; // (index of an element, component of u)

class Checker {
public:
  Checker(const Function &function, Engine &forward, const CheckOptions &options)
      : function(function), forward(forward), options(options), random(options.seed) {}

  void fill(std::vector<Buffer> &arguments);
  LogicalResult start(std::vector<Buffer> &arguments);
  FailureOr<Row> checkArgument(unsigned index, const Buffer *gradient);

private:
  FailureOr<double> evaluate(Buffer &x, const std::vector<double> &at, const Direction &u,
                             double h);
  LogicalResult compare(Buffer &x, const std::vector<double> &at, const Direction &u,
                        const Buffer *gradient, Row &row);

  const Function &function;
  Engine &forward;
  const CheckOptions &options;
  Random random;
  std::vector<Buffer> wide, loss; // arguments and result of the f64 function
  double value = 0;               // value of the loss
};
} // namespace

double gradcheck::boundFor(unsigned precision, unsigned numOps, double tolerance) {
  // In a 16-bit type, each value is computed in f32 and rounded to 16 bits only once. In f32, the
  // rounding errors of n ops are assumed to grow with the square root of n.
  double roundings = precision < 24 ? 8 : 8 * std::max(1.0, std::sqrt(numOps));
  return std::max(tolerance, roundings * std::ldexp(1.0, -static_cast<int>(precision)));
}

void Checker::fill(std::vector<Buffer> &arguments) {
  for (const Argument &argument : function.arguments) {
    Buffer &buffer = arguments.emplace_back(argument.type);
    bool isFloat = isa<FloatType>(argument.type.getElementType());
    for (int64_t i = 0; i < buffer.size(); ++i) {
      if (isFloat)
        buffer.set(i, random.uniform(argument.low, argument.high));
      else if (argument.ignore && random.next() % 3 == 0)
        buffer.set(i, *argument.ignore);
      else
        buffer.set(i, random.next() % argument.limit);
    }
  }
}

/// Copies the arguments to f64, appends the values that finite differences keep constant, and
/// computes the loss.
LogicalResult Checker::start(std::vector<Buffer> &arguments) {
  Type f64 = Float64Type::get(function.loss.getContext());
  for (Buffer &buffer : arguments) {
    bool isFloat = isa<FloatType>(buffer.getType().getElementType());
    Buffer &copy = wide.emplace_back(isFloat ? cast<RankedTensorType>(buffer.getType().clone(f64))
                                             : buffer.getType());
    for (int64_t i = 0; i < buffer.size(); ++i)
      copy.set(i, buffer.get(i));
  }
  if (!function.held.empty()) {
    std::vector<Buffer> held(function.held.begin(), function.held.end());
    if (failed(forward.call(getHeldName(function.name), wide, held)))
      return failure();
    wide.insert(wide.end(), held.begin(), held.end());
  }
  loss.emplace_back(RankedTensorType::get({}, f64));
  if (failed(forward.call(function.name, wide, loss)))
    return failure();
  value = loss[0].get(0);
  return success();
}

FailureOr<double> Checker::evaluate(Buffer &x, const std::vector<double> &at, const Direction &u,
                                    double h) {
  for (auto [i, component] : u)
    x.set(i, at[i] + h * component);
  if (failed(forward.call(function.name, wide, loss)))
    return failure();
  for (auto [i, component] : u)
    x.set(i, at[i]);
  return loss[0].get(0);
}

static std::string describe(const Direction &u) {
  return u.size() == 1 ? "element " + std::to_string(u[0].first) : "a random direction";
}

LogicalResult Checker::compare(Buffer &x, const std::vector<double> &at, const Direction &u,
                               const Buffer *gradient, Row &row) {
  double h = options.step, f[4], steps[4] = {h, -h, 2 * h, -2 * h};
  for (int i = 0; i < 4; ++i) {
    FailureOr<double> result = evaluate(x, at, u, steps[i]);
    if (failed(result))
      return failure();
    f[i] = *result;
  }
  for (int i = 0; i < 4; ++i)
    if (row.notFinite.empty() && !std::isfinite(f[i]))
      row.notFinite = "the loss at " + std::to_string(steps[i]) + " along " + describe(u);
  double difference = (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * h), claimed = 0, length = 0;
  for (auto [i, component] : u) {
    claimed += gradient ? gradient->get(i) * component : 0;
    length += component * component;
  }
  double rounding = 0x1p-50 * (1 + std::abs(value)) / h, error = std::abs(claimed - difference);
  double scale = std::max(
      {std::abs(claimed), std::abs(difference), 1e-3 * row.largest * std::sqrt(length), 1e-30});
  // In types narrower than f64, rounding errors are proportional to the largest possible <g, u>.
  if (row.isNarrow)
    scale = std::max(scale, row.largest * std::sqrt(length));
  // This form of the condition is also true if the error is NaN.
  if (!(error <= row.bound * scale + rounding))
    row.ok = false;
  // If the gradient is zero, no relative error is reported.
  if (gradient || !row.ok)
    row.worst = std::max(row.worst, error / scale);
  ++row.numChecked;
  return success();
}

FailureOr<Row> Checker::checkArgument(unsigned index, const Buffer *gradient) {
  Buffer &x = wide[index];
  Row row;
  row.function = function.name;
  row.argument = function.arguments[index].name;
  row.type = function.arguments[index].type;
  row.precision = function.precision;
  row.isNarrow = function.precision < 53;
  row.bound = boundFor(function.precision, function.numOps, options.tolerance);
  std::vector<double> at(x.size());
  if (!std::isfinite(value))
    row.notFinite = "the loss";
  for (int64_t i = 0; i < x.size(); ++i) {
    at[i] = x.get(i);
    if (gradient && row.notFinite.empty() && !std::isfinite(gradient->get(i)))
      row.notFinite = "element " + std::to_string(i) + " of the gradient";
    if (gradient)
      row.largest = std::max(row.largest, std::abs(gradient->get(i)));
  }
  std::vector<Direction> directions;
  bool all = x.size() <= options.allElements;
  for (int64_t i = 0; i < (all ? x.size() : options.elements); ++i)
    directions.push_back({{all ? i : static_cast<int64_t>(random.next() % x.size()), 1.0}});
  for (int64_t i = 0; i < (all ? 0 : options.directions); ++i) {
    Direction &u = directions.emplace_back();
    for (int64_t j = 0; j < x.size(); ++j)
      u.push_back({j, random.uniform(-1, 1)});
  }
  for (const Direction &u : directions)
    if (failed(compare(x, at, u, gradient, row)))
      return failure();
  row.ok &= row.numChecked > 0 && row.notFinite.empty();
  return row;
}

FailureOr<std::vector<Row>> gradcheck::check(const Function &function, Engine &forward,
                                             Engine &gradient, const CheckOptions &options) {
  Checker checker(function, forward, options);
  std::vector<Buffer> arguments, results;
  checker.fill(arguments);
  if (failed(checker.start(arguments)))
    return failure();
  results.emplace_back(function.loss);
  for (RankedTensorType type : function.types)
    results.emplace_back(type);
  if (failed(gradient.call(function.name, arguments, results)))
    return failure();
  std::vector<Row> rows;
  for (auto [i, argument] : llvm::enumerate(function.arguments)) {
    if (!argument.isChecked)
      continue;
    auto found = llvm::find(function.gradients, i);
    const Buffer *g = found == function.gradients.end()
                          ? nullptr
                          : &results[1 + (found - function.gradients.begin())];
    FailureOr<Row> row = checker.checkArgument(i, g);
    if (failed(row))
      return failure();
    rows.push_back(*row);
  }
  return rows;
}
