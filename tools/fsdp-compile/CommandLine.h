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

struct CommandLine {
  StepOptions options;
  FileOptions file;          ///< options of --config
  std::string compileFrom;   ///< first stage for IR that an earlier stage has written
  bool listsKeys = false;    ///< print only docs/reference/config-files.md
  bool listsOptions = false; ///< print only docs/reference/options.md
};

/// If an argument is --help or --help-hidden, prints the help and returns true.
bool printedHelp(llvm::ArrayRef<char *> arguments);

/// Reads the command line and its configuration file. After an error, prints the error and returns
/// nothing.
std::optional<CommandLine> readCommandLine(int argc, char **argv);

/// Prints "fsdp-compile: message". If a key of `file` caused the error, also prints this key.
void printUsageError(const llvm::Twine &message, const FileOptions &file = {});

/// Returns an error if a combination of options is not valid, and otherwise nothing. Checks the
/// combinations that the table of options cannot describe: combinations that involve a stage, a
/// file or the positional argument.
std::optional<std::string> checkUsage(const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_COMMANDLINE_H
