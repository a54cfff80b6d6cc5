//===- HloOps.cpp - Access to ops of StableHLO ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads integer attributes in all forms that different releases of StableHLO have written:
// `array<i64: 1, 2>`, `dense<[1, 2]> : tensor<2xi64>`, `[1, 2]` and single integers.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloOps.h"
#include "fsdp/IR/DiagnosticText.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

RankedTensorType fsdp::tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

SmallVector<int64_t> fsdp::getInts(Operation *op, StringRef name, ArrayRef<int64_t> missing,
                                   DictionaryAttr holder) {
  Attribute attr = holder ? holder.get(name) : op->getAttr(name);
  SmallVector<int64_t> values;
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(attr))
    return SmallVector<int64_t>(array.asArrayRef());
  if (auto flags = dyn_cast_or_null<DenseBoolArrayAttr>(attr))
    return SmallVector<int64_t>(flags.asArrayRef());
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attr))
    return {integer.getValue().getSExtValue()};
  if (auto dense = dyn_cast_or_null<DenseIntElementsAttr>(attr)) {
    for (const APInt &value : dense.getValues<APInt>())
      values.push_back(value.getSExtValue());
    return values;
  }
  auto list = dyn_cast_or_null<ArrayAttr>(attr);
  if (!list)
    return SmallVector<int64_t>(missing);
  for (Attribute element : list)
    if (auto integer = dyn_cast<IntegerAttr>(element))
      values.push_back(integer.getValue().getSExtValue());
    // The attribute is a list of lists, such as the padding [[0, 1], [2, 3]].
    else if (auto pair = dyn_cast<DenseI64ArrayAttr>(element))
      llvm::append_range(values, pair.asArrayRef());
  return values;
}

StringRef fsdp::getWord(Operation *op, StringRef name) {
  Attribute attr = op->getAttr(name);
  if (auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(attr))
    return symbol.getValue();
  auto text = dyn_cast_or_null<StringAttr>(attr);
  return text ? text.getValue() : StringRef();
}

LogicalResult fsdp::checkDims(Operation *op, StringRef name, ArrayRef<int64_t> dims, int64_t rank) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || llvm::is_contained(dims.take_front(i), dim))
      return op->emitError("expected '") << name << "' to be distinct dimensions in [0, " << rank
                                         << "), found [" << dims << "]";
  return success();
}

LogicalResult fsdp::checkCount(Operation *op, StringRef name, size_t found, size_t expected) {
  if (found == expected)
    return success();
  return op->emitError("expected ") << expected << " of '" << name << "', found " << found;
}

LogicalResult fsdp::checkShape(Operation *op, ArrayRef<int64_t> expected) {
  ArrayRef<int64_t> found = tensorOf(op->getResult(0)).getShape();
  if (found == expected)
    return success();
  return op->emitError("expected a result of shape [") << expected << "], found [" << found << "]";
}

Value fsdp::getScalar(OpBuilder &b, Location loc, Value value) {
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(b, loc, cast<TypedAttr>(constant.getSplatValue<Attribute>()));
  return tensor::ExtractOp::create(b, loc, value, ValueRange());
}

Value fsdp::buildFilled(OpBuilder &b, Location loc, RankedTensorType type, Value scalar) {
  TypedAttr constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, Attribute(constant)));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

SmallVector<OpFoldResult> fsdp::sliceIndices(OpBuilder &b, ArrayRef<int64_t> values) {
  return getAsIndexOpFoldResult(b.getContext(), values);
}

Value fsdp::buildByIndex(OpBuilder &b, Location loc, RankedTensorType type,
                         function_ref<Value(OpBuilder &, Location)> element) {
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(), empty,
                                           b.getMultiDimIdentityMap(type.getRank()), loops,
                                           [&](OpBuilder &b, Location loc, ValueRange) {
                                             linalg::YieldOp::create(b, loc, element(b, loc));
                                           });
  return generic.getResult(0);
}

/// Returns a text that describes the regions of an op. The text is part of the error that an op
/// does not have one block with the expected arguments.
static std::string describeRegions(Operation *op) {
  if (op->getNumRegions() != 1)
    return op->getNumRegions() ? describeCount(op->getNumRegions(), "region", "regions")
                               : "no region";
  Region &region = op->getRegion(0);
  if (!region.hasOneBlock())
    return describeCount(region.getBlocks().size(), "block", "blocks");
  return describeCount(region.getNumArguments(), "argument", "arguments");
}

static LogicalResult refuseInner(Operation *op, Operation &inner) {
  return inner.emitError("'") << inner.getName() << "' is not supported in the region of '"
                              << op->getName() << "', which combines scalars";
}

HloResult fsdp::lowerBody(OpBuilder &b, Operation *op, ValueRange arguments) {
  Region *region = op->getNumRegions() == 1 ? &op->getRegion(0) : nullptr;
  if (!region || !region->hasOneBlock() || region->getNumArguments() != arguments.size())
    return op->emitError("expected one region of one block with ")
           << describeCount(arguments.size(), "argument", "arguments") << ", found "
           << describeRegions(op);
  IRMapping map;
  for (auto [argument, value] : llvm::zip(region->getArguments(), arguments)) {
    if (argument.getType() != RankedTensorType::get({}, value.getType()))
      return op->emitError("expected arguments of the region of type tensor<")
             << value.getType() << ">, found " << argument.getType();
    map.map(argument, value);
  }
  SmallVector<Value> results;
  for (Operation &inner : region->front()) {
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands()) {
      // The values of the region become scalars, so a tensor of rank 0 from outside the region is
      // also read as a scalar.
      if (!map.contains(operand) && tensorOf(operand).getRank() == 0)
        map.map(operand, getScalar(b, inner.getLoc(), operand));
      operands.push_back(map.lookupOrDefault(operand));
    }
    if (inner.getName().getStringRef() == "stablehlo.return")
      return operands;
    auto constant = dyn_cast_or_null<DenseElementsAttr>(inner.getAttr("value"));
    if (inner.getName().getStringRef() == "stablehlo.constant" && constant && constant.isSplat()) {
      map.map(inner.getResult(0),
              arith::ConstantOp::create(b, inner.getLoc(),
                                        cast<TypedAttr>(constant.getSplatValue<Attribute>())));
      continue;
    }
    if (inner.getNumResults() != 1 || !isa<RankedTensorType>(inner.getResult(0).getType()))
      return refuseInner(op, inner);
    FailureOr<Value> value =
        lowerElementwise(b, &inner, operands, tensorOf(inner.getResult(0)).getElementType());
    if (failed(value))
      return failure();
    if (!*value)
      return refuseInner(op, inner);
    map.map(inner.getResult(0), *value);
  }
  return op->emitError("expected a region that ends in 'stablehlo.return'");
}
