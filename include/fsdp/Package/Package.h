//===- Package.h - Programs and code into one file --------------*- C++ -*-===//
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

/// Ranks of the largest mesh that the runtime accepts.
inline constexpr int64_t maxRuntimeRanks = 16384;

/// Refuses a module whose programs are for more ranks than an artifact can have.
LogicalResult verifyRanks(ModuleOp module);

/// A file as pieces, one after another. Those after the first belong to the module whose values
/// they are, or to `unpacked`.
struct ArtifactPieces {
  std::vector<char> head;
  std::vector<ArrayRef<char>> values;
  std::deque<std::vector<char>> unpacked;
};

/// The bytes of the .fsdp file of a planned module with workspace (fsdp-add-workspace): see
/// common/include/fsdprt/artifact_header.h. The same module and image give the same bytes.
FailureOr<ArtifactPieces> buildArtifact(ModuleOp module, const CompiledKernels &kernels,
                                        const StepOptions &options);

/// Writes a file in one go: to a temporary file beside it, which then takes its name. On an error
/// nothing is left behind; what stood at `path` stays. A path that is no regular file (/dev/stdout)
/// is written to; - is stdout.
LogicalResult writeFile(StringRef path, ArrayRef<char> bytes, Location loc);
LogicalResult writeFile(StringRef path, const ArtifactPieces &pieces, Location loc);

/// All of the above.
LogicalResult packArtifact(ModuleOp module, const CompiledKernels &kernels,
                           const StepOptions &options, StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_PACKAGE_PACKAGE_H
