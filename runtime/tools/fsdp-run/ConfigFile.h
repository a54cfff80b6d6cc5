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

/// Adds --config=FILE.json. Its keys are the options that `app` has at this point, with dashes or
/// underscores, or the names of Hugging Face's Trainer. The command line takes precedence.
void addConfigFile(CLI::App &app);

} // namespace fsdprt

#endif // FSDP_RUN_CONFIGFILE_H
