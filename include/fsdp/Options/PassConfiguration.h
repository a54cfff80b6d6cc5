//===- PassConfiguration.h - Passes take options by name --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_PASSCONFIGURATION_H
#define FSDP_OPTIONS_PASSCONFIGURATION_H

#include "fsdp/Options/OptionTable.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;
namespace fsdp {

/// Returns the value of an option that a pass holds as text; an error at `loc` where it is none.
template <typename T>
FailureOr<T> readOption(Location loc, llvm::StringRef name, llvm::StringRef text) {
  std::string expected;
  if (std::optional<T> value = parseValue<T>(text, expected))
    return *value;
  return emitError(loc) << name << ": " << expected << ", found '" << text << "'";
}

/// An option of a pass that follows from others: its name and value.
using PassSetting = std::pair<llvm::StringRef, std::string>;

/// Returns `pass` with each of its options that has the name of a row of Options.def set to that
/// row's value; `more` are options that have no row, or another value.
std::unique_ptr<Pass> configure(std::unique_ptr<Pass> pass, const StepOptions &options,
                                llvm::ArrayRef<PassSetting> more = {});

/// Makes a pipeline known to fsdp-opt as --NAME="option=value ...", with the options that `stages`
/// read; `check` says what is wrong with them.
void registerStepPipeline(llvm::StringRef name, llvm::StringRef description, unsigned stages,
                          void (*build)(OpPassManager &, const StepOptions &),
                          std::optional<std::string> (*check)(const StepOptions &));

} // namespace fsdp
} // namespace mlir

#endif // FSDP_OPTIONS_PASSCONFIGURATION_H
