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

/// The parsed command line.
struct CommandLine {
  StepOptions options;
  FileOptions file;          ///< options of --config
  bool listsKeys = false;    ///< print only the table of keys of other frameworks
  bool listsOptions = false; ///< print only docs/reference/options.md
};

/// Prints --help or --help-hidden and returns true, if an argument asks for it.
bool printedHelp(llvm::ArrayRef<char *> arguments);

/// Reads the command line and its configuration file. Returns nothing after an error was printed.
std::optional<CommandLine> readCommandLine(int argc, char **argv);

/// Prints "fsdp-compile: message", and the key of the configuration file that caused it.
void printUsageError(const llvm::Twine &message, const FileOptions &file = {});

/// Returns an error about a combination of options, or nothing. Checks combinations that depend on
/// a stage, a file or the positional argument, which the table of options cannot check.
std::optional<std::string> checkUsage(const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_COMMANDLINE_H
