//===- ToolMain.h - Common parts of command-line tools ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All tools have these exit codes: 0 for success, 1 for a failure during the work, such as a full
// disk, 2 for bad usage or bad input. A path that cannot be opened for writing is bad usage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_TOOLMAIN_H
#define FSDP_TOOLS_TOOLMAIN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ToolOutputFile.h"
#include <memory>
#include <optional>
#include <string>

namespace mlir::fsdp {

/// Installs error handlers. If the process cannot write its output, the handlers print "NAME:
/// error: ..." and exit with code 1. `name` must remain valid until the process ends.
void startTool(const char *name);

/// If the arguments ask for help or the version, prints `text` or the version and returns true.
bool printedHelp(int argc, char **argv, const char *name, llvm::StringRef text);

/// Sets the text that llvm::cl prints for --version, such as "NAME 0.1.0 (LLVM/MLIR 22.1.8)".
void setVersion(const char *name);

/// Returns the reason why `path` cannot be opened for writing or why writing would overwrite
/// `input`, or nothing. Leaves no new file. Call it before the work starts. "-" is stdout.
std::optional<std::string> whyNotWritable(llvm::StringRef path, llvm::StringRef input = "");

/// Creates or truncates `path` for writing; "-" is stdout. Waits at most 10 seconds for a process
/// that reads a named pipe. Returns null and sets `why` on failure.
std::unique_ptr<llvm::ToolOutputFile> openOutput(llvm::StringRef path, std::string &why);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_TOOLMAIN_H
