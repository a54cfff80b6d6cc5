//===- Subject.h - What is checked, made ready -------------------*- C++ -*-===//
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
  double low = -1, high = 1;     ///< floats
  int64_t limit = 2;             ///< integers are in [0, limit)
  std::optional<int64_t> ignore; ///< and now and then this
};

/// One function: its loss in f64, and its gradients in its own types.
struct Function {
  std::string name;
  std::vector<Argument> arguments;
  RankedTensorType loss;               ///< as the gradient function returns it
  std::vector<unsigned> gradients;     ///< argument per gradient that is returned
  std::vector<RankedTensorType> types; ///< of those gradients
  unsigned precision = 53;             ///< bits of the narrowest float in it
  unsigned numOps = 0;                 ///< structured ops: roundings one after another
  std::vector<RankedTensorType>
      held; ///< values that differences hold constant, the forward's last arguments
};

struct Subject {
  std::vector<Function> functions;
  OwningOpRef<ModuleOp> forward;  ///< widened to f64
  OwningOpRef<ModuleOp> gradient; ///< differentiated
};

/// Refuses functions whose tensors have more than 2^24 elements together: every evaluation
/// keeps all of them in memory, and there are some for each direction.
LogicalResult checkSizes(ModuleOp module);

/// Inlines, reduces each function to one loss (tensors are weighed at random), and
/// differentiates. `widen`: makes all floats f64 before. `sabotage` n > 0 spoils the
/// n-th op of each backward by 1e-4.
FailureOr<Subject> prepare(OwningOpRef<ModuleOp> module, StringRef onlyFunction, bool widen,
                           unsigned sabotage);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_SUBJECT_H
