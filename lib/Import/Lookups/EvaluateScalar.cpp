//===- EvaluateScalar.cpp - Arithmetic on known numbers ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The ops have the semantics of the dialects arith and math: integers wrap. A quotient by 0 is
// undefined. The conversion of a float to an integer type is undefined if the type cannot hold the
// float. The result of every op except a select is undefined if an operand is undefined.
//
//===----------------------------------------------------------------------===//

#include "Lookups/EvaluateScalar.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

static unsigned widthOf(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

/// Wraps `value` to a number of `width` bits.
static Scalar wrap(uint64_t value, unsigned width) {
  if (width == 1)
    return Scalar::of(static_cast<int64_t>(value & 1));
  return Scalar::of(llvm::SignExtend64(value, width));
}

/// Returns the bits of an integer as an unsigned number.
static uint64_t unsignedOf(int64_t value, unsigned width) {
  return width == 64 ? static_cast<uint64_t>(value)
                     : static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}

static double roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return rounded.convertToDouble();
}

std::optional<Scalar> fsdp::readScalar(Attribute attr) {
  if (auto real = dyn_cast<FloatAttr>(attr))
    return Scalar::of(real.getValueAsDouble());
  auto integer = dyn_cast<IntegerAttr>(attr);
  if (!integer || integer.getValue().getBitWidth() > 64)
    return std::nullopt;
  return wrap(integer.getValue().getZExtValue(), widthOf(integer.getType()));
}

using IntegerFunction = Scalar (*)(int64_t, int64_t, unsigned width);
using RealFunction = double (*)(double, double);

/// Returns the quotient of signed numbers, rounded down or up, without overflow.
static Scalar divide(int64_t a, int64_t b, unsigned width, int direction) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()))
    return Scalar::poison();
  int64_t quotient = a / b, rest = a % b;
  if (rest != 0 && direction != 0 && ((rest < 0) != (b < 0)) == (direction < 0))
    quotient += direction;
  return wrap(quotient, width);
}

static Scalar divideUnsigned(int64_t a, int64_t b, unsigned width, bool remainder) {
  uint64_t x = unsignedOf(a, width), y = unsignedOf(b, width);
  return y == 0 ? Scalar::poison() : wrap(remainder ? x % y : x / y, width);
}

static Scalar remainder(int64_t a, int64_t b, unsigned width) {
  return b == 0 ? Scalar::poison() : wrap(b == -1 ? 0 : a % b, width);
}

static Scalar shift(int64_t a, int64_t b, unsigned width, char how) {
  uint64_t by = unsignedOf(b, width);
  if (by >= width)
    return Scalar::poison();
  if (how == '<')
    return wrap(static_cast<uint64_t>(a) << by, width);
  return wrap(how == 's' ? static_cast<uint64_t>(a >> by) : unsignedOf(a, width) >> by, width);
}

static const llvm::StringMap<IntegerFunction> &integerFunctions() {
  static const llvm::StringMap<IntegerFunction> table = {
      {"arith.addi", [](int64_t a, int64_t b, unsigned w) { return wrap(uint64_t(a) + b, w); }},
      {"arith.subi", [](int64_t a, int64_t b, unsigned w) { return wrap(uint64_t(a) - b, w); }},
      {"arith.muli", [](int64_t a, int64_t b, unsigned w) { return wrap(uint64_t(a) * b, w); }},
      {"arith.andi", [](int64_t a, int64_t b, unsigned w) { return wrap(a & b, w); }},
      {"arith.ori", [](int64_t a, int64_t b, unsigned w) { return wrap(a | b, w); }},
      {"arith.xori", [](int64_t a, int64_t b, unsigned w) { return wrap(a ^ b, w); }},
      {"arith.shli", [](int64_t a, int64_t b, unsigned w) { return shift(a, b, w, '<'); }},
      {"arith.shrsi", [](int64_t a, int64_t b, unsigned w) { return shift(a, b, w, 's'); }},
      {"arith.shrui", [](int64_t a, int64_t b, unsigned w) { return shift(a, b, w, 'u'); }},
      {"arith.divsi", [](int64_t a, int64_t b, unsigned w) { return divide(a, b, w, 0); }},
      {"arith.floordivsi", [](int64_t a, int64_t b, unsigned w) { return divide(a, b, w, -1); }},
      {"arith.ceildivsi", [](int64_t a, int64_t b, unsigned w) { return divide(a, b, w, 1); }},
      {"arith.divui",
       [](int64_t a, int64_t b, unsigned w) { return divideUnsigned(a, b, w, false); }},
      {"arith.remui",
       [](int64_t a, int64_t b, unsigned w) { return divideUnsigned(a, b, w, true); }},
      {"arith.remsi", remainder},
      {"arith.maxsi", [](int64_t a, int64_t b, unsigned) { return Scalar::of(std::max(a, b)); }},
      {"arith.minsi", [](int64_t a, int64_t b, unsigned) { return Scalar::of(std::min(a, b)); }},
      {"math.absi",
       [](int64_t a, int64_t, unsigned w) { return wrap(a < 0 ? -uint64_t(a) : a, w); }},
  };
  return table;
}

static const llvm::StringMap<RealFunction> &realFunctions() {
  static const llvm::StringMap<RealFunction> table = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.negf", [](double a, double) { return -a; }},
      {"arith.maximumf",
       [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }},
      {"arith.minimumf",
       [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }},
      {"math.absf", [](double a, double) { return std::fabs(a); }},
      {"math.ceil", [](double a, double) { return std::ceil(a); }},
      {"math.floor", [](double a, double) { return std::floor(a); }},
      {"math.trunc", [](double a, double) { return std::trunc(a); }},
      {"math.round", [](double a, double) { return std::round(a); }},
      {"math.roundeven", [](double a, double) { return std::nearbyint(a); }},
      {"math.exp", [](double a, double) { return std::exp(a); }},
      {"math.exp2", [](double a, double) { return std::exp2(a); }},
      {"math.log", [](double a, double) { return std::log(a); }},
      {"math.log2", [](double a, double) { return std::log2(a); }},
      {"math.log10", [](double a, double) { return std::log10(a); }},
      {"math.log1p", [](double a, double) { return std::log1p(a); }},
      {"math.sqrt", [](double a, double) { return std::sqrt(a); }},
      {"math.rsqrt", [](double a, double) { return 1 / std::sqrt(a); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
      {"math.sin", [](double a, double) { return std::sin(a); }},
      {"math.cos", [](double a, double) { return std::cos(a); }},
      {"math.tanh", [](double a, double) { return std::tanh(a); }},
  };
  return table;
}

/// Converts the float to an integer of the type. The result is undefined if the type cannot hold
/// the integer.
static Scalar toInteger(double value, Type type, bool isSigned) {
  unsigned width = widthOf(type);
  double whole = std::trunc(value);
  double most = std::ldexp(1.0, isSigned ? width - 1 : width), least = isSigned ? -most : 0;
  if (!(whole >= least && whole < most))
    return Scalar::poison();
  return wrap(isSigned ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                       : static_cast<uint64_t>(whole),
              width);
}

static bool isKnownType(Type type) {
  return type.isIndex() || type.isF64() || type.isF32() || type.isF16() || type.isBF16() ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64);
}

bool fsdp::isKnownScalarOp(Operation *op) {
  if (op->getNumResults() != 1 || !llvm::all_of(op->getOperandTypes(), isKnownType) ||
      !isKnownType(op->getResult(0).getType()))
    return false;
  StringRef name = op->getName().getStringRef();
  // In signed arithmetic on one bit, the value 1 means -1.
  bool isBit = op->getResult(0).getType().isInteger(1);
  if (isBit && isa<arith::MaxSIOp, arith::MinSIOp, arith::DivSIOp, arith::RemSIOp,
                   arith::FloorDivSIOp, arith::CeilDivSIOp, arith::ShRSIOp>(op))
    return false;
  return integerFunctions().contains(name) || realFunctions().contains(name) ||
         isa<arith::CmpIOp, arith::CmpFOp, arith::SelectOp, arith::IndexCastOp,
             arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::ExtFOp,
             arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp>(
             op);
}

/// Evaluates a cast of the defined operand `x`.
static Scalar evaluateCast(Operation *op, Scalar x) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return toInteger(x.real, to, isa<arith::FPToSIOp>(op));
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return Scalar::of(roundTo(x.real, to));
  bool extendsSign = isa<arith::ExtSIOp, arith::IndexCastOp, arith::SIToFPOp>(op);
  unsigned width = widthOf(from);
  int64_t value = extendsSign ? (width == 1 ? -x.integer : x.integer)
                              : static_cast<int64_t>(unsignedOf(x.integer, width));
  // The result must be rounded only once, so refuse an integer that f64 cannot represent.
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return std::abs(value >> 1) < int64_t(1) << 52
               ? Scalar::of(roundTo(static_cast<double>(value), to))
               : Scalar::poison();
  return wrap(value, widthOf(to));
}

Scalar fsdp::evaluateScalar(Operation *op, ArrayRef<Scalar> operands) {
  if (isa<arith::SelectOp>(op))
    return operands[0].undefined ? operands[0] : operands[operands[0].integer ? 1 : 2];
  if (llvm::any_of(operands, [](const Scalar &s) { return s.undefined; }))
    return Scalar::poison();
  Scalar a = operands[0], b = operands.size() > 1 ? operands[1] : Scalar();
  Type type = op->getResult(0).getType();
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    unsigned width = widthOf(cmp.getLhs().getType());
    auto bits = [&](const Scalar &s) { return APInt(width, unsignedOf(s.integer, width)); };
    return Scalar::of(
        static_cast<int64_t>(arith::applyCmpPredicate(cmp.getPredicate(), bits(a), bits(b))));
  }
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return Scalar::of(static_cast<int64_t>(
        arith::applyCmpPredicate(cmp.getPredicate(), APFloat(a.real), APFloat(b.real))));
  StringRef name = op->getName().getStringRef();
  if (auto it = integerFunctions().find(name); it != integerFunctions().end())
    return it->second(a.integer, b.integer, widthOf(type));
  if (auto it = realFunctions().find(name); it != realFunctions().end())
    return Scalar::of(roundTo(it->second(a.real, b.real), type));
  return evaluateCast(op, a);
}
