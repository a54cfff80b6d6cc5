//===- FileOptions.h - Options of a configuration file ----------*- C++ -*-===//
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

/// The options of the configuration file of --config.
class FileOptions {
public:
  /// Sets the options of the file that the command line does not set. Returns false after an error
  /// was printed.
  bool read(StepOptions &options);

  /// If `message` begins with an option that the file set, prints the key of that option.
  void noteOrigin(llvm::StringRef message) const;

  /// Compares batches and ranks of the file with the model and the mesh. Sets the resulting number
  /// of micro-batches, unless the command line sets it.
  LogicalResult checkBatch(ModuleOp imported, StepOptions &options) const;

private:
  void printPlace(const ConfigOrigin &place, llvm::StringRef severity) const;

  Config config;
  std::string path;
};

/// Returns the number of ranks of a mesh given as text. An invalid mesh is reported by the stage
/// Shard.
int64_t countRanks(llvm::StringRef mesh);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_FILEOPTIONS_H
