//===- BufferContents.cpp - Contents of buffers from --buffer ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Interface/BufferContents.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns `value` as a scalar of `type`. Returns -inf instead if `negativeInfinity` is set and
/// `type` is a float type.
static TypedAttr scalar(Type type, int64_t value, bool negativeInfinity = false) {
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    if (negativeInfinity)
      return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
    return FloatAttr::get(type, static_cast<double>(value));
  }
  return IntegerAttr::get(type, value);
}

Value fsdp::buildCausal(OpBuilder &b, Location loc, RankedTensorType type, CausalForm form) {
  unsigned rank = type.getRank();
  Type element = type.getElementType();
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange) {
    Value row = linalg::IndexOp::create(b, loc, rank - 2),
          column = linalg::IndexOp::create(b, loc, rank - 1);
    auto predicate =
        form == CausalForm::Masked ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::sle;
    Value value = arith::CmpIOp::create(b, loc, predicate, column, row);
    if (!element.isInteger(1)) {
      bool additive = form == CausalForm::Additive;
      Value yes = arith::ConstantOp::create(b, loc, scalar(element, additive ? 0 : 1));
      Value no = arith::ConstantOp::create(b, loc, scalar(element, 0, additive));
      value = arith::SelectOp::create(b, loc, value, yes, no);
    }
    linalg::YieldOp::create(b, loc, value);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(empty.getType()), ValueRange(),
                                   ValueRange(empty), maps, iterators, body)
      .getResult(0);
}

Value fsdp::buildSplat(OpBuilder &b, Location loc, RankedTensorType type, int64_t value) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, Attribute(scalar(type.getElementType(), value))));
}

/// Returns numpy's name of an element type, such as `<f4`. Returns an empty name if numpy has none.
static StringRef numpyName(Type type) {
  if (type.isF64())
    return "<f8";
  if (type.isF32())
    return "<f4";
  if (type.isF16())
    return "<f2";
  if (type.isInteger(64))
    return "<i8";
  if (type.isInteger(32))
    return "<i4";
  if (type.isInteger(16))
    return "<i2";
  if (type.isInteger(8))
    return "|i1";
  if (type.isInteger(1))
    return "|b1";
  return "";
}

/// Verifies the header of an .npy file and returns the bytes after it.
static FailureOr<StringRef> stripNumpyHeader(StringRef bytes, RankedTensorType type, StringRef path,
                                             Location loc) {
  auto malformed = [&]() {
    return emitError(loc) << "--buffer: '" << path << "' is not a well-formed .npy file";
  };
  if (bytes.size() < 10)
    return malformed();
  bool wide = bytes[6] >= 2;
  size_t start = wide ? 12 : 10;
  if (bytes.size() < start)
    return malformed();
  size_t length = wide ? llvm::support::endian::read32le(bytes.data() + 8)
                       : llvm::support::endian::read16le(bytes.data() + 8);
  if (length > bytes.size() - start)
    return malformed();
  StringRef header = bytes.substr(start, length);
  std::string shape = "(";
  for (auto [i, size] : llvm::enumerate(type.getShape()))
    shape += (i ? ", " : "") + std::to_string(size);
  shape += type.getRank() == 1 ? ",)" : ")";
  StringRef name = numpyName(type.getElementType());
  if (header.contains("'fortran_order': True") || !header.contains(shape) || name.empty() ||
      !header.contains(("'" + name + "'").str())) {
    emitError(loc) << "--buffer: '" << path << "' expected a C-ordered array of shape " << shape
                   << " and dtype '" << name << "' for " << type << ", found " << header.trim();
    return failure();
  }
  return bytes.drop_front(start + length);
}

FailureOr<Value> fsdp::buildFromFile(OpBuilder &b, Location loc, RankedTensorType type,
                                     StringRef path) {
  auto buffer =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitError(loc) << "--buffer: cannot read '" << path << "' ("
                          << buffer.getError().message()
                          << "); contents are causal, zeros, ones, keep or a file";
  FailureOr<StringRef> bytes = (*buffer)->getBuffer();
  if (bytes->starts_with("\x93NUMPY"))
    bytes = stripNumpyHeader(*bytes, type, path, loc);
  if (failed(bytes))
    return failure();
  Type element = type.getElementType();
  size_t width = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  if (bytes->size() != type.getNumElements() * width)
    return emitError(loc) << "--buffer: '" << path << "' expected " << type.getNumElements() * width
                          << " bytes for " << type << ", found " << bytes->size();
  DenseElementsAttr value;
  // In the file, an i1 element is one byte.
  if (element.isInteger(1)) {
    SmallVector<bool> bits(llvm::map_range(*bytes, [](char c) { return c != 0; }));
    value = DenseElementsAttr::get(type, ArrayRef<bool>(bits));
  } else {
    value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes->data(), bytes->size()));
  }
  return arith::ConstantOp::create(b, loc, value).getResult();
}
