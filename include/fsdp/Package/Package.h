//===- Package.h - Artifact files -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PACKAGE_PACKAGE_H
#define FSDP_PACKAGE_PACKAGE_H

#include "fsdp/IR/KernelImage.h"
#include "fsdp/Options/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include <deque>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Largest number of ranks of a mesh that the runtime accepts.
inline constexpr int64_t maxRuntimeRanks = 16384;

/// Fails with an error if a mesh has more than maxRuntimeRanks ranks.
LogicalResult verifyRanks(ModuleOp module);

/// Contents of an artifact. The artifact consists of `head`, followed by all elements of `values`.
/// The elements of `values` refer to memory that the module or `unpacked` owns.
struct ArtifactPieces {
  std::vector<char> head;
  std::vector<ArrayRef<char>> values;
  std::deque<std::vector<char>> unpacked;
};

/// Returns the contents of the artifact (common/include/fsdprt/artifact_header.h) for a planned
/// module after fsdp-add-workspace. Equal arguments yield equal contents.
FailureOr<ArtifactPieces> buildArtifact(ModuleOp module, const CompiledKernels &kernels,
                                        const StepOptions &options);

/// Write the contents as writeOutput() does (fsdp/Tools/ToolMain.h). Emit an error at `loc` on
/// failure.
LogicalResult writeFile(StringRef path, ArrayRef<char> bytes, Location loc);
LogicalResult writeFile(StringRef path, const ArtifactPieces &pieces, Location loc);

/// Builds the artifact and writes it to `path`.
LogicalResult packArtifact(ModuleOp module, const CompiledKernels &kernels,
                           const StepOptions &options, StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_PACKAGE_PACKAGE_H
