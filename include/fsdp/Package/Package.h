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

/// Most ranks of a mesh that the runtime accepts.
inline constexpr int64_t maxRuntimeRanks = 16384;

/// Fails with an error if a mesh has more ranks than an artifact can have.
LogicalResult verifyRanks(ModuleOp module);

/// The contents of a file in pieces, one after another. `values` refer to memory of the module or
/// of `unpacked`.
struct ArtifactPieces {
  std::vector<char> head;
  std::vector<ArrayRef<char>> values;
  std::deque<std::vector<char>> unpacked;
};

/// Returns the bytes of the .fsdp file (common/include/fsdprt/artifact_header.h) of a planned
/// module with workspace (fsdp-add-workspace). Deterministic: equal module and image give equal
/// bytes.
FailureOr<ArtifactPieces> buildArtifact(ModuleOp module, const CompiledKernels &kernels,
                                        const StepOptions &options);

/// Write a file atomically: to a temporary file in its directory, which then gets its name. On an
/// error no file is left, and an existing one is kept. A path that is no regular file (/dev/stdout)
/// is written to directly; - is stdout.
LogicalResult writeFile(StringRef path, ArrayRef<char> bytes, Location loc);
LogicalResult writeFile(StringRef path, const ArtifactPieces &pieces, Location loc);

/// Builds the artifact and writes it to `path`.
LogicalResult packArtifact(ModuleOp module, const CompiledKernels &kernels,
                           const StepOptions &options, StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_PACKAGE_PACKAGE_H
