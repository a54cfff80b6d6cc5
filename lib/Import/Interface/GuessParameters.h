//===- GuessParameters.h - Parameters of unnamed models ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What fsdp-lift-parameters does where nothing names a parameter.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_GUESSPARAMETERS_H
#define FSDP_LIB_IMPORT_GUESSPARAMETERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Returns true for tensors of floats.
bool isFloatTensor(Type type);

/// Returns the arguments that a guess trains: all tensors of floats before the first argument of
/// integers, without those that are named as batch inputs. Empty where no argument is of integers.
/// Emits an error and fails when one of them may be a batch input, because its leading dimension is
/// that of an input of integers.
FailureOr<SmallVector<BlockArgument>> guessParameters(func::FuncOp func);

/// Returns true if all uses of a constant lead into sin and cos: a table of rotary frequencies.
bool isFrequencyTable(Operation *constant);

/// The outcome of a guess, as "w (8x4)".
struct ParameterGuess {
  std::vector<std::string> trained, untrained;
};

/// Warns that parameters were guessed: lists all that are trained and the first few that are not.
void warnOfGuess(func::FuncOp func, const ParameterGuess &guess);

/// Returns "8x4", or "a scalar".
std::string describeShape(Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_GUESSPARAMETERS_H
