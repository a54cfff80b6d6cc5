//===- WhatIf.h - The same step otherwise -----------------------*- C++ -*-===//
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

/// Plans the step once as `arguments` say and once more for each of `questions`
/// ("mesh=shard=64,param-dtype=bf16"), without code, and prints a table of memory, traffic and
/// estimated time. Each plan is a process of this program, so that one that cannot be made says why
/// in its row. Returns the exit code: 2 where a question cannot be read, 1 where a plan failed.
int answerWhatIf(llvm::ArrayRef<std::string> arguments, llvm::StringRef input,
                 llvm::ArrayRef<std::string> questions);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_WHATIF_H
