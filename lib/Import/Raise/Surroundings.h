//===- Surroundings.h - Products around a value ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_SURROUNDINGS_H
#define FSDP_LIB_IMPORT_SURROUNDINGS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {

/// Returns whether `op` only changes the shape of its input.
bool isView(Operation *op);
/// Returns whether `op` is an elementwise op. Formulas consist of elementwise ops and views.
bool isElementwise(Operation *op);
/// Returns whether `op` is a contraction that accumulates into zeros.
bool isMatrixProduct(Operation *op);
/// Returns whether `op` sums products of elements of two tensors, such as matrices or vectors.
bool isSumOfProducts(Operation *op);

/// The products that read a softmax's result (the weights), and the products before its input.
struct Surroundings {
  SetVector<Operation *> products; // products that read the weights
  Operation *other = nullptr;      // an op that reads the weights but is not a product
  SetVector<Operation *> sources;  // products that the softmax's input depends on
};

/// Finds the products that read `weights`, and the products that `scores` depends on. Between
/// `weights` and the products, there may be views, elementwise ops and large slices. Between the
/// products and `scores`, there may be views, elementwise ops and concatenations. The function
/// `accepts` returns whether an op is a product.
Surroundings findSurroundings(Value weights, Value scores,
                              llvm::function_ref<bool(Operation *)> accepts);

/// Returns whether `value` depends on a product, and another product depends on `value`. Between
/// `value` and these products, there may only be ops that findSurroundings() passes through.
bool isBetweenProducts(Value value);

/// Returns whether `value` depends on `target` through elementwise ops, views and slices alone.
bool leadsTo(Value value, Operation *target);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_SURROUNDINGS_H
