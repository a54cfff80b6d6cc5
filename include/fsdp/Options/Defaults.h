//===- Defaults.h - Defaults of options by name -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_DEFAULTS_H
#define FSDP_OPTIONS_DEFAULTS_H

#include "fsdp/Options/OptionTypes.h"

namespace mlir::fsdp {

/// Returns the default of the option `name` of Options.def as text.
std::string getDefaultText(llvm::StringRef name);

/// Returns the default of the option `name` of Options.def as a value of type T.
template <typename T>
T getDefault(llvm::StringRef name) {
  T value{};
  (void)readValue(getDefaultText(name), value);
  return value;
}

} // namespace mlir::fsdp

#endif // FSDP_OPTIONS_DEFAULTS_H
