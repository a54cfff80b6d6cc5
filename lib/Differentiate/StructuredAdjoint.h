//===- StructuredAdjoint.h - The adjoint of one linalg.generic --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_STRUCTUREDADJOINT_H
#define FSDP_LIB_DIFFERENTIATE_STRUCTUREDADJOINT_H

#include "Adjoints.h"
#include "ResultForm.h"
#include "ScalarAdjoint.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {

class StructuredAdjoint {
public:
  /// `results` are the results of `op`, or of the named op of which `op` is a copy.
  StructuredAdjoint(linalg::GenericOp op, ValueRange results, Cotangents &cotangents)
      : op(op), results(results), cotangents(cotangents), b(cotangents.b), loc(op.getLoc()),
        body(*op.getBody()) {}

  LogicalResult run();

private:
  /// A value outside the body that the adjoint may read.
  struct Input {
    enum Role { Primal, Cotangent, Result, Previous, Extent } role;
    Value source; ///< the value outside the body
    AffineMap map;
    Value primal;       ///< if the role is Primal, the value of the body that represents `source`
    unsigned index = 0; ///< if the role is Cotangent or Result, the number of the result
  };
  /// A detached block: a clone of the slice of the body, followed by the reverse sweep.
  struct Sweep {
    Sweep(MLIRContext *context, Location loc) : b(context), reverse(b, loc) {
      b.setInsertionPointToEnd(&block);
    }
    Value gradientOf(Value primal) { return reverse.gradient(mapping.lookupOrDefault(primal)); }

    Block block;
    OpBuilder b;
    ScalarAdjoint reverse;
    IRMapping mapping;
    SmallVector<Operation *> cloned;
    /// Cotangent and value of each result that the sweep reads. The key is the number of the
    /// result.
    DenseMap<unsigned, Value> g, y;
  };
  /// The tensor to which a value of the sweep is written. `map` maps the loops to an element of the
  /// tensor.
  struct Target {
    AffineMap map;
    RankedTensorType type;
    bool once;      ///< whether each element of the tensor is written exactly once
    Value previous; ///< previous cotangent to which the result is added, or null
  };

  // StructuredAdjoint.cpp
  LogicalResult collect();
  void collectInputs();
  void collectActive();
  Input &cotangentOf(const ResultForm &form);
  void shareTies(const ResultForm &form);
  void differentiateInit(const ResultForm &form);
  LogicalResult differentiateInputs();
  LogicalResult differentiateOperand(Value operand, AffineMap map, Value primal,
                                     Value *whole = nullptr);
  bool passThrough(Value operand, AffineMap map, Sweep &sweep, Value gradient);
  void reduceFrom(const Input &from, Value gradient, const Input &to);

  // AdjointBody.cpp
  void clonePrimal(Sweep &sweep);
  void seedTerms(Sweep &sweep);
  LogicalResult sweepBody(Sweep &sweep);
  Value build(Sweep &sweep, const Target &target, Value value);
  Value finish(Block &block, SmallVector<Input> ins, AffineMap outMap, Value out);
  void addMissingExtents(Block &block, SmallVector<Input> &ins, AffineMap outMap);

  // ScatterAdjoint.cpp
  LogicalResult scatter(tensor::ExtractOp extract);
  unsigned countColumns(tensor::ExtractOp extract);
  bool isConstantOver(ValueRange values, unsigned loop);
  void sliceIndices(ValueRange indices, llvm::SetVector<Value> &values);
  Value buildRowIds(tensor::ExtractOp extract, ArrayRef<unsigned> rowLoops, unsigned numRowIndices);

  bool hasReduction() { return op.getNumReductionLoops() != 0; }

  linalg::GenericOp op;
  ValueRange results;
  Cotangents &cotangents;
  OpBuilder &b;
  Location loc;
  Block &body;
  SmallVector<ResultForm> forms; ///< forms of the results that have a cotangent
  SmallVector<Input> inputs;
  llvm::SetVector<Operation *> slice; ///< ops of the body on which the results of `forms` depend
  /// Values in the body that represent active values outside it.
  llvm::SetVector<Value> active;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_STRUCTUREDADJOINT_H
