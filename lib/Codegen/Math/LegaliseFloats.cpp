//===- LegaliseFloats.cpp - bf16 and f16 on f32 hardware --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Arithmetic on 16-bit floats is done in f32, and the result of each op is rounded immediately:
//
//   arith.addf %a, %b : bf16   ->   truncf(addf(extf %a, extf %b : f32)) : bf16
//
// Conversions of bf16 are integer operations that round to nearest even and keep NaN and denormals.
// The instruction vcvtneps2bf16 is not used: it flushes denormals, so bits would differ between
// CPUs. A conversion from f64 first rounds to f32 and then to 16 bits. The first rounding is to
// odd, so that the two roundings together have the same result as a single rounding. The ops
// maximumf and minimumf become two selects that propagate NaN.
//
// At the end, the type i16 replaces bf16, because LLVM would emit a library call to move a scalar
// bf16. This is correct, because the ops that still have the type bf16 at this point only move
// bits. Bitcasts are inserted around instructions that need bf16 (dot products).
//
//===----------------------------------------------------------------------===//

#include "MathPatterns.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

/// Returns `type` with another element type.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

static Value splatInt(OpBuilder &b, Location loc, Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

namespace {
/// Computes ops of arith and math in f32: extends operands and truncates results.
struct ComputeInSingle : RewritePattern {
  ComputeInSingle(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || op->getNumRegions() ||
        isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp>(
            op))
      return failure();
    if (llvm::none_of(op->getOperandTypes(), isHalf) && llvm::none_of(op->getResultTypes(), isHalf))
      return failure();
    Location loc = op->getLoc();
    auto single = [&](Type type) {
      return isHalf(type) ? withElement(type, rewriter.getF32Type()) : type;
    };
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (isHalf(operand.getType()))
        operand = arith::ExtFOp::create(rewriter, loc, single(operand.getType()), operand);
    OperationState state(loc, op->getName(), operands, {}, op->getAttrs());
    for (Type type : op->getResultTypes())
      state.addTypes(single(type));
    Operation *wide = rewriter.create(state);
    SmallVector<Value> results(wide->getResults());
    for (auto [result, old] : llvm::zip_equal(results, op->getResults()))
      if (isHalf(old.getType()))
        result = arith::TruncFOp::create(rewriter, loc, old.getType(), result);
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct ExpandExtF : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!isHalf(from))
      return failure();
    Location loc = op.getLoc();
    Type single = withElement(to, rewriter.getF32Type());
    if (to != single) {
      Value wide = arith::ExtFOp::create(rewriter, loc, single, op.getIn());
      rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, to, wide);
      return success();
    }
    if (!getElementTypeOrSelf(from).isBF16())
      // The conversion from f16 to f32 is a single instruction and is not expanded.
      return failure();
    Type i16 = withElement(from, rewriter.getI16Type()),
         i32 = withElement(from, rewriter.getI32Type());
    Value bits = arith::BitcastOp::create(rewriter, loc, i16, op.getIn());
    bits = arith::ExtUIOp::create(rewriter, loc, i32, bits);
    bits = arith::ShLIOp::create(rewriter, loc, bits, splatInt(rewriter, loc, i32, 16));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, to, bits);
    return success();
  }
};

struct ExpandTruncF : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!isHalf(to))
      return failure();
    if (getElementTypeOrSelf(from).isF64()) {
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, to, roundToOdd(rewriter, op));
      return success();
    }
    if (!getElementTypeOrSelf(from).isF32() || !getElementTypeOrSelf(to).isBF16())
      return failure();
    Location loc = op.getLoc();
    Type i16 = withElement(from, rewriter.getI16Type()),
         i32 = withElement(from, rewriter.getI32Type());
    auto constant = [&](int64_t v) { return splatInt(rewriter, loc, i32, v); };
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, op.getIn());
    // Rounds to nearest even by an addition to the bits: adds 0x7fff, or 0x8000 if the lowest bit
    // that is kept is set.
    Value odd = arith::ShRUIOp::create(rewriter, loc, bits, constant(16));
    odd = arith::AndIOp::create(rewriter, loc, odd, constant(1));
    Value rounded = arith::AddIOp::create(rewriter, loc, bits, constant(0x7fff));
    rounded = arith::AddIOp::create(rewriter, loc, rounded, odd);
    Value quiet = arith::OrIOp::create(rewriter, loc, bits, constant(0x400000));
    Value isNan =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
    rounded = arith::SelectOp::create(rewriter, loc, isNan, quiet, rounded);
    rounded = arith::ShRUIOp::create(rewriter, loc, rounded, constant(16));
    rounded = arith::TruncIOp::create(rewriter, loc, i16, rounded);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, to, rounded);
    return success();
  }

  /// Converts f64 to f32 and rounds to odd: if the conversion is inexact, truncates the number and
  /// sets the last bit.
  static Value roundToOdd(PatternRewriter &rewriter, arith::TruncFOp op) {
    Location loc = op.getLoc();
    Type wide = op.getIn().getType(), single = withElement(wide, rewriter.getF32Type());
    Type i32 = withElement(wide, rewriter.getI32Type());
    Value x = op.getIn();
    Value near = arith::TruncFOp::create(rewriter, loc, single, x);
    Value back = arith::ExtFOp::create(rewriter, loc, wide, near);
    // If the conversion rounded away from zero, subtracts 1 from the bits. The result is then
    // rounded towards zero.
    Value beyond = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGT,
                                         math::AbsFOp::create(rewriter, loc, back),
                                         math::AbsFOp::create(rewriter, loc, x));
    Value inexact = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::ONE, back, x);
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, near);
    Value step = arith::SubIOp::create(rewriter, loc, bits, splatInt(rewriter, loc, i32, 1));
    bits = arith::SelectOp::create(rewriter, loc, beyond, step, bits);
    Value odd = arith::OrIOp::create(rewriter, loc, bits, splatInt(rewriter, loc, i32, 1));
    bits = arith::SelectOp::create(rewriter, loc, inexact, odd, bits);
    return arith::BitcastOp::create(rewriter, loc, single, bits);
  }
};

/// Expands max(a, b) as follows, and min(a, b) with < instead of >. The result is a if a is NaN,
/// and otherwise a > b ? a : b, which is b if b is NaN. The expansion takes three instructions.
/// llvm.maximum takes five, because it orders -0 before +0.
template <typename Op, arith::CmpFPredicate Predicate>
struct ExpandExtremum : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (isHalf(op.getType()))
      return failure();
    Location loc = op.getLoc();
    Value a = op.getLhs(), b = op.getRhs();
    Value better = arith::CmpFOp::create(rewriter, loc, Predicate, a, b);
    Value chosen = arith::SelectOp::create(rewriter, loc, better, a, b);
    Value isNan = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, a, a);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isNan, a, chosen);
    return success();
  }
};
} // namespace

void fsdp::populateLegaliseFloatsPatterns(RewritePatternSet &patterns) {
  patterns.add<ComputeInSingle, ExpandExtF, ExpandTruncF,
               ExpandExtremum<arith::MaximumFOp, arith::CmpFPredicate::OGT>,
               ExpandExtremum<arith::MinimumFOp, arith::CmpFPredicate::OLT>>(patterns.getContext());
}

static Type asBits(Type type) {
  auto i16 = IntegerType::get(type.getContext(), 16);
  if (type.isBF16())
    return i16;
  if (auto shaped = dyn_cast<ShapedType>(type); shaped && shaped.getElementType().isBF16())
    return shaped.clone(i16);
  return type;
}

static Attribute asBits(Attribute attr) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attr); number && number.getType().isBF16())
    return IntegerAttr::get(asBits(number.getType()), number.getValue().bitcastToAPInt());
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(attr);
      dense && dense.getElementType().isBF16())
    return dense.bitcast(IntegerType::get(attr.getContext(), 16));
  return attr;
}

/// Inserts bitcasts before and after an op that needs bf16. Extends `kept` by the values whose type
/// remains bf16.
static void wrapInstruction(Operation *op, llvm::SmallPtrSetImpl<void *> &kept) {
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (asBits(type) == type)
      continue;
    Value cast = arith::BitcastOp::create(b, op->getLoc(), type, operand.get());
    kept.insert(cast.getAsOpaquePointer());
    operand.set(cast);
  }
  b.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    Type type = result.getType();
    if (asBits(type) == type)
      continue;
    kept.insert(result.getAsOpaquePointer());
    auto cast = arith::BitcastOp::create(b, op->getLoc(), type, result);
    result.replaceAllUsesExcept(cast, cast);
  }
}

void fsdp::storeBf16AsBits(ModuleOp module) {
  llvm::SmallPtrSet<void *, 8> kept;
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (isa_and_nonnull<x86vector::X86VectorDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>(
            op->getDialect()))
      wrapInstruction(op, kept);
  SmallVector<Operation *> casts;
  module.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (!kept.contains(result.getAsOpaquePointer()))
        result.setType(asBits(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(asBits(argument.getType()));
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      constant.setValueAttr(cast<TypedAttr>(asBits(constant.getValue())));
    } else if (auto global = dyn_cast<memref::GlobalOp>(op)) {
      global.setType(cast<MemRefType>(asBits(Type(global.getType()))));
      if (Attribute value = global.getInitialValueAttr())
        global.setInitialValueAttr(asBits(value));
    } else if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal()) {
      function.setType(FunctionType::get(op->getContext(), function.front().getArgumentTypes(),
                                         function.getResultTypes()));
    } else if (isa<arith::BitcastOp>(op)) {
      casts.push_back(op);
    }
  });
  for (Operation *op : casts)
    if (op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
}
