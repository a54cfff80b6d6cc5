//===- ConfigFile.h - Options in a JSON file --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_CONFIGFILE_H
#define FSDP_RUN_CONFIGFILE_H

namespace CLI {
class App;
}

namespace fsdprt {

/// Adds the option --config=FILE.json. The keys in the file are the options that `app` already has,
/// with dashes or underscores, or names of the Hugging Face Trainer. Options of the command line
/// take precedence.
void addConfigFile(CLI::App &app);

} // namespace fsdprt

#endif // FSDP_RUN_CONFIGFILE_H
