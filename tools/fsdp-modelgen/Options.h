//===- Options.h - The command line of fsdp-modelgen ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_MODELGEN_OPTIONS_H
#define FSDP_MODELGEN_OPTIONS_H

#include "ModelConfig.h"

namespace mlir::fsdp::modelgen {

struct Request {
  ModelConfig config;
  std::string output; // output file, or "-" for stdout
  std::string input;  // config.json, if given
};

/// Reads the command line. After errors, prints the errors and returns nothing. If --help or
/// --version is given, ends the process.
std::optional<Request> parseCommandLine(int argc, char **argv);

} // namespace mlir::fsdp::modelgen

#endif // FSDP_MODELGEN_OPTIONS_H
