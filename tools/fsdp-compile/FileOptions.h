//===- FileOptions.h - The options of --config ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_FILEOPTIONS_H
#define FSDP_TOOLS_COMPILE_FILEOPTIONS_H

#include "fsdp/Options/Options.h"
#include "fsdp/Pipelines/Config.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Where options come from that the command line does not give: the file of --config.
class FileOptions {
public:
  /// Sets in `options` what their file says and the command line does not. False when an error was
  /// printed.
  bool read(StepOptions &options);

  /// Prints which key an error about an option is due to: its text begins with the option's name.
  void noteOrigin(llvm::StringRef message) const;

  /// Holds the file's words on batches and ranks against the model and the mesh, and sets the
  /// micro-batches that follow from them where the command line does not.
  LogicalResult checkBatch(ModuleOp imported, StepOptions &options) const;

private:
  void printPlace(const ConfigOrigin &place, llvm::StringRef severity) const;

  Config config;
  std::string path;
};

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_FILEOPTIONS_H
