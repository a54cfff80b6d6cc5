//===- Options.h - Command line of fsdp-emulate -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_EMULATE_OPTIONS_H
#define FSDP_EMULATE_OPTIONS_H

#include "emulator/Emulator.h"

namespace fsdprt::emulate {

struct Options {
  std::string file;
  Launch launch;
  std::vector<std::string> arguments, prints, saves;
  bool list = false, counts = false;
};

/// Parses the command line. Returns false and sets `exitCode` if the process must end, for example
/// after --help.
bool parseOptions(int argc, char **argv, Options &options, int &exitCode);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_OPTIONS_H
