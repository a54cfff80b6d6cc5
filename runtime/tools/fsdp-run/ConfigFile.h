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

/// Adds the option --config=FILE.json. A key in the file is either the name of an option of `app`,
/// written with dashes or underscores, or a name of the Hugging Face Trainer. Values on the command
/// line take precedence over values in the file.
void addConfigFile(CLI::App &app);

} // namespace fsdprt

#endif // FSDP_RUN_CONFIGFILE_H
