//===- ConstantEvaluator.h - Values that no input changes -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_CONSTANTEVALUATOR_H
#define FSDP_LIB_IMPORT_CONSTANTEVALUATOR_H

#include "Lookups/EvaluateScalar.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::fsdp {

/// The elements of a tensor, in row-major order.
struct ConstantTable {
  SmallVector<int64_t> shape;
  std::vector<Scalar> elements;
};

/// A value in the body of an op. `table` contains the value for each point of the loops on which
/// the value depends.
struct ConstantValue {
  SmallVector<int64_t> loops; ///< loops on which the value depends, in ascending order
  ConstantTable table;        ///< value at each point of `loops`
};

/// Computes tensors that depend only on constants. Also computes the values in bodies of ops if
/// these values depend only on constants and loop indices.
class ConstantEvaluator {
public:
  /// Largest number of elements of a tensor, and largest number of points of an op's loops.
  static constexpr int64_t maxElements = 1 << 19, maxPoints = 1 << 22;

  /// Returns the elements of a tensor. Returns null if the tensor depends on an argument or an
  /// unsupported op, or is too large.
  const ConstantTable *get(Value tensor);

  /// Returns the values that `value`, which is in the body of `op`, has in the iterations of `op`.
  /// Returns nothing if one of these values is undefined or cannot be computed.
  std::optional<ConstantValue> get(linalg::LinalgOp op, Value value);

private:
  /// The body of an op as a list of steps. A step reads and writes numbered slots, which contain
  /// scalars.
  struct Program;

  std::optional<ConstantTable> compute(OpResult tensor);
  std::optional<ConstantTable> computeStructured(linalg::LinalgOp op, unsigned result);
  std::optional<ConstantTable> computeSlice(tensor::ExtractSliceOp op);
  std::optional<ConstantTable> computeConcat(tensor::ConcatOp op);
  bool write(Program &program, linalg::LinalgOp op, Value value);
  void run(Program &program, ArrayRef<int64_t> point);

  llvm::DenseMap<Value, std::unique_ptr<ConstantTable>> known;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CONSTANTEVALUATOR_H
