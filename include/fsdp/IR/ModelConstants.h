//===- ModelConstants.h - Constants of a model ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The record that Import leaves of tensors of floats that nothing trains.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_MODELCONSTANTS_H
#define FSDP_IR_MODELCONSTANTS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// Array of names on the module: tensors of floats that stay constants.
inline constexpr llvm::StringLiteral constantsAttr = "fsdp.constants";

} // namespace mlir::fsdp

#endif // FSDP_IR_MODELCONSTANTS_H
