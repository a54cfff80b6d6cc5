//===- Kernels.cpp - Storage types of bindings ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Kernels.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

Type fsdp::getStorageType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isIndex())
    return IntegerType::get(element.getContext(), 64);
  return element;
}

bool fsdp::isStoredInteger(Type element) {
  return element.isSignlessInteger() &&
         llvm::is_contained({1, 8, 16, 32, 64}, element.getIntOrFloatBitWidth());
}

bool fsdp::isStoredElement(Type element) {
  return element.isF64() || element.isF32() || element.isF16() || element.isBF16() ||
         isStoredInteger(element);
}

bool fsdp::isComputedElement(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return element.isIndex() || isStoredElement(element) || (integer && integer.getWidth() <= 64);
}

int64_t fsdp::getStorageBytes(ShapedType type) {
  int64_t bits = getStorageType(type.getElementType()).getIntOrFloatBitWidth();
  return type.getNumElements() * llvm::divideCeil(bits, 8);
}
