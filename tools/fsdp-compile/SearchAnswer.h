//===- SearchAnswer.h - The table of --search -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_SEARCHANSWER_H
#define FSDP_TOOLS_COMPILE_SEARCHANSWER_H

#include "CommandLine.h"

namespace mlir::fsdp {

/// Searches for the fastest plan. Prints a table of the plans, ranked by estimated time, and the
/// plans that do not fit. Writes the options of the best plan to the file of -o. Returns the exit
/// code: 0 on success, 2 if the model or an option is invalid, 1 if no plan fits.
int answerSearch(const CommandLine &line);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_SEARCHANSWER_H
