//===- PassConfiguration.h - Options of passes by name ----------*- C++ -*-===//
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

/// Parses the text of a pass option. Fails with an error at `loc` if the value is invalid.
template <typename T>
FailureOr<T> readOption(Location loc, llvm::StringRef name, llvm::StringRef text) {
  std::string expected;
  if (std::optional<T> value = parseValue<T>(text, expected))
    return *value;
  return emitError(loc) << name << ": " << expected << ", found '" << text << "'";
}

/// Name and value of a pass option.
using PassSetting = std::pair<llvm::StringRef, std::string>;

/// Sets each option of `pass` that has a row in Options.def to the value in `options`. After that,
/// sets the pass options in `more`. `more` may override values from `options`. Returns `pass`.
std::unique_ptr<Pass> configure(std::unique_ptr<Pass> pass, const StepOptions &options,
                                llvm::ArrayRef<PassSetting> more = {});

/// Registers a pipeline of fsdp-opt. A user calls it by --NAME="option=value ...". The pipeline has
/// those options of Options.def that the stages in the set `stages` read. `check` returns an error
/// if the values of these options are invalid, and else nothing.
void registerStepPipeline(llvm::StringRef name, llvm::StringRef description, unsigned stages,
                          void (*build)(OpPassManager &, const StepOptions &),
                          std::optional<std::string> (*check)(const StepOptions &));

} // namespace fsdp
} // namespace mlir

#endif // FSDP_OPTIONS_PASSCONFIGURATION_H
