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

/// One argument of a checked function.
struct Argument {
  std::string name;
  RankedTensorType type;
  bool isChecked = false;
  double low = -1, high = 1;     ///< range of floats
  int64_t limit = 2;             ///< integers are in [0, limit)
  std::optional<int64_t> ignore; ///< value of some elements, such as a padding id
};

/// One function: its loss in f64, and its gradients in its own types.
struct Function {
  std::string name;
  std::vector<Argument> arguments;
  RankedTensorType loss;               ///< type of the loss that the gradient function returns
  std::vector<unsigned> gradients;     ///< index of the argument of each gradient
  std::vector<RankedTensorType> types; ///< types of the returned gradients
  unsigned precision = 53;             ///< bits of the function's narrowest float
  unsigned numOps = 0; ///< number of structured ops, which bounds successive roundings
  std::vector<RankedTensorType>
      held; ///< types of values that differences hold constant: the last arguments of the forward
};

struct Subject {
  std::vector<Function> functions;
  OwningOpRef<ModuleOp> forward;  ///< widened to f64
  OwningOpRef<ModuleOp> gradient; ///< differentiated
};

/// Fails with an error if the tensors of a function have more than 2^24 elements together, because
/// every evaluation keeps all tensors in memory, and each direction takes several evaluations.
LogicalResult checkSizes(ModuleOp module);

/// Prepares the functions: inlines calls, reduces each function to one loss (tensors get random
/// weights), and differentiates. `widen` makes all floats f64 first. If `sabotage` is n > 0,
/// changes the result of op n of each backward by the factor 1.0001.
FailureOr<Subject> prepare(OwningOpRef<ModuleOp> module, StringRef onlyFunction, bool widen,
                           unsigned sabotage);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_SUBJECT_H
