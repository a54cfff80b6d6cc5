//===- HloElementwise.cpp - Elementwise ops of StableHLO --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers elementwise ops to ops of arith and math. The ops of arith and math work on tensors or, in
// the regions of reductions, on scalars:
//
//   stablehlo.maximum %a, %b : tensor<4xf32>   ->   arith.maximumf %a, %b : tensor<4xf32>
//   stablehlo.logistic %a                      ->   1 / (1 + exp(-a))
//   stablehlo.add %a, %b : tensor<4xi1>        ->   arith.ori
//
// Integers are treated as signed. An i1 is a truth value: the sum of two i1 is their "or", and the
// product is their "and". In an integer division by zero, the quotient is -1 and the remainder is
// the dividend, as in the specification.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Builds the ops to which one elementwise op is lowered. The operands are tensors if the result is
/// a tensor, and scalars otherwise.
class Elementwise {
public:
  Elementwise(OpBuilder &b, Operation *op, ValueRange operands, Type result)
      : b(b), op(op), loc(op->getLoc()), operands(operands), result(result) {}
  FailureOr<Value> lower();

private:
  Value lowerUnaryFloat();
  Value lowerBinaryFloat();
  Value lowerInteger();
  Value lowerDivision(bool isRemainder);
  FailureOr<Value> lowerCompare();
  FailureOr<Value> lowerConvert();
  Value lowerSign();
  FailureOr<Value> lowerReducePrecision();
  FailureOr<Value> lowerUniform();
  FailureOr<Value> lowerSelect();
  FailureOr<Value> lowerClamp();

  Value x() const { return operands[0]; }
  Value y() const { return operands[1]; }
  Type element(Value value) const { return getElementTypeOrSelf(value.getType()); }
  bool isFloat() const { return isa<FloatType>(element(x())); }
  template <typename Op>
  Value make() const {
    return Op::create(b, loc, operands);
  }
  template <typename Op>
  Value join(Value l, Value r) const {
    return Op::create(b, loc, l, r);
  }
  Value constant(Type type, double value) const;
  Value spread(Value value, Type as) const;

  OpBuilder &b;
  Operation *op;
  Location loc;
  SmallVector<Value> operands;
  Type result;
};
} // namespace

/// Returns a constant of `type`, which is a tensor type or a scalar type.
Value Elementwise::constant(Type type, double value) const {
  Type scalar = getElementTypeOrSelf(type);
  TypedAttr attr = isa<FloatType>(scalar)
                       ? TypedAttr(b.getFloatAttr(scalar, value))
                       : TypedAttr(b.getIntegerAttr(scalar, static_cast<int64_t>(value)));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    attr = DenseElementsAttr::get(tensor, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

/// If `value` is a tensor of rank 0 and `as` is a tensor type of higher rank, returns `value`
/// broadcast to the shape of `as`. Otherwise returns `value`.
Value Elementwise::spread(Value value, Type as) const {
  auto from = dyn_cast<RankedTensorType>(value.getType());
  auto to = dyn_cast<RankedTensorType>(as);
  if (!from || !to || from.getRank() != 0 || to.getRank() == 0)
    return value;
  return buildFilled(b, loc, to.clone(from.getElementType()), getScalar(b, loc, value));
}

Value Elementwise::lowerUnaryFloat() {
  Type type = x().getType();
  StringRef name = op->getName().stripDialect();
  if (name == "logistic") {
    Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x()));
    Value one = constant(type, 1);
    return join<arith::DivFOp>(one, join<arith::AddFOp>(one, e));
  }
  if (name == "sign")
    return lowerSign();
  if (name == "square")
    return join<arith::MulFOp>(x(), x());
  if (name == "is_finite") {
    Value infinity = constant(type, std::numeric_limits<double>::infinity());
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE,
                                 math::AbsFOp::create(b, loc, x()), infinity);
  }
  using Build = Value (Elementwise::*)() const;
  Build build = llvm::StringSwitch<Build>(name)
                    .Case("abs", &Elementwise::make<math::AbsFOp>)
                    .Case("cbrt", &Elementwise::make<math::CbrtOp>)
                    .Case("ceil", &Elementwise::make<math::CeilOp>)
                    .Case("cosine", &Elementwise::make<math::CosOp>)
                    .Case("erf", &Elementwise::make<math::ErfOp>)
                    .Case("erfc", &Elementwise::make<math::ErfcOp>)
                    .Case("exponential", &Elementwise::make<math::ExpOp>)
                    .Case("exponential_minus_one", &Elementwise::make<math::ExpM1Op>)
                    .Case("floor", &Elementwise::make<math::FloorOp>)
                    .Case("log", &Elementwise::make<math::LogOp>)
                    .Case("log_plus_one", &Elementwise::make<math::Log1pOp>)
                    .Case("negate", &Elementwise::make<arith::NegFOp>)
                    .Case("round_nearest_afz", &Elementwise::make<math::RoundOp>)
                    .Case("round_nearest_even", &Elementwise::make<math::RoundEvenOp>)
                    .Case("rsqrt", &Elementwise::make<math::RsqrtOp>)
                    .Case("sine", &Elementwise::make<math::SinOp>)
                    .Case("sqrt", &Elementwise::make<math::SqrtOp>)
                    .Case("tan", &Elementwise::make<math::TanOp>)
                    .Case("tanh", &Elementwise::make<math::TanhOp>)
                    .Default(nullptr);
  return build ? (this->*build)() : Value();
}

/// Returns the sign of each element x as 1 or -1. If x is zero or NaN, the result is x.
Value Elementwise::lowerSign() {
  Value zero = constant(x().getType(), 0);
  Value isOrdinary = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, x(), zero);
  Value sign = join<math::CopySignOp>(constant(x().getType(), 1), x());
  return arith::SelectOp::create(b, loc, isOrdinary, sign, x());
}

Value Elementwise::lowerBinaryFloat() {
  using Build = Value (Elementwise::*)() const;
  Build build = llvm::StringSwitch<Build>(op->getName().stripDialect())
                    .Case("add", &Elementwise::make<arith::AddFOp>)
                    .Case("atan2", &Elementwise::make<math::Atan2Op>)
                    .Case("divide", &Elementwise::make<arith::DivFOp>)
                    .Case("maximum", &Elementwise::make<arith::MaximumFOp>)
                    .Case("minimum", &Elementwise::make<arith::MinimumFOp>)
                    .Case("multiply", &Elementwise::make<arith::MulFOp>)
                    .Case("power", &Elementwise::make<math::PowFOp>)
                    .Case("remainder", &Elementwise::make<arith::RemFOp>)
                    .Case("subtract", &Elementwise::make<arith::SubFOp>)
                    .Default(nullptr);
  return build ? (this->*build)() : Value();
}

/// Returns x / y or x % y. Builds ops that handle a divisor of 0 and a quotient that overflows.
/// Omits these ops if the divisor is a constant that is neither 0 nor -1.
Value Elementwise::lowerDivision(bool isRemainder) {
  Type type = x().getType();
  APInt divisor;
  DenseIntElementsAttr values;
  bool isSafe =
      matchPattern(y(), m_ConstantInt(&divisor)) && !divisor.isZero() && !divisor.isAllOnes();
  if (matchPattern(y(), m_Constant(&values)))
    isSafe = llvm::none_of(values.getValues<APInt>(),
                           [](const APInt &value) { return value.isZero() || value.isAllOnes(); });
  auto divide = [&](Value by) {
    return isRemainder ? join<arith::RemSIOp>(x(), by) : join<arith::DivSIOp>(x(), by);
  };
  if (isSafe)
    return divide(y());
  auto equals = [&](double value) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, y(), constant(type, value));
  };
  Value isZero = equals(0), isMinusOne = equals(-1), one = constant(type, 1);
  Value by = arith::SelectOp::create(b, loc, join<arith::OrIOp>(isZero, isMinusOne), one, y());
  Value zero = constant(type, 0);
  Value atMinusOne = isRemainder ? zero : join<arith::SubIOp>(zero, x());
  Value atZero = isRemainder ? x() : constant(type, -1);
  Value ordinary = arith::SelectOp::create(b, loc, isMinusOne, atMinusOne, divide(by));
  return arith::SelectOp::create(b, loc, isZero, atZero, ordinary);
}

Value Elementwise::lowerInteger() {
  StringRef name = op->getName().stripDialect();
  Type type = x().getType();
  bool isTruth = element(x()).isInteger(1);
  if (operands.size() == 1) {
    if (name == "negate")
      return join<arith::SubIOp>(constant(type, 0), x());
    if (name == "not")
      return join<arith::XOrIOp>(x(), constant(type, -1));
    if (name == "abs")
      return make<math::AbsIOp>();
    if (name == "sign")
      return join<arith::MaxSIOp>(constant(type, -1), join<arith::MinSIOp>(constant(type, 1), x()));
    return {};
  }
  if (!isTruth && (name == "divide" || name == "remainder"))
    return lowerDivision(name == "remainder");
  using Build = Value (Elementwise::*)() const;
  Build build = llvm::StringSwitch<Build>(name)
                    .Case("add", isTruth ? &Elementwise::make<arith::OrIOp>
                                         : &Elementwise::make<arith::AddIOp>)
                    .Case("and", &Elementwise::make<arith::AndIOp>)
                    .Case("maximum", isTruth ? &Elementwise::make<arith::OrIOp>
                                             : &Elementwise::make<arith::MaxSIOp>)
                    .Case("minimum", isTruth ? &Elementwise::make<arith::AndIOp>
                                             : &Elementwise::make<arith::MinSIOp>)
                    .Case("multiply", isTruth ? &Elementwise::make<arith::AndIOp>
                                              : &Elementwise::make<arith::MulIOp>)
                    .Case("or", &Elementwise::make<arith::OrIOp>)
                    .Case("xor", &Elementwise::make<arith::XOrIOp>)
                    .Default(nullptr);
  if (name == "subtract" && !isTruth)
    return make<arith::SubIOp>();
  return build ? (this->*build)() : Value();
}

FailureOr<Value> Elementwise::lowerCompare() {
  StringRef direction = getWord(op, "comparison_direction"), how = getWord(op, "compare_type");
  if (how == "TOTALORDER" || how == "UNSIGNED")
    if (!element(x()).isInteger(1))
      return op->emitError("'") << op->getName() << "' with the 'compare_type' " << how
                                << " is not supported; expected FLOAT or SIGNED";
  bool isTruth = element(x()).isInteger(1);
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  std::optional<std::pair<F, I>> predicate =
      llvm::StringSwitch<std::optional<std::pair<F, I>>>(direction)
          .Case("EQ", {{F::OEQ, I::eq}})
          .Case("NE", {{F::UNE, I::ne}})
          .Case("LT", {{F::OLT, isTruth ? I::ult : I::slt}})
          .Case("LE", {{F::OLE, isTruth ? I::ule : I::sle}})
          .Case("GT", {{F::OGT, isTruth ? I::ugt : I::sgt}})
          .Case("GE", {{F::OGE, isTruth ? I::uge : I::sge}})
          .Default(std::nullopt);
  if (!predicate)
    return op->emitError("expected 'comparison_direction' EQ, NE, LT, LE, GT or GE, found '")
           << direction << "'";
  if (isFloat())
    return Value(arith::CmpFOp::create(b, loc, predicate->first, x(), y()));
  return Value(arith::CmpIOp::create(b, loc, predicate->second, x(), y()));
}

FailureOr<Value> Elementwise::lowerConvert() {
  Type from = element(x()), to = getElementTypeOrSelf(result);
  if (from == to)
    return x();
  auto cast = [&](auto tag) -> Value { return decltype(tag)::create(b, loc, result, x()); };
  if (to.isInteger(1)) {
    Value zero = constant(x().getType(), 0);
    if (isFloat())
      return Value(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x(), zero));
    return Value(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x(), zero));
  }
  unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = to.getIntOrFloatBitWidth();
  if (isFloat() && isa<FloatType>(to) && fromBits == toBits) { // f16 and bf16
    Type wide = b.getF32Type();
    if (auto tensor = dyn_cast<RankedTensorType>(result))
      wide = tensor.clone(wide);
    Value widened = arith::ExtFOp::create(b, loc, wide, x());
    return Value(arith::TruncFOp::create(b, loc, result, widened));
  }
  if (isFloat() && isa<FloatType>(to))
    return fromBits < toBits ? cast(arith::ExtFOp()) : cast(arith::TruncFOp());
  if (isFloat())
    return cast(arith::FPToSIOp());
  if (isa<FloatType>(to))
    return from.isInteger(1) ? cast(arith::UIToFPOp()) : cast(arith::SIToFPOp());
  if (fromBits > toBits)
    return cast(arith::TruncIOp());
  return from.isInteger(1) ? cast(arith::ExtUIOp()) : cast(arith::ExtSIOp());
}

/// Rounds to bf16 or f16 and converts the result back. Emits an error for all other formats.
FailureOr<Value> Elementwise::lowerReducePrecision() {
  SmallVector<int64_t> exponent = getInts(op, "exponent_bits"),
                       mantissa = getInts(op, "mantissa_bits");
  StringRef format = getWord(op, "format");
  auto is = [&](StringRef word, int64_t e, int64_t m) {
    return format == word || (exponent == ArrayRef(e) && mantissa == ArrayRef(m));
  };
  Type narrow;
  if (is("e8m7", 8, 7))
    narrow = b.getBF16Type();
  else if (is("e5m10", 5, 10))
    narrow = b.getF16Type();
  if (!narrow || !element(x()).isF32())
    return op->emitError("expected f32 rounded to e8m7 (bf16) or e5m10 (f16)");
  Type type = narrow;
  if (auto tensor = dyn_cast<RankedTensorType>(result))
    type = tensor.clone(narrow);
  Value rounded = arith::TruncFOp::create(b, loc, type, x());
  return Value(arith::ExtFOp::create(b, loc, result, rounded));
}

FailureOr<Value> Elementwise::lowerSelect() {
  if (operands.size() != 3 || !element(x()).isInteger(1) || y().getType() != result ||
      operands[2].getType() != result)
    return op->emitError("expected a condition of i1 and two values of the result's type");
  return Value(arith::SelectOp::create(b, loc, spread(x(), result), y(), operands[2]));
}

FailureOr<Value> Elementwise::lowerClamp() {
  if (operands.size() != 3 || y().getType() != result)
    return op->emitError("expected a lower limit, a value of the result's type and an upper limit");
  Value low = spread(x(), result), high = spread(operands[2], result);
  if (low.getType() != result || high.getType() != result)
    return op->emitError("expected limits that are scalars or have the result's type");
  if (isFloat())
    return join<arith::MinimumFOp>(join<arith::MaximumFOp>(low, y()), high);
  return join<arith::MinSIOp>(join<arith::MaxSIOp>(low, y()), high);
}

/// Lowers an op that has one operand, or two operands of the same type.
FailureOr<Value> Elementwise::lowerUniform() {
  if (operands.size() == 2 && x().getType() != y().getType())
    return op->emitError("expected two operands of one type, found ")
           << x().getType() << " and " << y().getType();
  FailureOr<Value> value = Value();
  if (op->getName().stripDialect() == "compare" && operands.size() == 2)
    value = lowerCompare();
  else if (!isFloat())
    value = lowerInteger();
  else
    value = operands.size() == 1 ? lowerUnaryFloat() : lowerBinaryFloat();
  if (succeeded(value) && *value && value->getType() != result)
    return op->emitError("expected a result of type ") << value->getType() << ", found " << result;
  return value;
}

FailureOr<Value> Elementwise::lower() {
  StringRef name = op->getName().stripDialect();
  if (name == "custom_call")
    return getWord(op, "call_target_name") == "mhlo.erf" && operands.size() == 1 && isFloat() &&
                   x().getType() == result
               ? make<math::ErfOp>()
               : Value();
  if (name == "select")
    return lowerSelect();
  if (name == "clamp")
    return lowerClamp();
  if (name == "convert" || name == "reduce_precision") {
    auto from = operands.size() == 1 ? dyn_cast<RankedTensorType>(x().getType()) : nullptr;
    auto to = dyn_cast<RankedTensorType>(result);
    if (operands.size() != 1 || (from && (!to || from.getShape() != to.getShape())))
      return op->emitError("expected one operand, and a result of its shape");
    return name == "convert" ? lowerConvert() : lowerReducePrecision();
  }
  if (operands.empty() || operands.size() > 2)
    return Value();
  return lowerUniform();
}

FailureOr<Value> fsdp::lowerElementwise(OpBuilder &b, Operation *op, ValueRange operands,
                                        Type result) {
  return Elementwise(b, op, operands, result).lower();
}
