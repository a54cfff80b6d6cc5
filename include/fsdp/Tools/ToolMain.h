//===- ToolMain.h - What every command-line tool does -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Exit codes of all tools: 0 fine, 1 the work failed, 2 bad usage or input. A path
// that cannot be opened for writing is bad usage; a disk that is full is a failure.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_TOOLMAIN_H
#define FSDP_TOOLS_TOOLMAIN_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

/// Output that cannot be written ends the process with "NAME: error: ..." and exit code 1, wherever
/// LLVM notices. `name` has to live as long as the process.
void startTool(const char *name);

/// Prints `text`, or what --version says, and returns true when the arguments ask for it.
bool printedHelp(int argc, char **argv, const char *name, llvm::StringRef text);

/// "NAME 0.1.0 (LLVM/MLIR 22.1.8)" as the answer to --version of llvm::cl.
void setVersion(const char *name);

/// Why a file could not be opened for writing, or would destroy `input`; asked before the work. "-"
/// is stdout. Leaves nothing behind.
std::optional<std::string> whyNotWritable(llvm::StringRef path, llvm::StringRef input = "");

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_TOOLMAIN_H
