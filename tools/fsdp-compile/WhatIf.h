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

/// Plans the step with `arguments`. Then plans the step once for each of `questions`. A question is
/// a text such as "mesh=shard=64,param-dtype=bf16", which changes options. No code is generated.
/// For each plan, a new process of this program is started. Prints a table of the memory, the
/// traffic and the estimated time of each plan, and the errors of the plans that failed. Returns
/// the exit code: 0 on success, 2 if a question is invalid, 1 if a plan failed.
int answerWhatIf(llvm::ArrayRef<std::string> arguments, llvm::StringRef input,
                 llvm::ArrayRef<std::string> questions);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_WHATIF_H
