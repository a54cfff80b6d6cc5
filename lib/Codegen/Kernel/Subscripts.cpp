//===- Subscripts.cpp - Index expressions with known ranges -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The index expressions of reshapes and of loops over flattened dimensions contain quotients and
// remainders. Only the simplified expression shows whether consecutive lanes of a vector are
// consecutive in memory:
//
//   (16 k + lane) mod 32 + 32 ((16 k + lane) floordiv 32)   ->   16 k + lane
//   (64 k + lane) floordiv 64, lane < 64                    ->   k
//
// An expression is represented as a sum of atoms (LinearForm) with coefficients. Simplification
// takes time linear in the number of atoms, except for recombine(), which takes quadratic time.
//
//===----------------------------------------------------------------------===//

#include "Subscripts.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

IntegerRange Subscripts::range(AffineExpr expr) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return IntegerRange::of(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return {dims[dim.getPosition()].lo, dims[dim.getPosition()].hi};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  IntegerRange lhs = range(binary.getLHS()), rhs = range(binary.getRHS());
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return {llvm::divideFloorSigned(lhs.lo, rhs.lo), llvm::divideFloorSigned(lhs.hi, rhs.lo)};
  default:
    return lhs.within(0, rhs.lo - 1) ? lhs : IntegerRange{0, rhs.lo - 1};
  }
}

AffineExpr Subscripts::toExpr(const LinearForm &form, MLIRContext *context) const {
  AffineExpr sum = getAffineConstantExpr(form.constant, context);
  bool any = form.constant != 0;
  for (auto [atom, factor] : form.terms) {
    if (factor == 0)
      continue;
    AffineExpr term = atom * factor;
    sum = any ? sum + term : term;
    any = true;
  }
  return sum;
}

/// Writes `form` as divisor * quotient + rest. The coefficients of the rest are in [0, divisor).
static std::pair<LinearForm, LinearForm> split(const LinearForm &form, int64_t divisor) {
  LinearForm quotient, rest;
  for (auto [atom, factor] : form.terms) {
    int64_t q = llvm::divideFloorSigned(factor, divisor), r = factor - q * divisor;
    if (q)
      quotient.terms[atom] = q;
    if (r)
      rest.terms[atom] = r;
  }
  quotient.constant = llvm::divideFloorSigned(form.constant, divisor);
  rest.constant = form.constant - quotient.constant * divisor;
  return {quotient, rest};
}

/// Finds coarse and fine so that form = g * coarse + fine, where g > 1 divides `divisor` and 0 <=
/// fine < g. With these values, (form mod divisor) = g * (coarse mod (divisor / g)) + fine. Returns
/// nothing if no such values are found.
std::optional<Subscripts::Grains> Subscripts::peel(const LinearForm &form, int64_t divisor,
                                                   MLIRContext *context) const {
  SmallVector<std::pair<AffineExpr, int64_t>> terms(form.terms.begin(), form.terms.end());
  llvm::stable_sort(terms, [](const auto &a, const auto &b) { return a.second > b.second; });
  for (size_t keep = terms.size(); keep > 0; --keep) {
    int64_t g = divisor;
    for (auto [atom, factor] : ArrayRef(terms).take_front(keep))
      g = std::gcd(g, factor);
    if (g <= 1)
      continue;
    Grains grains{g, {}, {}};
    for (auto [atom, factor] : ArrayRef(terms).take_front(keep))
      grains.coarse.terms[atom] = factor / g;
    for (auto [atom, factor] : ArrayRef(terms).drop_front(keep))
      grains.fine.terms[atom] = factor;
    grains.coarse.constant = llvm::divideFloorSigned(form.constant, g);
    grains.fine.constant = form.constant - grains.coarse.constant * g;
    auto [lo, hi] = range(toExpr(grains.fine, context));
    if (lo >= 0 && hi < g)
      return grains;
  }
  return std::nullopt;
}

AffineExpr Subscripts::floorDiv(AffineExpr expr, int64_t divisor) const {
  if (divisor == 1)
    return simplify(expr);
  MLIRContext *context = expr.getContext();
  auto [quotient, rest] = split(linearise(expr), divisor);
  AffineExpr small = toExpr(rest, context);
  auto [lo, hi] = range(small);
  if (lo >= 0 && hi < divisor)
    return toExpr(quotient, context);
  if (std::optional<Grains> grains = peel(rest, divisor, context)) {
    LinearForm sum = quotient;
    accumulate(floorDiv(toExpr(grains->coarse, context), divisor / grains->grain), 1, sum);
    return toExpr(sum, context);
  }
  AffineExpr tail;
  auto binary = dyn_cast<AffineBinaryOpExpr>(small);
  if (binary && binary.getKind() == AffineExprKind::FloorDiv)
    tail =
        floorDiv(binary.getLHS(), divisor * cast<AffineConstantExpr>(binary.getRHS()).getValue());
  else
    tail = getAffineBinaryOpExpr(AffineExprKind::FloorDiv, small,
                                 getAffineConstantExpr(divisor, context));
  LinearForm sum = quotient;
  accumulate(tail, 1, sum);
  return toExpr(sum, context);
}

AffineExpr Subscripts::mod(AffineExpr expr, int64_t divisor) const {
  MLIRContext *context = expr.getContext();
  if (divisor == 1)
    return getAffineConstantExpr(0, context);
  LinearForm rest = split(linearise(expr), divisor).second;
  AffineExpr small = toExpr(rest, context);
  auto [lo, hi] = range(small);
  if (lo >= 0 && hi < divisor)
    return small;
  if (std::optional<Grains> grains = peel(rest, divisor, context)) {
    LinearForm sum = grains->fine;
    accumulate(mod(toExpr(grains->coarse, context), divisor / grains->grain), grains->grain, sum);
    return toExpr(sum, context);
  }
  return getAffineBinaryOpExpr(AffineExprKind::Mod, small, getAffineConstantExpr(divisor, context));
}

void Subscripts::accumulate(AffineExpr expr, int64_t factor, LinearForm &form) const {
  if (factor == 0)
    return;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    form.constant += factor * constant.getValue();
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add) {
    accumulate(binary.getLHS(), factor, form);
    accumulate(binary.getRHS(), factor, form);
    return;
  }
  if (binary && binary.getKind() == AffineExprKind::Mul) {
    accumulate(binary.getLHS(), factor * cast<AffineConstantExpr>(binary.getRHS()).getValue(),
               form);
    return;
  }
  // If the range of a dim contains only one value, this value replaces the dim.
  if (auto dim = dyn_cast<AffineDimExpr>(expr);
      dim && dims[dim.getPosition()].lo == dims[dim.getPosition()].hi) {
    form.constant += factor * dims[dim.getPosition()].lo;
    return;
  }
  form.terms[expr] += factor;
}

/// Replaces (x floordiv c) * (a c) + (x mod c) * a by x * a.
void Subscripts::recombine(LinearForm &form) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [atom, factor] : form.terms) {
      auto rest = dyn_cast<AffineBinaryOpExpr>(atom);
      if (!factor || !rest || rest.getKind() != AffineExprKind::Mod)
        continue;
      int64_t divisor = cast<AffineConstantExpr>(rest.getRHS()).getValue();
      AffineExpr partner = floorDiv(rest.getLHS(), divisor);
      auto found = form.terms.find(partner);
      if (found == form.terms.end() || found->second != factor * divisor)
        continue;
      int64_t scale = factor;
      AffineExpr whole = rest.getLHS();
      found->second = 0;
      form.terms[atom] = 0;
      accumulate(whole, scale, form);
      changed = true;
      break;
    }
  }
}

LinearForm Subscripts::linearise(AffineExpr expr) const {
  LinearForm form;
  accumulate(expr, 1, form);
  recombine(form);
  form.terms.remove_if([](const auto &term) { return term.second == 0; });
  // The order of terms must not depend on the order in which they were found.
  auto terms = form.terms.takeVector();
  llvm::stable_sort(terms, [](const auto &a, const auto &b) { return a.second > b.second; });
  for (auto &term : terms)
    form.terms.insert(term);
  return form;
}

AffineExpr Subscripts::simplify(AffineExpr expr) const {
  return toExpr(linearise(expr), expr.getContext());
}

SmallVector<AffineExpr> fsdp::delinearise(const Subscripts &subscripts, AffineExpr linear,
                                          ArrayRef<int64_t> shape) {
  SmallVector<AffineExpr> indices(shape.size());
  int64_t stride = 1;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    AffineExpr quotient = subscripts.floorDiv(linear, stride);
    indices[i] = i == 0 ? quotient : subscripts.mod(quotient, shape[i]);
    stride *= shape[i];
  }
  return indices;
}

AffineExpr fsdp::linearise(const Subscripts &subscripts, ArrayRef<AffineExpr> indices,
                           ArrayRef<int64_t> shape, MLIRContext *context) {
  AffineExpr sum = getAffineConstantExpr(0, context);
  int64_t stride = 1;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    sum = sum + indices[i] * stride;
    stride *= shape[i];
  }
  return subscripts.simplify(sum);
}
