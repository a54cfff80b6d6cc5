//===- ToolMain.h - Common parts of command-line tools ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All tools have these exit codes: 0 for success, 1 for a failure during the work, such as a full
// disk, and 2 for bad usage or bad input. If a path cannot be opened for writing, this counts as
// bad usage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_TOOLMAIN_H
#define FSDP_TOOLS_TOOLMAIN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace llvm::cl {
class Option;
}

namespace mlir::fsdp {

/// Installs error handlers. If the process cannot write its output, the handlers print "NAME:
/// error: ..." and exit with code 1. `name` must remain valid until the process ends.
void startTool(const char *name);

/// If an argument asks for help, prints `text` and returns true. If an argument asks for the
/// version, prints the version and returns true.
bool printedHelp(int argc, char **argv, const char *name, llvm::StringRef text);

/// Sets the text that llvm::cl prints for --version, such as "NAME 0.1.0 (LLVM/MLIR 22.1.8)".
void setVersion(const char *name);

/// Returns the folder in which compiled kernels are cached: `given`, or else the folder that the
/// variable FSDP_KERNEL_CACHE names. Returns an empty text if both are missing, or if the command
/// line has an option for which `isOwn` returns false. Such an option belongs to LLVM and may
/// change code, but the keys of the cache do not depend on it. Call this function after the command
/// line was parsed.
std::string chooseKernelCache(const std::optional<std::string> &given,
                              llvm::function_ref<bool(const llvm::cl::Option &option)> isOwn);

/// Returns an error if `arguments` repeat an option of the command line that may be given only
/// once, and otherwise nothing. Call this function after the command line was parsed.
std::optional<std::string> findRepeatedOption(llvm::ArrayRef<char *> arguments);

/// Returns the reason why `path` cannot be opened for writing, or why writing to `path` would
/// overwrite `input`. Returns nothing if the tool may write to `path`. The check leaves no new
/// file. A tool calls this function before it starts its work. The path "-" stands for the standard
/// output.
std::optional<std::string> whyNotWritable(llvm::StringRef path, llvm::StringRef input = "");

/// Writes the bytes of `pieces`, one after the other, to the file `path`. The path "-" stands for
/// the standard output. If `path` is a named pipe, waits at most 10 seconds for a process that
/// reads from it. Returns an empty text on success, and otherwise the reason of the failure. After
/// a failure, a regular file that existed has its old content, and no new file exists.
std::string writeOutput(llvm::StringRef path, llvm::ArrayRef<llvm::ArrayRef<char>> pieces);

/// Writes `text` to the file `path`, as writeOutput() does.
inline std::string writeOutput(llvm::StringRef path, llvm::StringRef text) {
  return writeOutput(path, llvm::ArrayRef(llvm::ArrayRef(text.data(), text.size())));
}

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_TOOLMAIN_H
