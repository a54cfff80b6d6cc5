//===- CommandLine.h - The command line of fsdp-compile ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_COMMANDLINE_H
#define FSDP_TOOLS_COMPILE_COMMANDLINE_H

#include "FileOptions.h"
#include "fsdp/Options/OptionTable.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

/// What the command line asks.
struct CommandLine {
  StepOptions options;
  FileOptions file;          ///< of --config
  bool listsKeys = false;    ///< --config-keys: only the table of foreign keys is printed
  bool listsOptions = false; ///< --options-page: only docs/reference/options.md is printed
};

/// Prints --help or --help-hidden where it is asked for; returns whether it was.
bool printedHelp(llvm::ArrayRef<char *> arguments);

/// Reads the command line and the file that it names. Returns nothing after an error was printed.
std::optional<CommandLine> readCommandLine(int argc, char **argv);

/// Prints "fsdp-compile: message", and the key of the file that it is due to.
void printUsageError(const llvm::Twine &message, const FileOptions &file = {});

/// Returns what is wrong with options together: what the table of options cannot say, as it needs a
/// stage, a file, or the positional argument.
std::optional<std::string> checkUsage(const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_COMMANDLINE_H
