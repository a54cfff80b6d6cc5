//===- ToolMain.h - Common parts of command-line tools ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Exit codes of all tools: 0 success, 1 the work failed, 2 bad usage or input. A path that cannot
// be opened for writing is bad usage; a full disk is a failure.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_TOOLMAIN_H
#define FSDP_TOOLS_TOOLMAIN_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

/// Installs handlers: if output cannot be written, the process prints "NAME: error: ..." and exits
/// with code 1. `name` must live as long as the process.
void startTool(const char *name);

/// Prints `text` or the version if the arguments ask for it. Returns true if it did.
bool printedHelp(int argc, char **argv, const char *name, llvm::StringRef text);

/// Sets the answer of llvm::cl to --version: "NAME 0.1.0 (LLVM/MLIR 22.1.8)".
void setVersion(const char *name);

/// Returns why `path` could not be opened for writing or would overwrite `input`, or nothing. To be
/// asked before the work; leaves no file. "-" is stdout.
std::optional<std::string> whyNotWritable(llvm::StringRef path, llvm::StringRef input = "");

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_TOOLMAIN_H
