//===- GuessParameters.h - Parameters of unnamed models ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Guesses which arguments are parameters. The pass fsdp-lift-parameters calls these functions if
// neither the model nor an option names a parameter.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_GUESSPARAMETERS_H
#define FSDP_LIB_IMPORT_GUESSPARAMETERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

bool isFloatTensor(Type type);

/// Returns the arguments that are probably parameters. These are the float tensors that precede the
/// first argument of any other type, except named batch inputs. Returns no arguments if all
/// arguments are float tensors. If the leading dimensions of a guessed parameter and of an integer
/// input are equal, the parameter may be a batch input. In this case, fails with an error.
FailureOr<SmallVector<BlockArgument>> guessParameters(func::FuncOp func);

/// Returns whether a constant is used only in sin and cos, like rotary frequencies.
bool isFrequencyTable(Operation *constant);

/// Result of a guess. The lists contain descriptions of values, such as "w (8x4)".
struct ParameterGuess {
  std::vector<std::string> trained, untrained;
};

/// Warns that parameters were guessed. Lists all trained values and the first few untrained values.
void warnOfGuess(func::FuncOp func, const ParameterGuess &guess);

/// Returns the shape of a tensor, such as "8x4", or "a scalar".
std::string describeShape(Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_GUESSPARAMETERS_H
