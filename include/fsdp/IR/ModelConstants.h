//===- ModelConstants.h - Constants of a model ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the module attribute in which Import lists the float tensors that are not trained.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_MODELCONSTANTS_H
#define FSDP_IR_MODELCONSTANTS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// Module attribute. It contains an array with the names of the float tensors that remain
/// constants.
inline constexpr llvm::StringLiteral constantsAttr = "fsdp.constants";

} // namespace mlir::fsdp

#endif // FSDP_IR_MODELCONSTANTS_H
