//===- WhatIf.h - Compare alternative plans ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_WHATIF_H
#define FSDP_TOOLS_COMPILE_WHATIF_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Plans the step with `arguments`, and for each of `questions` with changed options, such as
/// "mesh=shard=64,param-dtype=bf16". No code is generated. A new process of this program makes each
/// plan. Prints a table of memory, traffic and estimated time, and the errors of failed plans.
/// Returns the exit code: 0 on success, 2 if a question is invalid, 1 if a plan failed.
int answerWhatIf(llvm::ArrayRef<std::string> arguments, llvm::StringRef input,
                 llvm::ArrayRef<std::string> questions);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_WHATIF_H
