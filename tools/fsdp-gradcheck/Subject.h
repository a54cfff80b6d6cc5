//===- Subject.h - Functions to be checked ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_SUBJECT_H
#define FSDP_GRADCHECK_SUBJECT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp::gradcheck {

struct Argument {
  std::string name;
  RankedTensorType type;
  bool isChecked = false;
  double low = -1, high = 1;     ///< range of floats
  int64_t limit = 2;             ///< random integers are in [0, limit)
  std::optional<int64_t> ignore; ///< value of some of the elements, such as a padding id
};

/// A function to check: the types of its arguments, of its loss and of its gradients.
struct Function {
  std::string name;
  std::vector<Argument> arguments;
  RankedTensorType loss;               ///< type of the loss in the gradient function
  std::vector<unsigned> gradients;     ///< for each gradient: index of its argument
  std::vector<RankedTensorType> types; ///< types of the returned gradients
  unsigned precision = 53;             ///< number of significand bits of the narrowest float
  unsigned numOps = 0;                 ///< number of structured ops, each of which may round
  std::vector<RankedTensorType>
      held; ///< types of the stopped values, which are the last arguments of the forward function
};

struct Subject {
  std::vector<Function> functions;
  OwningOpRef<ModuleOp> forward;  ///< widened to f64
  OwningOpRef<ModuleOp> gradient; ///< differentiated
};

/// Reports an error if the tensors of a function together have more than 2^24 elements. The limit
/// exists because all tensors are in memory at the same time and each direction needs several
/// evaluations.
LogicalResult checkSizes(ModuleOp module);

/// Prepares the functions: inlines calls, replaces the results of each function by a single loss
/// with random weights, and differentiates the loss. If `widen` is true, first changes all float
/// types to f64. If `sabotage` is a number n above 0, multiplies the result of op number n in each
/// backward computation by 1.0001.
FailureOr<Subject> prepare(OwningOpRef<ModuleOp> module, StringRef onlyFunction, bool widen,
                           unsigned sabotage);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_SUBJECT_H
