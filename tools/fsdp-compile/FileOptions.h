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

/// The options in the configuration file that --config names.
class FileOptions {
public:
  /// Reads the file, and sets those of its options that the command line does not set. Returns
  /// false after printing an error.
  bool read(StepOptions &options);

  /// If `message` begins with the name of an option that the file has set, prints the option's key.
  void noteOrigin(llvm::StringRef message) const;

  /// Checks the file's batch sizes and ranks against the model's batch and the mesh. Sets the
  /// number of micro-batches that follows from them, unless the command line sets the number.
  LogicalResult checkBatch(ModuleOp imported, StepOptions &options) const;

private:
  void printPlace(const ConfigOrigin &place, llvm::StringRef severity) const;

  Config config;
  std::string path;
};

/// Returns the number of ranks of a mesh such as "shard=2". Reports no error if the mesh is
/// invalid.
int64_t countRanks(llvm::StringRef mesh);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_FILEOPTIONS_H
