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

/// The options that the file of --config sets.
class FileOptions {
public:
  /// Reads the file, and sets those options of the file that the command line does not set. After
  /// an error, prints the error and returns false.
  bool read(StepOptions &options);

  /// If `message` begins with the name of an option that the file has set, prints the place in the
  /// file at which it sets this option.
  void noteOrigin(llvm::StringRef message) const;

  /// Compares the batch sizes and ranks in the file with the batch of the model and with the mesh.
  /// Sets the number of micro-batches that follows from the file, unless the command line sets this
  /// number.
  LogicalResult checkBatch(ModuleOp imported, StepOptions &options) const;

private:
  void printPlace(const ConfigOrigin &place, llvm::StringRef severity) const;

  Config config;
  std::string path;
};

/// Returns the number of ranks of a mesh such as "shard=2" that read different samples. If the mesh
/// is invalid, reports no error.
int64_t countDataRanks(llvm::StringRef mesh);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_FILEOPTIONS_H
